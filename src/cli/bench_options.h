/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `bench`, as its command line gives them: numbers checked, lists taken apart.
 */
#ifndef PP_CLI_BENCH_OPTIONS_H
#define PP_CLI_BENCH_OPTIONS_H

#include "bench/coordinator.h"
#include "cli/verb.h"

extern const struct pp_option pp_bench_options_table[];

/* 0 or an exit code after one line on stderr. Texts are borrowed from @args. */
int pp_bench_options_read(const struct pp_args *args, struct pp_bench_options *ret);

/* getenv(), as pp_launch_read() takes it. */
const char *pp_bench_variable(const char *name);

#endif
