/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to a descriptor and from it, all of them.
 */
#ifndef PP_BASE_FD_H
#define PP_BASE_FD_H

#include <stddef.h>

struct pp_buf;

/*
 * However many calls it takes, signals or not; waits as long as a write does. Errors as write(2),
 * and -EIO where it takes nothing; what went before stays written.
 */
int pp_fd_write(int fd, const void *bytes, size_t len);

/*
 * To its end, behind what @to holds. Errors as read(2), and @to's: -EFBIG where there is more than
 * it may hold. What was read before an error is in it.
 */
int pp_fd_read(int fd, struct pp_buf *to);

#endif
