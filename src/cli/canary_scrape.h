/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_canary_scrape: an endpoint of Prometheus, read once a second while a run lasts, by
 * curl: transports, proxies and certificates are its trade. One that does not answer gives no
 * figures.
 */
#ifndef PP_CLI_CANARY_SCRAPE_H
#define PP_CLI_CANARY_SCRAPE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "judge/metric.h"

struct pp_canary_scrape {
	const char *url; /* NULL: nothing to do */
	pid_t pid;	 /* of curl; 0 none now */
	int from;
	pp_ns next;
	struct pp_buf text;
};

void pp_canary_scrape_open(struct pp_canary_scrape *ret, const char *url);
/* Takes what has come and starts the next when it is time; never waits. */
void pp_canary_scrape_step(struct pp_canary_scrape *s, struct pp_metric_reader *r);
void pp_canary_scrape_done(struct pp_canary_scrape *s);

#endif
