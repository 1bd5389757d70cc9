/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The project's vocabulary: the words of verdicts, evidence and gates, spelled once.
 *
 * A verdict is data, never an error code. Order of `enum pp_verdict` is severity: the worst of
 * several is the largest. `unknown` stands above `degraded` because with missing data the
 * question "is it good enough?" has no answer at all.
 */
#ifndef PP_BASE_WORDS_H
#define PP_BASE_WORDS_H

#include <stdint.h>

enum pp_verdict { PP_PASS, PP_DEGRADED, PP_UNKNOWN, PP_FAIL };

/* What an observation is about; witnesses are ranked only within one of these. */
enum pp_about { PP_CAPABILITY, PP_INTENT, PP_REGISTRATION, PP_TRAFFIC, PP_OUTCOME };

enum pp_witness { PP_BY_KERNEL, PP_BY_LIBRARY, PP_BY_LOG, PP_BY_CONFIG, PP_BY_MEASUREMENT };

enum pp_scope { PP_OF_MR, PP_OF_PROCESS, PP_OF_NODE, PP_OF_PAIR, PP_OF_JOB };

enum pp_memory_kind { PP_MEMORY_HOST, PP_MEMORY_CUDA, PP_MEMORY_CUDA_VMM, PP_MEMORY_SIM };

/* How memory was made known to an hca. */
enum pp_registration {
	PP_REGISTERED_HOST,
	PP_REGISTERED_DMABUF,
	PP_REGISTERED_PEERMEM,
	PP_REGISTERED_DATA_DIRECT,
	PP_REGISTERED_EFA_P2P,
};

/* Exit codes of every verb (sysexits where they exist). */
enum pp_exit {
	PP_EXIT_PASS = 0,
	PP_EXIT_BAD = 1,     /* measured and bad */
	PP_EXIT_UNKNOWN = 2, /* no verdict */
	PP_EXIT_USAGE = 64,
	PP_EXIT_INPUT = 65, /* unreadable or tampered input */
	PP_EXIT_INTERNAL = 70,
	PP_EXIT_INTERRUPTED = 130,
};

const char *pp_verdict_name(enum pp_verdict v);
/* -EINVAL for another word. */
int pp_verdict_parse(const char *text, enum pp_verdict *ret);
enum pp_verdict pp_verdict_worst(enum pp_verdict a, enum pp_verdict b);

const char *pp_about_name(enum pp_about a);
const char *pp_witness_name(enum pp_witness w);
const char *pp_scope_name(enum pp_scope s);
const char *pp_memory_kind_name(enum pp_memory_kind k); /* "cuda-vmm" */
int pp_memory_kind_parse(const char *text, enum pp_memory_kind *ret);
const char *pp_registration_name(enum pp_registration r); /* "data-direct" */
int pp_registration_parse(const char *text, enum pp_registration *ret);

#endif
