/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of the processors' time and of tasks that wait: /proc/stat and pressure
 * stall information (Documentation/accounting/psi.rst). The parsers are pure.
 */
#ifndef PP_NODE_PRESSURE_H
#define PP_NODE_PRESSURE_H

#include <stddef.h>
#include <stdint.h>

#include "node/source.h"

enum pp_pressure { PP_PRESSURE_CPU, PP_PRESSURE_MEMORY, PP_PRESSURE_IO, PP_PRESSURES };

extern const char *const pp_pressure_names[PP_PRESSURES]; /* "cpu", "memory", "io" */

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\n...": seconds since boot. -EBADMSG. */
int pp_pressure_parse(const char *text, double *ret_seconds);
/* As pp_source_text(), and -EBADMSG. */
int pp_pressure_read(struct pp_source *s, enum pp_pressure of, double *ret_seconds);

/* Ticks of all processors together since boot: "cpu  user nice system idle iowait irq ...". */
struct pp_processor_time {
	uint64_t busy, all;
};

/* @text: of /proc/stat; its first line counts. -EBADMSG. */
int pp_processor_time_parse(const char *text, struct pp_processor_time *ret);

#endif
