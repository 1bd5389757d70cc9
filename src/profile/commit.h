/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a generation's files, all or nothing, whatever ends the process.
 *
 *   contents kept ─► generation ─► journal "staged" ─► copies beside each file, of what comes and
 * of what was ─► journal "committed" ─► renames ─► "current" ─► copies and journal removed
 *
 * Before "committed" nothing that anybody reads has changed: the next start undoes. After it
 * everything that is needed is on the disk: the next start completes. A step that fails, as on a
 * full disk, is undone at once by renames alone, which need no room.
 */
#ifndef PP_PROFILE_COMMIT_H
#define PP_PROFILE_COMMIT_H

#include "profile/change.h"

/* State must be locked and nothing unfinished. After success @s shows the new generation. */
int pp_commit_apply(struct pp_state *s, const struct pp_change *c, struct pp_error *err);
/* Takes the generation in effect back. -ENOENT: there is none. */
int pp_commit_rollback(struct pp_state *s, struct pp_error *err);

enum pp_recovery { PP_RECOVERY_NONE, PP_RECOVERY_COMPLETED, PP_RECOVERY_UNDONE };

/* Of what is unfinished; state must be locked. -ESTALE: others have changed a file meanwhile. */
int pp_commit_recover(struct pp_state *s, enum pp_recovery *ret, struct pp_error *err);

#endif
