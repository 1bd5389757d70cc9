/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verb run in a child, what it prints kept, for as long as a limit allows. The child is never
 * waited for beyond it: a process that hangs in the kernel cannot be ended, only left.
 */
#ifndef PP_CLI_GUARDED_H
#define PP_CLI_GUARDED_H

#include "base/buf.h"
#include "base/clock.h"
#include "cli/verb.h"

struct pp_guarded {
	struct pp_buf out, err; /* what it printed */
	int code;		/* its exit status; meaningless where @why says something */
	char why[128];		/* it has not answered: "the run did not end in 5000 ms" */
	pp_ns took;
};

/* @limit 0: as long as it takes. 0, or a negative errno where no child could be made. */
int pp_guarded_run(const struct pp_verb *verb, const struct pp_args *args, pp_ns limit,
		   struct pp_guarded *ret);
void pp_guarded_done(struct pp_guarded *g);

#endif
