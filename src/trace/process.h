/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that matter to RDMA: those that hold /dev/infiniband/uverbsN or a dma-buf, and those
 * whose threads netlink names. Identity is (pid, start time, PID namespace): a pid alone may be
 * another process a moment later.
 */
#ifndef PP_TRACE_PROCESS_H
#define PP_TRACE_PROCESS_H

#include <sys/types.h>

#include "trace/resource.h"

enum { PP_PROCESSES_MAX = 1024, PP_PROCESS_BUFFERS = 4096, PP_PROCESS_DEVICES = 64 };

/* /proc/PID/fdinfo of a dma-buf descriptor. */
struct pp_process_buffer {
	int fd;
	uint64_t inode, size, count; /* of the object; count: references but one */
	bool has_info;		     /* size, count, exporter; else only the inode */
	char exporter[32];
};

struct pp_process {
	pid_t pid;	  /* of the whole process (tgid), as our PID namespace counts */
	uint64_t started; /* clock ticks after boot: field 22 of /proc/PID/stat */
	uint64_t pid_ns;  /* inode; 0 unknown */
	uint32_t uid;
	char comm[32];
	char cgroup[256];		     /* of cgroup v2, else the longest of v1; "" unknown */
	int64_t pinned_kb;		     /* VmPin; -1 unknown */
	char uverbs[PP_PROCESS_DEVICES][16]; /* "uverbs0"; each once */
	unsigned int n_uverbs;
	unsigned int gpu_descriptors; /* of /dev/nvidia*: does it use a GPU at all? */
	bool descriptors_read;	      /* else why: not ours, no ptrace right */
	struct pp_process_buffer *buffer;
	size_t n_buffers;
	pid_t *thread; /* sorted; those that netlink named and that live in it */
	size_t n_threads;
};

struct pp_processes {
	struct pp_process *item; /* by pid */
	size_t n;
	bool host_pid_ns; /* ours is the machine's first one */
	uint64_t own_pid_ns;
	uint64_t unreadable; /* processes whose descriptors could not be read */
	struct pp_surface_report processes, fdinfo;
};

/* fdinfo's text into @ret (fd and inode of the link stay untouched when it has none). -EBADMSG. */
int pp_fdinfo_parse(const char *text, size_t len, struct pp_process_buffer *ret);

/*
 * Asks "rdma-processes". @resources (may be NULL) names threads to resolve, @pid one process to
 * look at whatever it holds (0: none). -ENOMEM only.
 */
int pp_processes_ask(struct pp_source *s, const struct pp_resources *resources, pid_t pid,
		     struct pp_answer *ret);
int pp_processes_read(const struct pp_answer *a, struct pp_processes *ret);
void pp_processes_done(struct pp_processes *p);

/* By pid, by any of its threads; NULL. */
const struct pp_process *pp_process_find(const struct pp_processes *p, pid_t pid);
const struct pp_process *pp_process_of_thread(const struct pp_processes *p, pid_t tid);

/* Now, live: does the process with this pid still have this start time? */
bool pp_process_is(pid_t pid, uint64_t started);

#endif
