/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where profiles are found: those of the site (/etc/peerpath/profiles.d) hide the given ones of the
 * same name (installed; those of the source tree when none are installed).
 */
#ifndef PP_PROFILE_SHELF_H
#define PP_PROFILE_SHELF_H

#include "profile/profile.h"

/*
 * @word: a name, or the path of a file when it holds a '/'. -ENOENT names those that there are.
 * *ret_path (may be NULL) is malloc'ed.
 */
int pp_shelf_load(const char *word, struct pp_profile **ret, char **ret_path, struct pp_error *err);

/* Names of all, sorted, each once; at most @size of them. Returns their number, or -errno. */
enum { PP_SHELF_MAX = 128, PP_SHELF_NAME = 64 };
int pp_shelf_list(char names[][PP_SHELF_NAME], unsigned int size);

#endif
