/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.conf as NCCL reads it: "NAME=value" lines; a line that starts with '#' or has no '=' is
 * skipped; nothing is trimmed, so "NCCL_DEBUG = INFO" sets a variable that nobody reads. NCCL
 * puts each value into its environment unless the name is set already: the first one wins.
 */
#ifndef PP_NODE_NCCL_CONF_H
#define PP_NODE_NCCL_CONF_H

#include <stddef.h>

enum { PP_NCCL_WORD = 1024 }; /* NCCL cuts names and values to one byte less */

/* Both are borrowed for the call. A negative return stops the parse and is returned. */
typedef int pp_nccl_conf_handler(void *arg, const char *name, const char *value);

/* @text has @len bytes; a NUL ends a line's value, as it does in NCCL. */
int pp_nccl_conf_parse(const char *text, size_t len, pp_nccl_conf_handler *handler, void *arg);

#endif
