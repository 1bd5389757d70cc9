/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"
#include "base/banned.h"

int pp_cmd_show(const struct pp_args *args)
{
	struct pp_session s;
	int code = pp_session_open(args, false, &s);

	if (!code)
		pp_out_document(s.out, "peerpath.show/1");
	return pp_session_close(&s, code);
}
