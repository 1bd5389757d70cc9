/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_prober. Private to trace/prober*.c.
 */
#ifndef PP_TRACE_PROBER_PARTS_H
#define PP_TRACE_PROBER_PARTS_H

#include "trace/event_line.h"
#include "trace/prober.h"

enum { PP_PROBER_PENDING = 1024, PP_PROBER_PIECE = 65536 };

/* One instance's text. */
struct pp_prober_pipe {
	int fd; /* -1: not open */
	char *piece;
	size_t len; /* of a line that is not whole yet */
};

struct pp_prober {
	struct pp_tracefs tracefs;
	struct pp_btf *btf; /* NULL: none */
	struct pp_kprobes kprobes;
	struct pp_prober_pipe pipe[2]; /* 'a', 'b' */
	pid_t guard;
	struct pp_event_line *pending; /* entries whose return has not come */
	unsigned int n_pending;
	struct pp_event *event;
	size_t n, cap;
	uint64_t lost;
	struct pp_surface_report report[PP_SURFACES];
};

/* Starts the process that removes everything when this one is gone. Negative errno. */
int pp_guard_start(const struct pp_tracefs *t, pid_t *ret);
/* Lets it go: there is nothing left to remove. */
void pp_guard_end(pid_t guard);

/* Takes one line of a pipe. -ENOMEM. */
int pp_prober_take(struct pp_prober *p, const char *line, size_t len);

void pp_prober_report(struct pp_prober *p, enum pp_surface s, enum pp_surface_state state,
		      const char *fmt, ...) PP_PRINTF(4, 5);

#endif
