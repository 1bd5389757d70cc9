/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_change: what applying a profile would do to the files below a root, before anything is
 * done: each file as it is and as it shall be.
 */
#ifndef PP_PROFILE_CHANGE_H
#define PP_PROFILE_CHANGE_H

#include "judge/policy.h"
#include "profile/state.h"

struct pp_change_file {
	const struct pp_profile_file *of; /* NULL: given back, no longer of the profile */
	char *before, *after;		  /* contents, owned; "" of what is absent */
	bool differs;
};

struct pp_change {
	const struct pp_profile *profile; /* borrowed */
	struct pp_generation *next;	  /* what would be in effect; entry i is of file[i] */
	struct pp_change_file file[PP_GENERATION_ENTRIES];
	unsigned int differing;
};

/* Reads only. @s borrowed for the call. */
int pp_change_make(const struct pp_state *s, const struct pp_profile *p, struct pp_change **ret,
		   struct pp_error *err);
struct pp_change *pp_change_free(struct pp_change *c);

/*
 * The rule of the migration: what loads nvidia_peermem is not taken away by the change that first
 * brings DMA-BUF. True where this change would.
 */
bool pp_change_drops_peermem(const struct pp_state *s, const struct pp_change *c);

/*
 * The first forbidden fix that the change amounts to, with the site's reason; NULL none. A part of
 * the tuple that @facts (NULL: not known) show is met asks for no fix.
 */
const char *pp_change_forbidden(const struct pp_change *c, const struct pp_policy *policy,
				const struct pp_facts *facts, const char **ret_reason);

/* A file that somebody else has changed since the generation in effect was applied. */
struct pp_foreign {
	const char *path; /* borrowed from the generation */
	char *recorded, *found;
	struct pp_disk_state now;
};

/*
 * Those of the generation in effect: @all of its files, or those alone that it manages. Returns how
 * many were put into @ret (at most PP_GENERATION_ENTRIES), or a negative errno.
 */
int pp_foreign_find(const struct pp_state *s, bool all,
		    struct pp_foreign ret[PP_GENERATION_ENTRIES], struct pp_error *err);
void pp_foreign_done(struct pp_foreign *f, int n);

#endif
