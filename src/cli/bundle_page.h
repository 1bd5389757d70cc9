/* SPDX-License-Identifier: Apache-2.0 */
/* bundle html: a bundle as one page, which needs nothing but itself. */
#ifndef PP_CLI_BUNDLE_PAGE_H
#define PP_CLI_BUNDLE_PAGE_H

#include "bundle/bundle.h"
#include "cli/session.h"

/* @b is read from; its recording is taken. An exit code. */
int pp_bundle_page(struct pp_session *s, const char *path, struct pp_bundle *b);

#endif
