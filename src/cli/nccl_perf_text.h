/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `nccl perf` prints while it runs: the lines of nccl-tests, so that whatever reads its tables
 * reads these, and behind each table what those lack. Lines of our own begin with '#'.
 */
#ifndef PP_CLI_NCCL_PERF_TEXT_H
#define PP_CLI_NCCL_PERF_TEXT_H

#include "nccl/perf.h"

/* As pp_perf_watch has them; to standard output. */
void pp_perf_text_begin(void *arg, const struct pp_perf *p, const struct pp_perf_run *r);
void pp_perf_text_row(void *arg, const struct pp_perf *p, const struct pp_perf_row *row);
void pp_perf_text_end(void *arg, const struct pp_perf *p, const struct pp_perf_run *r);
void pp_perf_text_log(void *arg, unsigned int rank, const char *text);
/* The last lines: what is to be known of clocks, of what was not verified. */
void pp_perf_text_notes(const struct pp_perf *p);

#endif
