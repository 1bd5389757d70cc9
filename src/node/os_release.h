/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os-release(5): KEY=value lines with shell quoting.
 */
#ifndef PP_NODE_OS_RELEASE_H
#define PP_NODE_OS_RELEASE_H

#include <stddef.h>

/*
 * Unquoted value of @key's last assignment in NUL-terminated @text, cut to @size. -ENOENT when
 * there is none, -EBADMSG when its quotes do not end.
 */
int pp_os_release_value(const char *text, const char *key, char *buf, size_t size);

#endif
