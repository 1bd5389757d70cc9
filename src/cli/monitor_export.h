/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_monitor_export: what the monitor knows, for others: --listen and --textfile.
 */
#ifndef PP_CLI_MONITOR_EXPORT_H
#define PP_CLI_MONITOR_EXPORT_H

#include "cli/verb.h"
#include "daemon/exporter.h"
#include "daemon/monitor.h"

struct pp_monitor_export {
	const struct pp_args *args;
	const struct pp_monitor *monitor; /* borrowed; set by its owner once it is open */
	struct pp_exporter *exporter;	  /* NULL: not wanted */
	const char *textfile;		  /* NULL: not wanted */
	int64_t next_ns;		  /* monotonic, of the textfile */
	int failed;			  /* the last error of the textfile, which was told */
};

/* 0, or an exit code after one line. */
int pp_monitor_export_open(struct pp_monitor_export *e, const struct pp_args *args);
void pp_monitor_export_close(struct pp_monitor_export *e);

/* Behind a round: the textfile, when it is time, or @now. A fault is told once and tried again. */
void pp_monitor_export_round(struct pp_monitor_export *e, bool now);

#endif
