/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_exporter: GET /metrics over HTTP, and nothing else.
 *
 * It has no thread: questions to drivers are asked by fork(), which a second thread would make
 * unsafe. Who owns it waits for pp_exporter_fd() besides his own work, and calls
 * pp_exporter_run(). A scrape that comes during a round is answered after it. Connections, their
 * memory and their time are bounded.
 */
#ifndef PP_DAEMON_EXPORTER_H
#define PP_DAEMON_EXPORTER_H

#include "base/error.h"
#include "daemon/metrics.h"

struct pp_exporter;

/* Where Prometheus looks when nobody says otherwise. */
#define PP_EXPORTER_DEFAULT "127.0.0.1:9758"

/* Writes the metrics of now. Not 0: the client is told that there are none. */
typedef int pp_exporter_page(void *ctx, enum pp_metrics_format format, struct pp_buf *to);

/*
 * @listen: "127.0.0.1:9758", "[::1]:9758"; a port alone is of loopback. -EINVAL, -EADDRINUSE, as
 * bind(2); the reason in @err.
 */
int pp_exporter_open(const char *listen, pp_exporter_page *page, void *ctx,
		     struct pp_exporter **ret, struct pp_error *err);
struct pp_exporter *pp_exporter_close(struct pp_exporter *e); /* returns NULL */

/* Readable when there is something to do. */
int pp_exporter_fd(const struct pp_exporter *e);
/* Milliseconds after which pp_exporter_run() wants to be called in any case; -1: never. */
int pp_exporter_wait_ms(const struct pp_exporter *e);
/* Does what there is to do; never waits. */
void pp_exporter_run(struct pp_exporter *e);
/* The port that it has: of "127.0.0.1:0" the one that the kernel chose. */
unsigned int pp_exporter_port(const struct pp_exporter *e);

#endif
