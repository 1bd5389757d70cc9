/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration a kernel was built with, as /proc/config.gz or /boot/config-* hold it.
 */
#ifndef PP_NODE_KCONFIG_H
#define PP_NODE_KCONFIG_H

#include <stdbool.h>
#include <stddef.h>

enum { PP_KCONFIG_MAX = 4 << 20 }; /* bytes of text; real ones have 100 to 400 KiB */

/*
 * Value of CONFIG_<name> in NUL-terminated @text: 'y', 'm', 'n', or '=' for a number or string.
 * "# CONFIG_X is not set" is n. So is a symbol that does not occur, when @whole is true: a symbol
 * whose dependencies are off is left out. '\0' when it does not occur and @whole is false.
 */
char pp_kconfig_value(const char *text, const char *name, bool whole);

/*
 * Does the text reach its end? The last menu of every kernel since 4.15 has a symbol that is
 * always written, set or not.
 */
bool pp_kconfig_whole(const char *text);

/*
 * gzip to text: malloc'ed, NUL-terminated. -EFBIG when it inflates to more than @max bytes,
 * -EBADMSG when it is cut, damaged, no gzip, or no text.
 */
int pp_kconfig_inflate(const void *gz, size_t len, size_t max, char **ret);

#endif
