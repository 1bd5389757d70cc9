/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of struct pp_derived: what its files share. derived_measured.c reads what was measured
 * (counters, bandwidths) and what UCX says of a memory domain, derived_steps.c where ranks wait,
 * derived_shell.c what commands answered, derived_nccl.c what NCCL's processes say together,
 * derived_launch.c how the first task of a Slurm step ended.
 */
#ifndef PP_JUDGE_DERIVED_MEASURED_H
#define PP_JUDGE_DERIVED_MEASURED_H

#include "base/compiler.h"
#include "judge/derived.h"

enum pp_derived_which {
	PP_DERIVED_MTU,
	PP_DERIVED_VERSION_DIFFERS,
	PP_DERIVED_GID,
	PP_DERIVED_PRIORITY,
	PP_DERIVED_UCX,
	PP_DERIVED_COUNTER,
	PP_DERIVED_LINK,
	PP_DERIVED_RATIO,
	PP_DERIVED_LARGE,
	PP_DERIVED_STEPS,
	PP_DERIVED_MODULE,
	PP_DERIVED_NODES,
	PP_DERIVED_LOCKED,
	PP_DERIVED_LID,
	PP_DERIVED_LOCAL,
	PP_DERIVED_TABLE,
	PP_DERIVED_SETTING,
	PP_DERIVED_DRIVER,
	PP_DERIVED_ALONE,
	PP_DERIVED_NODE,
	PP_DERIVED_TASK,
};

/* The first of each kind stays. */
void pp_derived_say(struct pp_derived *d, enum pp_derived_which which, uint64_t line,
		    const char *fmt, ...) PP_PRINTF(4, 5);

/* What stands behind @word; NULL when it is not there. */
const char *pp_derived_behind(const char *text, size_t len, const char *word);
/* The next number of at most 18 digits; -1 when none follows within 8 bytes and blanks. */
int64_t pp_derived_number(const char **p, const char *end);

const char *pp_derived_measured_word(unsigned int i); /* NULL past the last */
void pp_derived_read_measured(struct pp_derived *d, const char *text, size_t len, uint64_t line);

void pp_derived_read_steps(struct pp_derived *d, const char *text, size_t len, uint64_t line);

const char *pp_derived_nccl_word(unsigned int i); /* NULL past the last */
void pp_derived_read_nccl(struct pp_derived *d, const char *text, size_t len, uint64_t line);

const char *pp_derived_launch_word(unsigned int i); /* NULL past the last */
void pp_derived_read_launch(struct pp_derived *d, const char *text, size_t len, uint64_t line);

const char *pp_derived_shell_word(unsigned int i); /* NULL past the last */
/* Also for lines without such a word while an answer is awaited (shell.asks). */
void pp_derived_read_shell(struct pp_derived *d, const char *text, size_t len, uint64_t line);
void pp_derived_read_node(struct pp_derived *d, const char *text, size_t len, uint64_t line);

#endif
