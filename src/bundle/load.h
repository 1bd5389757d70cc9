/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a bundle as they are found, archive and directory alike, into a verified bundle:
 * private to bundle/.
 */
#ifndef PP_BUNDLE_LOAD_H
#define PP_BUNDLE_LOAD_H

#include "bundle/bundle.h"

int pp_bundle_new(struct pp_bundle **ret, struct pp_error *err);
/* A pp_member_handler; @arg is the bundle. */
int pp_bundle_load(void *arg, const struct pp_member *m, struct pp_error *err);
/* After the last member: verifies against the manifest, puts the errors into the record. */
int pp_bundle_loaded(struct pp_bundle *b, struct pp_error *err);

/* Calls @handler for each member of the directory, in the order of their paths. */
int pp_bundle_walk(int dir_fd, pp_member_handler *handler, void *arg, struct pp_error *err);

#endif
