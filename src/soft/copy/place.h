/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing bytes where other threads, processes or devices poll them without a completion.
 */
#ifndef SOFT_COPY_PLACE_H
#define SOFT_COPY_PLACE_H

#include <stddef.h>

/*
 * Copies ascending; the last bytes become visible last (a release store that ends the copy): a
 * reader who polls the last 8 aligned bytes finds everything before them (NCCL's slots need this:
 * its sender polls an index that a WRITE brings and reads what lies before it).
 */
void soft_copy_place(void *to, const void *from, size_t len);

#endif
