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

static const char *const memory_kinds[] = {
	[PP_MEMORY_HOST] = "host",
	[PP_MEMORY_CUDA] = "cuda",
	[PP_MEMORY_CUDA_VMM] = "cuda-vmm",
	[PP_MEMORY_SIM] = "sim",
};

static const char *const registrations[] = {
	[PP_REGISTERED_HOST] = "host",	     [PP_REGISTERED_DMABUF] = "dmabuf",
	[PP_REGISTERED_PEERMEM] = "peermem", [PP_REGISTERED_DATA_DIRECT] = "data-direct",
	[PP_REGISTERED_EFA_P2P] = "efa-p2p",
};

/* Index of @text, or -EINVAL. */
static int word(const char *const *words, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(text, words[i]))
			return (int)i;
	return -EINVAL;
}

const char *pp_verdict_name(enum pp_verdict v)
{
	return verdicts[v];
}

int pp_verdict_parse(const char *text, enum pp_verdict *ret)
{
	int i = word(verdicts, PP_ARRAY_LEN(verdicts), text);

	if (i >= 0)
		*ret = (enum pp_verdict)i;
	return i < 0 ? i : 0;
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

const char *pp_memory_kind_name(enum pp_memory_kind k)
{
	return memory_kinds[k];
}

int pp_memory_kind_parse(const char *text, enum pp_memory_kind *ret)
{
	int i = word(memory_kinds, PP_ARRAY_LEN(memory_kinds), text);

	if (i >= 0)
		*ret = (enum pp_memory_kind)i;
	return i < 0 ? i : 0;
}

const char *pp_registration_name(enum pp_registration r)
{
	return registrations[r];
}

int pp_registration_parse(const char *text, enum pp_registration *ret)
{
	int i = word(registrations, PP_ARRAY_LEN(registrations), text);

	if (i >= 0)
		*ret = (enum pp_registration)i;
	return i < 0 ? i : 0;
}
