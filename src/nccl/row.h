/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of nccl-tests' table: size count type redop [root], then twice time algbw busbw wrong. With
 * -I four columns follow each half (min max p99 cv), with -S a date and a time end the row.
 */
#ifndef PP_NCCL_ROW_H
#define PP_NCCL_ROW_H

#include "nccl/event.h"

/*
 * TEST_ROW with fields 0 size, 1 wrong out of place, 2 wrong in place, 3 time and 4 busbw out of
 * place; false: it is no row.
 */
bool pp_nccl_row_read(struct pp_nccl_span text, struct pp_nccl_event *ret);

#endif
