/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_generation: one applied profile, as it is kept: what each file was before any profile
 * (origin), before this one, and after it. Contents are kept apart, by digest.
 *
 * struct pp_journal: the change that is under way, if one is.
 */
#ifndef PP_PROFILE_GENERATION_H
#define PP_PROFILE_GENERATION_H

#include "base/arena.h"
#include "base/clock.h"
#include "profile/disk.h"
#include "profile/profile.h"

enum { PP_GENERATION_ENTRIES = 2 * PP_PROFILE_FILES, PP_GENERATION_DIRS = 16 };
enum { PP_GENERATION_BYTES = 128 << 10, PP_GENERATION_LAST = 1000000 };

struct pp_generation_entry {
	const char *path;
	bool managed; /* false: given back to what it was before any profile */
	struct pp_disk_state origin, before, after;
};

struct pp_generation {
	struct pp_arena arena;
	unsigned int number, previous; /* previous 0: none */
	const char *name, *title;      /* of the profile */
	const char *sha256;	       /* of its text */
	enum pp_registration registration;
	const char *applied; /* "2026-11-30T08:10:11Z" */
	struct pp_generation_entry entry[PP_GENERATION_ENTRIES];
	unsigned int n;
	const char *dir[PP_GENERATION_DIRS]; /* made for it, outermost first */
	unsigned int n_dirs;
};

int pp_generation_new(struct pp_generation **ret); /* -ENOMEM */
struct pp_generation *pp_generation_free(struct pp_generation *g);

void pp_generation_write(const struct pp_generation *g, struct pp_buf *ret);
/* Strict: -EINVAL with the line; paths are places of profiles, nothing is there twice. */
int pp_generation_parse(const char *name, const char *text, size_t len, struct pp_generation **ret,
			struct pp_error *err);
const struct pp_generation_entry *pp_generation_find(const struct pp_generation *g,
						     const char *path);

struct pp_journal {
	bool rollback;	 /* else: apply */
	unsigned int of; /* the generation that is applied or taken back */
	bool committed;	 /* from here on it is completed, not undone */
};

void pp_journal_write(const struct pp_journal *j, struct pp_buf *ret);
int pp_journal_parse(const char *name, const char *text, size_t len, struct pp_journal *ret,
		     struct pp_error *err);

/* "current": the number of the generation in effect, as its own small file. */
void pp_current_write(unsigned int number, struct pp_buf *ret);
int pp_current_parse(const char *name, const char *text, size_t len, unsigned int *ret,
		     struct pp_error *err);

#endif
