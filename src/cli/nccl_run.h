/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_running: peerpath nccl run. The arms that were asked for, one after the other:
 * each is the user's command under observation, and differs from the others in what is named.
 */
#ifndef PP_CLI_NCCL_RUN_H
#define PP_CLI_NCCL_RUN_H

#include <limits.h>
#include <signal.h>

#include "cli/nccl_run_party.h"
#include "cli/place.h"
#include "cli/session.h"
#include "judge/control.h"
#include "judge/known.h"
#include "nccl/run.h"
#include "nccl/run_command.h"
#include "nccl/run_settings.h"

struct pp_nccl_running {
	const struct pp_args *args;	    /* borrowed */
	struct pp_session session;	    /* output, source, the collected node */
	enum pp_nccl_arm arm[PP_NCCL_ARMS]; /* in the order they run */
	unsigned int n_arms;
	struct pp_nccl_run *run[PP_NCCL_ARMS]; /* owned, by arm; NULL: not run */
	char **argv;			       /* CMD; NULL-terminated, owned */
	bool own;			       /* CMD is this program's nccl perf */
	struct pp_arena words;		       /* of its */
	pp_ns timeout;			       /* 0 none */
	char observer[PATH_MAX];	       /* the auditor; "" none */
	const char *blind;		       /* why it sees nothing of CMD; NULL */
	struct pp_known_set *known;	       /* owned; NULL until a cause is looked for */
	struct pp_nccl_ranks ranks;	       /* where a launcher started several of us */
	sigset_t mask;			       /* that we were started with */
	struct pp_gate_library *gate;	       /* owned; NULL: @not_judged says why */
	char not_judged[160];
	bool said_ports;  /* that there are no counters of the software device */
	const char *busy; /* others have the GPU or the hca; NULL none seen */
};

/* cmd_nccl_run.c */
int pp_cmd_nccl_run(const struct pp_args *args);

/* nccl_run_default.c: the command where none is given. 0 or an exit code after one line. */
int pp_nccl_running_default(struct pp_nccl_running *c);
/* Of that command: is there a GPU, and an NCCL? */
int pp_nccl_running_ready(struct pp_nccl_running *c);
/* Its ranks meet at another port than ours. -ENOMEM. */
int pp_nccl_running_meet(struct pp_nccl_running *c, struct pp_nccl_environment *e);

/* nccl_run_observer.c: finds the auditor, and whether CMD can be seen by it. */
void pp_nccl_running_observer(struct pp_nccl_running *c);

/* nccl_run_arm.c: one arm, here; an exit code after one line, 0 when it ran. */
int pp_nccl_running_arm(struct pp_nccl_running *c, enum pp_nccl_arm arm);

/* nccl_run_environment.c: of an arm's command. 0 or an exit code after one line. */
int pp_nccl_running_environment(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r,
				struct pp_nccl_environment *e, struct pp_arena *arena);

/* nccl_run_join.c: the operands' runs; an exit code after one line. */
int pp_nccl_running_join(struct pp_nccl_running *c);

/* nccl_run_root.c: the first cause of a job that did not end well, into @r->root_error. */
int pp_nccl_running_root(struct pp_nccl_running *c, const char *dir, const char *line,
			 struct pp_nccl_run *r);

#endif
