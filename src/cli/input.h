/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that the user names on the command line, or "-" for standard input.
 */
#ifndef PP_CLI_INPUT_H
#define PP_CLI_INPUT_H

#include "base/buf.h"
#include "base/error.h"

/*
 * Reads @file to its end into @ret, an empty buffer whose max bounds it. 0, or a negative errno
 * with a line in @err that names the file; -EFBIG when it is longer than the bound.
 */
int pp_input_read(const char *file, struct pp_buf *ret, struct pp_error *err);
/* What messages call it: "standard input" for "-". */
const char *pp_input_name(const char *file);

/* Text as it comes, whatever its length. */
typedef void pp_input_push(void *arg, const char *bytes, size_t len);
/*
 * Gives what @fd has to @push, piece by piece, to its end. 0; -EINTR when the program was
 * interrupted; -EBADMSG when it is no text: *ret_why says why; or as read(2).
 */
int pp_input_stream(int fd, pp_input_push *push, void *arg, const char **ret_why);

/* Why a file that begins with @bytes is no text; NULL when it may be one. */
const char *pp_input_not_text(const char *bytes, size_t len);

#endif
