/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of gate 3 that prove runs itself: `nccl run` around this program's own collectives, in a
 * process of its own, alone on this node or as one rank of several. What it says is read as a
 * stranger's document is.
 */
#ifndef PP_CLI_LIBRARY_CHILD_H
#define PP_CLI_LIBRARY_CHILD_H

#include <stdbool.h>
#include <stddef.h>

struct pp_library_job {
	bool simulate;	   /* on the software device: two ranks here, all arms in one document */
	bool two_gpus;	   /* a rank for each: on one they take turns unless MPS runs */
	const char *arm;   /* NULL: with its controls */
	bool busy_ok;	   /* though others use the GPU or the hca */
	const char *gpu;   /* BDF; NULL: nccl perf's choice */
	const char *sizes; /* the job's, as nccl perf --sizes takes them; NULL: 8 B to 128 MiB */
	const char *logs;  /* directory where all logs go; NULL: they are not kept */
	/* One of several ranks; @size 0: alone. */
	unsigned int rank, size;
	const char *coordinator; /* host of rank 0 */
	const char *token;	 /* handed on in the environment, never on the command line */
	const char *name;	 /* of the job: tells it from others on the same hosts */
};

enum { PP_LIBRARY_WHY = 400 };

struct pp_library_done {
	char *document; /* malloc'ed; NULL: none (rank 0 alone has one) */
	size_t len;
	int status; /* exit code; -1: a signal */
	/* Its last word; "": it ended well and said nothing. */
	char why[PP_LIBRARY_WHY];
};

/* Waits for its end, which it reaches by itself; Ctrl-C is passed on. Negative errno. */
int pp_library_child_run(const struct pp_library_job *job, struct pp_library_done *ret);

/* The longest that an arm may take, all waiting for others included: for what is printed. */
enum { PP_LIBRARY_ARM_MINUTES = 3 };

#endif
