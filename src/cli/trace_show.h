/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath trace: what its ways of running share, and how a look is shown.
 */
#ifndef PP_CLI_TRACE_SHOW_H
#define PP_CLI_TRACE_SHOW_H

#include "cli/session.h"
#include "cli/trace_log.h"
#include "cli/trace_soft.h"
#include "trace/trace.h"
#include "trace/traffic.h"

struct pp_tracing {
	const struct pp_args *args; /* borrowed */
	struct pp_session session;
	pid_t pid; /* 0 all */
	pp_ns period;
	struct pp_prober *prober; /* owned; NULL: none, see no_prober */
	struct pp_surface_report no_prober;
	/* The last look. */
	struct pp_trace_registry soft;
	struct pp_trace look;
	bool looked;
	struct pp_trace_logs logs;
	pp_ns window;		    /* of --traffic; 0 none */
	struct pp_traffic *traffic; /* owned; NULL none */
	/* Of CMD. */
	char library[PP_PATH_MAX]; /* libibverbs, as the loader would find it; "" none */
	bool command, ended;
	bool sampled; /* seen by looks only: what lived between them is unknown */
	int status;   /* as waitpid() gives it */
};

/* A new look in place of the last one. 0 or an exit code after one line. */
int pp_tracing_look(struct pp_tracing *t);
/* Of the last look and its logs; and its exit code. */
enum pp_verdict pp_tracing_judge(const struct pp_tracing *t);
int pp_tracing_verdict(const struct pp_tracing *t);
/* The whole document. */
void pp_tracing_show(struct pp_tracing *t);

/* One line of why the node's verdict is what it is; @buf is returned. */
const char *pp_trace_sentence(const struct pp_trace_table *t, char *buf, size_t size);
/* The next command for a row or process that lacks @missing; NULL when nothing is missing. */
const char *pp_trace_next(const struct pp_trace_table *t, unsigned int missing);

/* DMA-BUF objects: of @t->pid alone when it names one. */
void pp_trace_buffers_show(struct pp_out *o, const struct pp_tracing *t);
void pp_trace_buffers_write(struct pp_json *j, const char *key, const struct pp_tracing *t);

/* --traffic's window into *ret, untouched without the option. An exit code after one line. */
int pp_trace_traffic_check(const struct pp_args *args, pp_ns *ret);
void pp_trace_traffic_show(struct pp_out *o, const struct pp_traffic *t);

/* Probes, where they can be had; @live: of registrations as they happen, too. */
void pp_tracing_probe(struct pp_tracing *t, bool live);
/* Takes them down; one line for what could not be. */
void pp_tracing_unprobe(struct pp_tracing *t);

/* Runs CMD, or watches; an exit code. */
int pp_trace_command(struct pp_tracing *t);
int pp_trace_watch(struct pp_tracing *t);

#endif
