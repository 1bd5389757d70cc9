/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer and the parser of a manifest share: private to manifest*.c.
 */
#ifndef PP_BUNDLE_MANIFEST_TEXT_H
#define PP_BUNDLE_MANIFEST_TEXT_H

#include "bundle/manifest.h"

/* What stands in the place of the digest while it is taken: 64 digits. */
extern const char *const pp_manifest_zeros;

/* Copies the names. NULL with @err filled: -ENOMEM, -EFBIG. */
struct pp_manifest_item *pp_manifest_append(struct pp_manifest *m, enum pp_member_kind kind,
					    const char *path, const char *target,
					    struct pp_error *err);

#endif
