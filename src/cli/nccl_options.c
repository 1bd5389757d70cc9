/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nccl_options.h"

#include <string.h>

#include "base/compiler.h"
#include "cli/session.h"
#include "base/banned.h"

static const char *const arms[] = {"unchanged", "A", "B", "C", "pinned", NULL};

const struct pp_option pp_nccl_options_table[] = {
	{"controls", 0, NULL, "run: the user's environment, then controls A, B and C", NULL},
	{"arm", 0, "ARM", "run: this arm alone, under a launcher", arms},
	{"net", 0, "NAME", "run: a further proof with NCCL_NET=NAME: no fallback", NULL},
	{"join", 0, NULL, "run: judge documents of arms that ran apart (operands)", NULL},
	{"timeout", 0, "TIME", "run: end CMD after this time (300, 10m), judge what is there",
	 NULL},
	{"busy-ok", 0, NULL, "run: though others use the hca or the GPU (recorded)", NULL},
	{"no-observer", 0, NULL, "run: start no auditor in CMD", NULL},
	{"keep-logs", 0, "DIR", "run: keep all logs below DIR", NULL},
	{"output", 'o', "FILE", "run: write the document (JSON) to FILE, too", NULL},
	{"force", 0, NULL, "run: replace an existing FILE", NULL},
	{"quiet", 'q', NULL, "run: do not say what is set for CMD", NULL},
	{"token-file", 0, "FILE", "run: the job's shared secret; else PEERPATH_TOKEN", NULL},
	{"fail-on", 0, "VERDICT", "run: verdict from which on the exit status is 1",
	 (const char *const[]){"degraded", "fail", NULL}},
	{NULL},
};

/* Which operation heeds which: by name, those of every one are not listed. */
static const struct {
	const char *option, *of[3];
} heeded[] = {
	{"controls", {"run"}},	  {"arm", {"run"}},	  {"net", {"run"}},
	{"join", {"run"}},	  {"timeout", {"run"}},	  {"busy-ok", {"run"}},
	{"no-observer", {"run"}}, {"keep-logs", {"run"}}, {"output", {"run"}},
	{"force", {"run"}},	  {"quiet", {"run"}},	  {"token-file", {"run"}},
	{"fail-on", {"run"}},
};

int pp_nccl_options_check(const struct pp_args *args)
{
	const char *operation = pp_args_operand(args, 0);

	for (size_t i = 0; i < PP_ARRAY_LEN(heeded); i++) {
		bool ok = false;

		for (size_t k = 0; k < PP_ARRAY_LEN(heeded[i].of) && heeded[i].of[k]; k++)
			ok = ok || !strcmp(heeded[i].of[k], operation);
		if (!ok && pp_args_has(args, heeded[i].option))
			return pp_complain(args, PP_EXIT_USAGE, "'%s' takes no --%s", operation,
					   heeded[i].option);
	}
	return 0;
}
