/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INI text, as rules, policy and expectation files are written:
 *
 *   # comment
 *   [section name]
 *   key = value
 *         continued on an indented line (joined by one blank)
 *
 * A key may repeat: each occurrence is reported. Values are taken as written, without quotes.
 */
#ifndef PP_BASE_INI_H
#define PP_BASE_INI_H

#include <stddef.h>

#include "base/error.h"

/*
 * Called once per section (key and value NULL), then once per key, in the order of the file.
 * All pointers are borrowed for the call. A negative return stops the parse and is returned;
 * the callback fills @err and need not name file or line: the parser does.
 */
typedef int pp_ini_handler(void *arg, const char *section, const char *key, const char *value,
			   unsigned int line, struct pp_error *err);

/*
 * @name is used in messages. Refuses NUL bytes, keys outside a section, lines without "=",
 * sections without "]", and values over 8 KiB.
 */
int pp_ini_parse(const char *name, const char *text, size_t len, pp_ini_handler *handler, void *arg,
		 struct pp_error *err);

#endif
