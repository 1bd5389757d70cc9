/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to a descriptor, all of them.
 */
#ifndef PP_BASE_FD_H
#define PP_BASE_FD_H

#include <stddef.h>

/*
 * However many calls it takes, signals or not; waits as long as a write does. Errors as write(2),
 * and -EIO where it takes nothing; what went before stays written.
 */
int pp_fd_write(int fd, const void *bytes, size_t len);

#endif
