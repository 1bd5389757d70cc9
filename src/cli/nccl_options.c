/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nccl_options.h"

#include <string.h>

#include "base/compiler.h"
#include "cli/session.h"
#include "base/banned.h"

static const char *const element_words[] = {"int8",   "int32",	  "half", "float",
					    "double", "bfloat16", NULL};
static const char *const reduction_words[] = {"sum", "prod", "max", "min", "avg", NULL};
static const char *const memory_words[] = {"cuda", "cuda-vmm", NULL};
static const char *const arms[] = {"unchanged", "A", "B", "C", "pinned", NULL};

const struct pp_option pp_nccl_options_table[] = {
	{"controls", 0, NULL, "run: the user's environment, then controls A, B and C", NULL},
	{"arm", 0, "ARM", "run: this arm alone, under a launcher", arms},
	{"net", 0, "NAME", "run: a further proof with NCCL_NET=NAME: no fallback", NULL},
	{"join", 0, NULL, "run: judge documents of arms that ran apart (operands)", NULL},
	{"timeout", 'T', "TIME",
	 "run: end CMD after this time (300, 10m), judge what is there; perf: one measurement "
	 "(60s)",
	 NULL},
	{"simulate", 0, NULL, "run: on the software device; nothing is proven by it", NULL},
	{"busy-ok", 0, NULL, "run, perf: though others use the hca or the GPU (recorded)", NULL},
	{"no-observer", 0, NULL, "run: start no auditor in CMD", NULL},
	{"keep-logs", 0, "DIR", "run: keep all logs below DIR", NULL},
	{"output", 'o', "FILE", "run: write the document (JSON) to FILE, too; perf: -o is --op",
	 NULL},
	{"force", 0, NULL, "run, perf: replace an existing FILE", NULL},
	{"quiet", 'q', NULL, "run: do not say what is set for CMD", NULL},
	{"token-file", 0, "FILE", "run, perf: the job's shared secret; else PEERPATH_TOKEN", NULL},
	{"fail-on", 0, "VERDICT", "run: verdict from which on the exit status is 1",
	 (const char *const[]){"degraded", "fail", NULL}},
	{"gpus", 'g', "N", "perf: a rank for each of N GPUs here", NULL},
	{"ranks", 0, "N", "perf: N ranks here, with --one-gpu", NULL},
	{"one-gpu", 0, NULL, "perf: all ranks of a host on one GPU; sets NCCL_HOSTID", NULL},
	{"apart", 0, NULL, "perf: a NCCL_HOSTID of its own for each rank: as if on hosts", NULL},
	{"gpu", 0, "BDF", "perf: the GPU, with --one-gpu or one rank", NULL},
	{"library", 0, "FILE", "perf: this libnccl, not the one a job here would load", NULL},
	{"sizes", 0, "LIST", "perf: the job's sizes: 8,1M,256M", NULL},
	{"minbytes", 'b', "SIZE", "perf: smallest size (8)", NULL},
	{"maxbytes", 'e', "SIZE", "perf: largest size (4G)", NULL},
	{"stepbytes", 'i', "SIZE", "perf: each size so much more", NULL},
	{"stepfactor", 'f', "N", "perf: each size so many times the last (2)", NULL},
	{"iters", 'n', "N", "perf: operations timed for each size (20)", NULL},
	{"agg-iters", 'm', "N", "perf: operations in one group (1)", NULL},
	{"warmup-iters", 'w', "N", "perf: operations before the first size (5)", NULL},
	{"check", 'c', "N", "perf: results checked for each size; 0 none (1)", NULL},
	{"op", 0, "OP", "perf: -o, of reductions (sum)", reduction_words},
	{"datatype", 'd', "TYPE", "perf: of elements (float)", element_words},
	{"nthreads", 't', "N", "perf: 1 only: each rank is a process", NULL},
	{"deadline", 0, "TIME", "perf: for all of it", NULL},
	{"memory", 0, "KIND", "perf: of buffers: cuMemAlloc or cuMemCreate", memory_words},
	{"output-file", 'J', "FILE", "perf: the JSON document into FILE too", NULL},
	{NULL},
};

/* Which operation heeds which: by name, those of every one are not listed. */
static const struct {
	const char *option, *of[3];
} heeded[] = {
	{"controls", {"run"}},
	{"arm", {"run"}},
	{"net", {"run"}},
	{"join", {"run"}},
	{"timeout", {"run", "perf"}},
	{"simulate", {"run"}},
	{"busy-ok", {"run", "perf"}},
	{"no-observer", {"run"}},
	{"keep-logs", {"run"}},
	{"output", {"run", "perf"}},
	{"force", {"run", "perf"}},
	{"quiet", {"run"}},
	{"token-file", {"run", "perf"}},
	{"fail-on", {"run"}},
	{"gpus", {"perf", "run"}},
	{"ranks", {"perf", "run"}},
	{"one-gpu", {"perf", "run"}},
	{"apart", {"perf", "run"}},
	{"gpu", {"perf", "run"}},
	{"library", {"perf", "run"}},
	{"sizes", {"perf", "run"}},
	{"minbytes", {"perf", "run"}},
	{"maxbytes", {"perf", "run"}},
	{"stepbytes", {"perf", "run"}},
	{"stepfactor", {"perf", "run"}},
	{"iters", {"perf", "run"}},
	{"agg-iters", {"perf", "run"}},
	{"warmup-iters", {"perf", "run"}},
	{"check", {"perf", "run"}},
	{"op", {"perf", "run"}},
	{"datatype", {"perf", "run"}},
	{"nthreads", {"perf", "run"}},
	{"deadline", {"perf"}},
	{"memory", {"perf", "run"}},
	{"output-file", {"perf"}},
};

bool pp_nccl_options_of(const char *option, const char *operation)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(heeded); i++) {
		if (strcmp(heeded[i].option, option) != 0)
			continue;
		for (size_t k = 0; k < PP_ARRAY_LEN(heeded[i].of) && heeded[i].of[k]; k++)
			if (!strcmp(heeded[i].of[k], operation))
				return true;
		return false;
	}
	return true; /* of every one */
}

bool pp_nccl_options_own(const char *option)
{
	static const char *const own[] = {"timeout", "output", "force"};

	for (size_t i = 0; i < PP_ARRAY_LEN(own); i++)
		if (!strcmp(own[i], option))
			return true;
	return false;
}

const char *pp_nccl_options_foreign(const struct pp_args *args)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(heeded); i++)
		if (!strcmp(heeded[i].of[0], "perf") && pp_args_has(args, heeded[i].option))
			return heeded[i].option;
	return NULL;
}

int pp_nccl_options_check(const struct pp_args *args)
{
	const char *operation = pp_args_operand(args, 0);

	for (size_t i = 0; i < PP_ARRAY_LEN(heeded); i++)
		if (!pp_nccl_options_of(heeded[i].option, operation) &&
		    pp_args_has(args, heeded[i].option))
			return pp_complain(args, PP_EXIT_USAGE, "'%s' takes no --%s", operation,
					   heeded[i].option);
	return 0;
}
