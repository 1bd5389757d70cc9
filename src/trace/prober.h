/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_prober: kprobes and uprobes through tracefs alone, in a private instance.
 *
 * What is put into the kernel: one directory instances/peerpath-<pid>-<start>, and probes in the
 * group peerpath_<pid>. Both are removed on every way out: by pp_prober_close(), by a guard process
 * that outlives a killed tracer's signals (it waits for the tracer's end and removes them), and,
 * when even that was killed, by the next start of any tracer (pp_prober_sweep()), which removes
 * those whose owner (pid, start time) is gone and no others. Nothing else of tracefs is touched: no
 * global buffer, no global setting, nobody else's probes.
 *
 * Symbols come from /proc/kallsyms, layouts from BTF, syntax from tracefs/README: what one of them
 * does not have is not probed, and said in the events' reports.
 */
#ifndef PP_TRACE_PROBER_H
#define PP_TRACE_PROBER_H

#include "base/error.h"
#include "trace/event.h"
#include "trace/resource.h"

struct pp_prober; /* opaque */

struct pp_prober_options {
	bool live;		/* A, dma_buf:* and the library's */
	bool self;		/* B */
	pid_t pid;		/* only this process and what it forks; 0: all */
	const char *library;	/* path of the libibverbs to watch; NULL: none */
	unsigned int buffer_kb; /* ring buffer a processor; 0 = 1024 */
};

/*
 * 0 with a prober that can do at least one of the wished things; the events' reports tell of the
 * others. -EPERM, -ENOENT (no tracefs), -EOPNOTSUPP with one line in @err: nothing was put into the
 * kernel.
 */
int pp_prober_open(const struct pp_prober_options *options, struct pp_prober **ret,
		   struct pp_error *err);
/* Takes down all of it; an error is what could not be removed (told in @err). NULL-safe. */
int pp_prober_close(struct pp_prober *p, struct pp_error *err);

/* Readable when there are events. */
int pp_prober_fd(const struct pp_prober *p);
/* Events so far, without waiting, appended to the prober's. -EIO. */
int pp_prober_drain(struct pp_prober *p, struct pp_error *err);
/*
 * B: dumps the regions of every device (the question "rdma-resources" of @s) and collects one event
 * each. @ret is what netlink itself said in that dump (pp_resources_done() frees). A region of @ret
 * without an event makes the surface `cut`.
 */
int pp_prober_self(struct pp_prober *p, struct pp_source *s, struct pp_resources *ret,
		   struct pp_error *err);
/* All events so far as the answer "trace-events"; also into @s's record, when it has one. */
int pp_prober_answer(struct pp_prober *p, struct pp_source *s, struct pp_answer *ret);

/* Removes what killed tracers of this machine left; *ret_removed how many. Needs root. */
int pp_prober_sweep(unsigned int *ret_removed, struct pp_error *err);

#endif
