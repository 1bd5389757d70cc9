/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a service around the monitor: when rounds are, signals of the kernel, and the
 * service's manager.
 */
#ifndef PP_DAEMON_LOOP_H
#define PP_DAEMON_LOOP_H

#include "daemon/exporter.h"
#include "daemon/monitor.h"
#include "daemon/notify.h"

struct pp_loop {
	struct pp_monitor *monitor; /* borrowed */
	struct pp_notify *notify;   /* borrowed */
	bool once;
	int64_t for_ns;		      /* 0: until SIGTERM or SIGINT */
	struct pp_exporter *exporter; /* borrowed; runs between rounds. NULL: there is none */
	/* Behind each round. NULL: nobody. */
	void (*after)(void *ctx, const struct pp_monitor *m);
	void (*say)(void *ctx, const char *text);
	void *ctx;
};

/*
 * SIGTERM and SIGINT end it in order, SIGHUP reads the policy, the baseline and the file of events
 * anew. 0, or the error of a round.
 */
int pp_loop_run(const struct pp_loop *loop, struct pp_error *err);

/* From now on signals are the loop's: before anything that takes long. */
void pp_loop_catch(void);
/* One came that ends it. */
bool pp_loop_stopped(void);

#endif
