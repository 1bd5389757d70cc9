/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting with perf_event_open(2). A PMU outside the cores counts for everybody: it takes no
 * process and knows no user or kernel mode.
 */
#include "trace/uncore.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/* PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING. */
struct reading {
	uint64_t count, enabled, running;
};

static void close_all(struct pp_uncore *u)
{
	for (unsigned int i = 0; i < u->n; i++) {
		if (u->one[i].fd >= 0)
			(void)close(u->one[i].fd);
		u->one[i].fd = -1;
	}
}

static int start(struct pp_uncore_counter *c)
{
	struct perf_event_attr attr = {
		.type = c->type,
		.size = sizeof(attr),
		.config = c->config[0],
		.config1 = c->config[1],
		.config2 = c->config[2],
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, c->cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	c->fd = (int)fd;
	return 0;
}

int pp_uncore_start(struct pp_uncore *u, struct pp_error *err)
{
	for (unsigned int i = 0; i < u->n; i++) {
		int r = start(&u->one[i]);

		if (!r)
			continue;
		close_all(u);
		if (r == -EACCES || r == -EPERM)
			return pp_error_set(err, -EACCES,
					    "perf_event_open: %s: needs CAP_PERFMON, or "
					    "kernel.perf_event_paranoid at 0 or less",
					    pp_errno_name(r));
		return pp_error_set(err, r, "perf_event_open: %s", pp_errno_name(r));
	}
	return 0;
}

int pp_uncore_stop(struct pp_uncore *u, double ret_bytes[PP_UNCORE_KINDS], struct pp_error *err)
{
	double bytes[PP_UNCORE_KINDS];
	int r = 0;

	for (unsigned int k = 0; k < PP_UNCORE_KINDS; k++)
		bytes[k] = NAN;
	for (unsigned int i = 0; i < u->n && !r; i++) {
		struct pp_uncore_counter *c = &u->one[i];
		struct reading now;
		double count;

		if (read(c->fd, &now, sizeof(now)) != sizeof(now) || !now.running) {
			r = pp_error_set(err, -EIO, "a counter of PMU type %u did not run",
					 c->type);
			break;
		}
		/* More events than the PMU has counters take turns: scaled, as perf stat does. */
		count = (double)now.count * ((double)now.enabled / (double)now.running);
		bytes[c->kind] = (isnan(bytes[c->kind]) ? 0 : bytes[c->kind]) + count * c->bytes;
	}
	close_all(u);
	if (r)
		return r;
	for (unsigned int k = 0; k < PP_UNCORE_KINDS; k++)
		ret_bytes[k] = bytes[k];
	return 0;
}
