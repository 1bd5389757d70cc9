/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a program's log without the secrets in it: values of variables whose names say that they
 * are some ("NAME=VALUE", "NAME: VALUE", "NAME set by environment to VALUE"), and one known secret
 * wherever it stands. Always done before a log leaves its run; names and addresses are
 * bundle/scrub.h's, when asked.
 */
#ifndef PP_BUNDLE_LOG_HIDE_H
#define PP_BUNDLE_LOG_HIDE_H

#include "base/buf.h"

/* Appends to @out; how many values were hidden. @secret: NULL or "" none. Pure. */
size_t pp_log_hide(const char *text, size_t len, const char *secret, struct pp_buf *out);

#endif
