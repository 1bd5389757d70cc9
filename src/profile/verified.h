/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_verified: what `profile verify` saw last, for the comparison after a reboot.
 */
#ifndef PP_PROFILE_VERIFIED_H
#define PP_PROFILE_VERIFIED_H

#include "base/words.h"
#include "profile/disk.h"

struct pp_verified {
	char profile[48], sha256[65]; /* name and digest of the profile */
	char boot_id[64];	      /* "" where not known, as the next two */
	char software[65], topology[65];
	char time[32];
	enum pp_verdict gate[2]; /* identity, prerequisites */
};

void pp_verified_write(const struct pp_verified *v, struct pp_buf *ret);
int pp_verified_parse(const char *name, const char *text, size_t len, struct pp_verified *ret,
		      struct pp_error *err);

/* One line of the comparison. */
struct pp_verified_row {
	const char *what;
	enum pp_verdict verdict;
	const char *before, *after, *why; /* why NULL: it is the same */
};
enum { PP_VERIFIED_ROWS = 6 };

/* @ret borrows from both. */
void pp_verified_compare(const struct pp_verified *before, const struct pp_verified *after,
			 struct pp_verified_row ret[PP_VERIFIED_ROWS]);

#endif
