/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_rollout: a change on its way from a pair of nodes to a cluster, as a file that people
 * read and edit: which bundles each step rests on.
 *
 *   pair -> the same pair after a reboot -> a small pool -> the cluster
 *
 * A step is done when its bundles say so, never because a word in the file says so.
 */
#ifndef PP_PROFILE_ROLLOUT_H
#define PP_PROFILE_ROLLOUT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/words.h"
#include "judge/gate.h"

enum pp_step {
	PP_STEP_PAIR,
	PP_STEP_REBOOT,
	PP_STEP_POOL,
	PP_STEP_CLUSTER,
	PP_STEP_ROLLBACK, /* none of the way: what was taken back, and what came of it */
	PP_STEPS
};

/* After the change; of the rollback: after it. */
enum pp_rollout_role { PP_ROLLOUT_BEFORE, PP_ROLLOUT_AFTER };

/* One bundle: where, and what it says. NULL: not known. */
struct pp_rollout_bundle {
	enum pp_step step;
	enum pp_rollout_role role;
	const char *path;  /* as written, from the file's directory */
	const char *error; /* it cannot be read, or is no evidence; then nothing below is set */
	const char *node;  /* GUIDs of its hcas, else its label */
	const char *host, *id, *flavour, *topology, *software, *boot;
	enum pp_verdict verdict[PP_GATES];
	bool asked[PP_GATES];
	bool simulated;
};

enum { PP_ROLLOUT_BUNDLES = 4096, PP_ROLLOUT_BYTES = 1 << 20, PP_ROLLOUT_NODES = 2048 };

struct pp_rollout {
	struct pp_arena arena;
	const char *name, *from, *to;
	enum pp_gate through;	      /* that each bundle reaches */
	bool simulation;	      /* bundles of simulations count, and prove nothing */
	unsigned int nodes[PP_STEPS]; /* of a step, at least; 0: not said */
	struct pp_rollout_bundle *bundle;
	unsigned int n;
};

/* @name is used in messages. -EINVAL (file:line), -EFBIG, -ENOMEM. */
int pp_rollout_parse(const char *name, const char *text, size_t len, struct pp_rollout **ret,
		     struct pp_error *err);
struct pp_rollout *pp_rollout_free(struct pp_rollout *r); /* returns NULL */

/* A new file, with what to do in its comments. @pool and @cluster 0: to be filled in. */
void pp_rollout_plan(const char *from, const char *to, unsigned int pool, unsigned int cluster,
		     struct pp_buf *ret);

/* Opens and verifies each bundle, paths from @dir; what is wrong with one is in its row. */
int pp_rollout_read(struct pp_rollout *r, const char *dir, struct pp_error *err);

const char *pp_step_name(enum pp_step s); /* "pair", "reboot", "pool", "cluster", "rollback" */

/* Judged */
enum pp_step_state {
	PP_STEP_DONE,
	PP_STEP_NEXT,	 /* its turn; what is missing is said */
	PP_STEP_WAITING, /* for the step before it */
	PP_STEP_STOPPED, /* what its bundles say forbids to go on */
	PP_STEP_SKIPPED, /* has bundles though the one before is not done: refused */
	PP_STEP_UNKNOWN, /* bundles leave it open */
};

struct pp_rollout_step {
	enum pp_step_state state;
	unsigned int nodes; /* with both bundles */
	const char *why[8]; /* what is missing or wrong, each a line */
	unsigned int n_why, more;
};

struct pp_rollout_status {
	struct pp_arena arena;
	struct pp_rollout_step step[PP_STEPS];
	enum pp_verdict verdict; /* pass: on its way or there; fail: stopped */
	const char *sentence, *next;
};

/* Pure on what was read. -ENOMEM. */
int pp_rollout_judge(const struct pp_rollout *r, struct pp_rollout_status *ret);
void pp_rollout_status_done(struct pp_rollout_status *s);
const char *pp_step_state_name(enum pp_step_state s);

#endif
