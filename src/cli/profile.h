/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the actions of `peerpath profile` share: the root, what profiles have left there, and the
 * profiles named.
 */
#ifndef PP_CLI_PROFILE_H
#define PP_CLI_PROFILE_H

#include "cli/session.h"
#include "profile/commit.h"
#include "profile/need.h"

struct pp_profile_run {
	struct pp_session s;
	const struct pp_args *args; /* borrowed */
	const char *action;
	struct pp_disk disk;
	struct pp_state state;
	struct pp_profile *profile; /* NULL for list and rollback */
	char *path;		    /* where it came from */
};

/* Exit code of an error of profile/, after its line on stderr. */
int pp_profile_failed(const struct pp_profile_run *run, int error, const struct pp_error *err);

/* Heads the document: schema, action, root. */
void pp_profile_head(struct pp_profile_run *run);

/* The actions; 0 or an exit code after one line on stderr. */
int pp_profile_list(struct pp_profile_run *run);
int pp_profile_show(struct pp_profile_run *run);
int pp_profile_render(struct pp_profile_run *run);
int pp_profile_diff(struct pp_profile_run *run);
int pp_profile_verify(struct pp_profile_run *run);
int pp_profile_apply(struct pp_profile_run *run);
int pp_profile_rollback(struct pp_profile_run *run);

/* Table "needs" of the profile, against the facts of the session's node; the worst of them. */
enum pp_verdict pp_profile_needs(struct pp_profile_run *run);
/* "/etc/x" below the root, as the user sees it. */
const char *pp_profile_below(const struct pp_profile_run *run, const char *path, char *buf,
			     size_t size);

#endif
