/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the processor outside its cores, by perf events: bytes through the memory
 * controllers, and through the I/O stacks. Which exist is read from the kernel's own description
 * (/sys/bus/event_source/devices/PMU/{type,cpumask,format/,events/}); a virtual machine has none.
 */
#ifndef PP_TRACE_UNCORE_H
#define PP_TRACE_UNCORE_H

#include "base/error.h"
#include "node/source.h"

enum pp_uncore_kind {
	PP_UNCORE_MEMORY_READ,
	PP_UNCORE_MEMORY_WRITE,
	PP_UNCORE_IO_IN,  /* from devices */
	PP_UNCORE_IO_OUT, /* to devices */
	PP_UNCORE_KINDS
};

enum { PP_UNCORE_COUNTERS = 1024, PP_UNCORE_CPUS = 64 };

/* One event on one processor of its PMU's cpumask. */
struct pp_uncore_counter {
	enum pp_uncore_kind kind;
	uint32_t type;
	uint64_t config[3]; /* config, config1, config2 of struct perf_event_attr */
	int cpu;
	double bytes; /* of one count */
	int fd;	      /* -1: not open */
};

struct pp_uncore {
	struct pp_uncore_counter one[PP_UNCORE_COUNTERS];
	unsigned int n;
};

/*
 * What this machine has. -ENOENT with a line in @err when there is none of a kind that is known;
 * what of it is malformed is left out.
 */
int pp_uncore_find(struct pp_source *s, struct pp_uncore *ret, struct pp_error *err);

/*
 * Starts all of them. -EACCES where perf_event_paranoid forbids it (CAP_PERFMON helps), else as
 * perf_event_open(2); all or none are open.
 */
int pp_uncore_start(struct pp_uncore *u, struct pp_error *err);

/* Bytes since the start; NAN of a kind that has no counter. Closes them. */
int pp_uncore_stop(struct pp_uncore *u, double ret_bytes[PP_UNCORE_KINDS], struct pp_error *err);

/*
 * "event=0x04,umask=0x03" by the PMU's format files ("config:0-7,21"); @format names the
 * directory. -EBADMSG.
 */
int pp_uncore_encode(struct pp_source *s, const char *format, const char *event,
		     uint64_t ret_config[3]);

#endif
