/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/<pid>/environ in a bundle: a process's environment holds tokens and passwords, so only
 * the variables that tell a container are kept.
 */
#ifndef PP_BUNDLE_ENVIRON_H
#define PP_BUNDLE_ENVIRON_H

#include <stdbool.h>

#include "base/buf.h"

enum { PP_ENVIRON_MAX = 1 << 20 };

bool pp_environ_is(const char *path);
/* NUL-separated "NAME=value" in, the allowed ones out. */
void pp_environ_filter(const char *text, size_t len, struct pp_buf *out);

#endif
