/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath topo: a dispatcher; each part of the picture has a file of its own (topo_*.c).
 */
#include "cli/topo.h"

#include <string.h>

#include "base/banned.h"

/* A drawing or a layout that goes to standard output stands there alone. */
static bool writes_stdout(const struct pp_args *args)
{
	static const char *const options[] = {"svg", "expect-write"};
	const char *file;

	for (size_t i = 0; i < PP_ARRAY_LEN(options); i++) {
		file = pp_args_get(args, options[i]);
		if (file && !strcmp(file, "-"))
			return true;
	}
	return false;
}

static void write_all(const struct pp_session *s, const struct pp_topo *t)
{
	struct pp_view v = PP_VIEW(s->out, s->node);

	pp_out_document(s->out, "peerpath.topo/1");
	if (!t->n)
		pp_out_para(s->out, 2, "  %s",
			    s->node->pci.why ? s->node->pci.why
					     : "No GPU and no hca on the PCI bus.");
	pp_topo_rails(&v, t);
	pp_topo_matrix(s->out, t);
	pp_topo_routes(&v);
	pp_topo_choices(&v, t);
	pp_topo_links(&v);
	pp_topo_pinning(&v, t);
	pp_topo_json(s->out, t);
	pp_view_unknown(&v);
}

int pp_cmd_topo(const struct pp_args *args)
{
	struct pp_topo PP_CLEANUP(pp_topo_done) t = {0};
	struct pp_session s;
	int code;

	if (pp_args_has(args, "smi"))
		return pp_topo_smi(args, pp_args_get(args, "smi"));
	if (pp_args_has(args, "nccl-xml"))
		return pp_topo_nccl_xml(args, pp_args_get(args, "nccl-xml"));
	code = pp_session_open(args, false, &s);
	if (!code && pp_args_has(args, "svg"))
		code = pp_topo_svg(&s, pp_args_get(args, "svg"));
	if (!code && pp_args_has(args, "expect-write"))
		code = pp_topo_expect_write(&s, pp_args_get(args, "expect-write"));
	if (!code && pp_args_has(args, "expect"))
		return pp_session_close(&s, pp_topo_expect(&s, pp_args_get(args, "expect")));
	if (writes_stdout(args))
		return pp_session_close(&s, code);
	if (!code)
		code = pp_topo_members(&s, &t);
	if (!code) {
		write_all(&s, &t);
		code = s.node->pci.why ? PP_EXIT_UNKNOWN : PP_EXIT_PASS;
	}
	return pp_session_close(&s, code);
}
