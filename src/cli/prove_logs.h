/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's logs of a job that prove ran, in its bundle, and judged again from there:
 *
 *   nccl/logs.json          of each arm: how many files, bytes kept, bytes cut, values hidden
 *   nccl/ARM/0000.log ...   in the order in which they were judged
 *
 * Bounded: a rank has a MiB (what others leave of theirs is the larger ones'), an arm 16. Of what
 * is longer the beginning and the end are kept, as files of their own, and the rest is counted.
 * Values of variables whose names say that they are secrets, and the run's token, never get there.
 */
#ifndef PP_CLI_PROVE_LOGS_H
#define PP_CLI_PROVE_LOGS_H

#include "base/arena.h"
#include "base/out.h"
#include "bundle/bundle.h"
#include "nccl/run.h"

enum {
	PP_PROVE_LOG_FILES = 1024, /* all arms together */
	PP_PROVE_LOG_RANK = 1 << 20,
	PP_PROVE_LOG_ARM = 16 << 20,
};

enum pp_prove_logs_word {
	PP_PROVE_LOGS_NONE,   /* there are none of this arm */
	PP_PROVE_LOGS_KEPT,   /* they are what the document was judged by */
	PP_PROVE_LOGS_SAME,   /* judged again: as the document says */
	PP_PROVE_LOGS_DIFFER, /* judged again: they say otherwise, and they count */
	PP_PROVE_LOGS_CUT,    /* too long to be kept whole: the document counts */
};

struct pp_prove_logs_arm {
	enum pp_prove_logs_word word;
	uint64_t files, bytes, dropped, hidden;
};

struct pp_prove_logs {
	struct pp_prove_logs_arm arm[PP_NCCL_ARMS];
	struct pp_bundle_file file[PP_PROVE_LOG_FILES + 1]; /* the first: nccl/logs.json */
	size_t n_files;
	struct pp_arena arena; /* of them */
};

void pp_prove_logs_init(struct pp_prove_logs *l);
void pp_prove_logs_done(struct pp_prove_logs *l);
/* What `nccl run --keep-logs=@dir` has left there of the arms that ran. -ENOMEM. */
int pp_prove_logs_take(struct pp_prove_logs *l, const char *dir, const struct pp_nccl_runs *runs,
		       const char *token);
/*
 * Judges the runs again by the logs of a bundle, where those are whole. They are files of @l then,
 * which borrows them from @b until pp_prove_logs_done(). -ENOMEM, -EBADMSG.
 */
int pp_prove_logs_judge(struct pp_prove_logs *l, const struct pp_bundle *b,
			struct pp_nccl_runs *runs, struct pp_error *err);
/* Member "logs" in JSON; a line in text, where something is to be said. */
void pp_prove_logs_emit(struct pp_out *o, const struct pp_prove_logs *l);

#endif
