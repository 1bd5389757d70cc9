/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const char *const verdicts[] = {
	[PP_PASS] = "pass",
	[PP_DEGRADED] = "degraded",
	[PP_UNKNOWN] = "unknown",
	[PP_FAIL] = "fail",
};

static const char *const abouts[] = {
	[PP_CAPABILITY] = "capability",	    [PP_INTENT] = "intent",
	[PP_REGISTRATION] = "registration", [PP_TRAFFIC] = "traffic",
	[PP_OUTCOME] = "outcome",
};

static const char *const witnesses[] = {
	[PP_BY_KERNEL] = "kernel", [PP_BY_LIBRARY] = "library",		[PP_BY_LOG] = "log",
	[PP_BY_CONFIG] = "config", [PP_BY_MEASUREMENT] = "measurement",
};

static const char *const scopes[] = {
	[PP_OF_MR] = "mr",     [PP_OF_PROCESS] = "process", [PP_OF_NODE] = "node",
	[PP_OF_PAIR] = "pair", [PP_OF_JOB] = "job",
};

const char *pp_verdict_name(enum pp_verdict v)
{
	return verdicts[v];
}

int pp_verdict_parse(const char *text, enum pp_verdict *ret)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(verdicts); i++) {
		if (strcmp(text, verdicts[i]) != 0)
			continue;
		*ret = (enum pp_verdict)i;
		return 0;
	}
	return -EINVAL;
}

enum pp_verdict pp_verdict_worst(enum pp_verdict a, enum pp_verdict b)
{
	return a > b ? a : b;
}

const char *pp_about_name(enum pp_about a)
{
	return abouts[a];
}

const char *pp_witness_name(enum pp_witness w)
{
	return witnesses[w];
}

const char *pp_scope_name(enum pp_scope s)
{
	return scopes[s];
}
