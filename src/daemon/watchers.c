/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of signals.def has its watcher here, but two: WATCHER, since that something cannot be
 * read is what the looks of all of them say, and KEPT, which the keeper of the database knows.
 */
#include "daemon/watch.h"
#include "base/banned.h"

const struct pp_watcher *const pp_watchers[] = {
	&pp_watch_facts,      &pp_watch_link, &pp_watch_counters,
	&pp_watch_kernel_log, &pp_watch_logs, &pp_watch_host,
	&pp_watch_memlock,    &pp_watch_bar1, &pp_watch_registrations,
	&pp_watch_slo,	      NULL,
};
