/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole configuration files of this program (rules, policy), never files of the node examined:
 * those come from a pp_source.
 */
#ifndef PP_JUDGE_TEXTFILE_H
#define PP_JUDGE_TEXTFILE_H

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends the file to @ret, whose maximum bounds it. Refuses what is no regular file, without
 * blocking on it. Errors of open(2) and read(2), -EINVAL, -EFBIG; the line in @err names the path.
 */
int pp_textfile_read(const char *path, struct pp_buf *ret, struct pp_error *err);

#endif
