/* SPDX-License-Identifier: Apache-2.0 */
/* What perftest prints. Pure. */
#ifndef PP_BENCH_WITNESS_H
#define PP_BENCH_WITNESS_H

#include <stdint.h>

/*
 * BW average of the row of @size bytes in ib_write_bw's text, in MB/s (10^6); its column is in
 * MiB/s. -ENOENT: there is no such row.
 */
int pp_witness_parse(const char *text, uint64_t size, double *ret_mbytes);

#endif
