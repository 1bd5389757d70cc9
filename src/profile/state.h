/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_state: what profiles have left below a root, in /var/lib/peerpath/profile:
 *
 *   lock               one change at a time
 *   current            number of the generation in effect (0 or absent: none)
 *   generations/N      what generation N changed, and what was there before
 *   blobs/SHA256       contents of files, before and after
 *   journal            the change that is under way; absent: none
 *   verified           what 'profile verify' saw last
 *
 * Each of them is written under another name, put on the disk, then renamed.
 */
#ifndef PP_PROFILE_STATE_H
#define PP_PROFILE_STATE_H

#include "profile/generation.h"

#define PP_STATE_DIR "/var/lib/peerpath/profile"

struct pp_state {
	const struct pp_disk *disk;    /* borrowed */
	int lock;		       /* -1: not locked */
	struct pp_generation *current; /* NULL: none */
	bool hidden;		       /* may not be read by this user */
	bool unfinished;
	struct pp_journal journal; /* of what is unfinished */
};

/* Reads only. Damaged state is -EBADMSG, with the file in @err. */
int pp_state_read(const struct pp_disk *d, struct pp_state *ret, struct pp_error *err);
/* Makes the directories, takes the lock, and reads again under it. -EAGAIN: another has it. */
int pp_state_lock(struct pp_state *s, struct pp_error *err);
void pp_state_done(struct pp_state *s);

/* Reads generation @number; it must be whole. */
int pp_state_generation(const struct pp_disk *d, unsigned int number, struct pp_generation **ret,
			struct pp_error *err);
/* The content that @state stands for; "" of what is absent. -EBADMSG: damaged or lost. */
int pp_state_content(const struct pp_disk *d, const struct pp_disk_state *state, struct pp_buf *ret,
		     struct pp_error *err);
/* Keeps a content by its digest. */
int pp_state_keep(const struct pp_disk *d, const struct pp_disk_state *state, const char *bytes,
		  struct pp_error *err);
/* Replaces PP_STATE_DIR/@name. */
int pp_state_put(const struct pp_disk *d, const char *name, const struct pp_buf *text,
		 struct pp_error *err);
/* Path of generation @number, below PP_STATE_DIR. */
void pp_state_generation_name(unsigned int number, char name[64]);

#endif
