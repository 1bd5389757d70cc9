/* SPDX-License-Identifier: Apache-2.0 */
/* Arms of one job that ran apart: a launcher starts a job once. */
#include <errno.h>

#include "cli/input.h"
#include "cli/nccl_run.h"
#include "base/banned.h"

static const size_t DOCUMENT_MOST = (size_t)64 << 20;

static int join_one(struct pp_nccl_running *c, const char *file)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(DOCUMENT_MOST);
	struct pp_nccl_runs runs = {{NULL}};
	struct pp_error err = {0};
	int r = pp_input_read(file, &text, &err), code = 0;

	if (r)
		return pp_complain(c->args, PP_EXIT_INPUT, "%s", err.text);
	r = pp_nccl_runs_read(pp_buf_text(&text), text.len, &runs, &err);
	if (r)
		return pp_complain(c->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
				   "'%s': %s", pp_input_name(file), err.text);
	for (unsigned int a = 0; a < PP_NCCL_ARMS && !code; a++) {
		if (runs.arm[a] && c->run[a])
			code = pp_complain(
				c->args, PP_EXIT_INPUT, "'%s': an earlier document has arm %s, too",
				pp_input_name(file), pp_nccl_arm_name((enum pp_nccl_arm)a));
		else if (runs.arm[a])
			c->run[a] = pp_take(runs.arm[a]);
	}
	pp_nccl_runs_done(&runs);
	return code;
}

int pp_nccl_running_join(struct pp_nccl_running *c)
{
	static const char *const others[] = {"controls",   "arm",	  "net",       "timeout",
					     "busy-ok",	   "no-observer", "keep-logs", "quiet",
					     "token-file", "simulate"};
	size_t n = pp_args_operands(c->args);
	int code = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(others); i++)
		if (pp_args_has(c->args, others[i]))
			return pp_complain(c->args, PP_EXIT_USAGE, "--join excludes --%s",
					   others[i]);
	if (n < 2)
		return pp_complain(c->args, PP_EXIT_USAGE,
				   "--join wants FILE...: documents of arms of one job");
	for (size_t i = 1; !code && i < n; i++)
		code = join_one(c, pp_args_operand(c->args, i));
	if (!code && !c->run[PP_NCCL_ARM_UNCHANGED])
		code = pp_complain(c->args, PP_EXIT_UNKNOWN,
				   "none of them has the user's own environment (arm unchanged): "
				   "there is nothing that the others could be compared with");
	return code;
}
