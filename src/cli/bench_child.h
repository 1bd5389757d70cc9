/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 2 for `prove`: `bench` in a process of its own, so that this one sees the machine as it is
 * even when the traffic runs on the software device, and no driver is called here. What it says is
 * read as a stranger's document is.
 */
#ifndef PP_CLI_BENCH_CHILD_H
#define PP_CLI_BENCH_CHILD_H

#include "bench/result.h"
#include "cli/place.h"
#include "cli/verb.h"

struct pp_bench_child {
	struct pp_bench *bench; /* NULL: there was no run; @why says so */
	char *document;		/* owned: its JSON as it was written */
	char why[640];
	struct pp_place kept; /* of the nodes' bundles; "" none */
	int status;	      /* exit status */
};

/*
 * @args: of prove: --peer, --simulate, --token-file and what else bench takes are handed on.
 * @keep: nodes' bundles are wanted. 0, or an exit code after one line on stderr (no process could
 * be made, interrupted).
 */
int pp_bench_child_run(const struct pp_args *args, bool keep, struct pp_bench_child *ret);
/*
 * In that process: why there was no run. It is in the bundle, too, not on the terminal alone.
 * False: nobody has started us for gate 2.
 */
bool pp_bench_child_tell(const char *why);
/* In that process, at its end: has prove been killed, what it would have put away is removed. */
void pp_bench_child_leave(const struct pp_args *args);
/* Removes the directory too. */
void pp_bench_child_done(struct pp_bench_child *c);

#endif
