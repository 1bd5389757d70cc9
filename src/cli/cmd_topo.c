/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath topo: a dispatcher; each part of the picture has a file of its own (topo_*.c).
 */
#include "cli/topo.h"
#include "base/banned.h"

int pp_cmd_topo(const struct pp_args *args)
{
	struct pp_topo PP_CLEANUP(pp_topo_done) t = {0};
	struct pp_session s;
	int code;

	if (pp_args_has(args, "smi"))
		return pp_topo_smi(args, pp_args_get(args, "smi"));
	code = pp_session_open(args, false, &s);
	if (!code)
		code = pp_topo_members(&s, &t);
	if (!code) {
		pp_out_document(s.out, "peerpath.topo/1");
		pp_topo_matrix(s.out, &t);
		pp_topo_json(s.out, &t);
	}
	return pp_session_close(&s, code);
}
