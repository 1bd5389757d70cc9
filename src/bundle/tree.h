/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members into a directory, and the removal of one.
 */
#ifndef PP_BUNDLE_TREE_H
#define PP_BUNDLE_TREE_H

#include <stdbool.h>

#include "bundle/ustar.h"

/* Creates the member below @dir_fd; its parent must be there, it must not. */
int pp_tree_put(int dir_fd, const struct pp_member *m, struct pp_error *err);
/* Removes what @name is, whole, following no link. 0 or the first negative errno. */
int pp_tree_remove(int parent_fd, const char *name);
bool pp_tree_empty(int dir_fd);

#endif
