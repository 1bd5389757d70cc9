/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libnccl the processes of a job have mapped, and how many of them have one.
 */
#ifndef PP_NCCL_RUN_LIBRARY_H
#define PP_NCCL_RUN_LIBRARY_H

#include <stdbool.h>
#include <sys/types.h>

#include "nccl/run.h"
#include "node/source.h"

enum { PP_NCCL_LIBRARIES = 8, PP_NCCL_LIBRARY_PIDS = 1024 };

struct pp_nccl_libraries {
	struct {
		char path[PP_PATH_MAX];
		char version[32]; /* "" not known */
		pid_t pid;	  /* the first that has it */
	} item[PP_NCCL_LIBRARIES];
	unsigned int n;			 /* different files */
	pid_t pid[PP_NCCL_LIBRARY_PIDS]; /* processes that have one */
	unsigned int n_pids;
	bool verbs; /* one of those looked at has libibverbs */
};

/* Looks at the maps of @pid; who has one already is not looked at again. */
void pp_nccl_libraries_look(struct pp_nccl_libraries *l, struct pp_source *s, pid_t pid);
/* Into the run: of several, all are named. */
void pp_nccl_libraries_tell(const struct pp_nccl_libraries *l, struct pp_nccl_run *r);

/* The path of libnccl in one line of /proc/PID/maps, or NULL. Pure. */
const char *pp_nccl_library_of_line(const char *line);

#endif
