/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_command: a command and all that it starts.
 *
 *   we ── guard (subreaper) ── CMD, leader of a process group of its own ── ...
 *    └─── tee: what CMD writes goes on untouched, and a bounded copy to a file; one for standard
 *         output, one for standard error where that is wanted
 *
 * The guard reaps whatever descends from CMD, also what has left its group or parent, and adds up
 * its processor time. Nothing is left behind: neither when CMD has ended (what it leaves gets 5 s),
 * nor when it is told to, nor when we are killed. CMD keeps its standard input, and, when we are
 * in the foreground, the terminal.
 */
#ifndef PP_NCCL_RUN_COMMAND_H
#define PP_NCCL_RUN_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"

struct pp_nccl_command_options {
	char *const *argv, *const *environment; /* borrowed */
	int out;				/* where its standard output goes */
	const char *copy;   /* file of the copy; its end is in "COPY.1" and "COPY.2" */
	uint64_t copy_most; /* bytes of its beginning, and of its end */
	/* The same of standard error, which goes where ours does; NULL: it is ours, and not copied.
	 */
	const char *error_copy;
	int terminal; /* that is passed to it; -1 none */
	/* It stays in our process group: its neighbours in a pipeline share the terminal. */
	bool same_group;
	const sigset_t *mask; /* of signals that it starts with */
};

struct pp_nccl_command {
	pid_t guard, tee[2], pid; /* pid: of CMD, and its group's number */
	int events, orders;	  /* of the guard: read end, write end; -1 closed */
	int terminal;
	bool ended;   /* CMD; @status as waitpid(2) */
	bool over;    /* and everything that it has started */
	bool stopped; /* by a signal; the caller stops too, then continues it */
	int status;
	double cpu_seconds;    /* user and system, of all that were reaped */
	uint32_t left, killed; /* processes that did not die; that outlived CMD */
};

/*
 * -ENOENT, -EACCES...: as execvp(3), and nothing is left. Anything else has a line in @err. Other
 * descriptors of the caller's that are not close-on-exec are CMD's too, as a launcher wants it.
 */
int pp_nccl_command_start(const struct pp_nccl_command_options *o, struct pp_nccl_command *ret,
			  struct pp_error *err);
/* Waits for news, at most until @until (monotonic); a signal ends the wait. */
void pp_nccl_command_step(struct pp_nccl_command *c, pp_ns until);
void pp_nccl_command_signal(const struct pp_nccl_command *c, int number); /* to its group */
/* Kills all of it: over within 5 s. */
void pp_nccl_command_kill(const struct pp_nccl_command *c);
/* After `over`, or instead: what is left of it is killed. What was written has gone on by then. */
void pp_nccl_command_done(struct pp_nccl_command *c);

/* For the parts: */
enum pp_nccl_news {
	PP_NCCL_NEWS_STARTED,
	PP_NCCL_NEWS_FAILED,
	PP_NCCL_NEWS_STOPPED,
	PP_NCCL_NEWS_ENDED,
	PP_NCCL_NEWS_OVER
};
struct pp_nccl_event_of_guard {
	int32_t what, value; /* enum pp_nccl_news; pid, errno, signal, status, left */
	int64_t cpu_us;
	uint32_t killed, zero;
};
/* An order is a signal's number for the group; this one: kill all. */
enum { PP_NCCL_ORDER_KILL = -1 };
/*
 * run_guard.c: the guard's life; @out are CMD's standard output and error (-1:
 * ours). Ends the process.
 */
PP_NORETURN void pp_nccl_guard_run(const struct pp_nccl_command_options *o, pid_t parent,
				   const int out[2], int events, int orders);
struct pp_nccl_tee {
	int in, out;	  /* from CMD; where it would have gone */
	const char *copy; /* as struct pp_nccl_command_options has it */
	uint64_t most;
};
/* run_tee.c: until @t->in ends. Ends the process. */
PP_NORETURN void pp_nccl_tee_run(const struct pp_nccl_tee *t, pid_t parent);

#endif
