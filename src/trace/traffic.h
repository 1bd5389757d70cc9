/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witnesses of traffic that do not trust the application, over one window: the ports' own byte
 * counters, the GPUs' PCIe bytes by NVML, bytes through memory controllers and I/O stacks.
 *
 * What they can tell apart: bytes staged in host memory cross the memory controllers (once in, once
 * out), unless the last-level cache holds them; bytes that go straight between hca and GPU do not.
 * So much memory traffic speaks for staging, little of it only fits a direct path: it never proves
 * one.
 */
#ifndef PP_TRACE_TRAFFIC_H
#define PP_TRACE_TRAFFIC_H

#include "base/words.h"
#include "node/ask.h"

enum { PP_TRAFFIC_PORTS = 64, PP_TRAFFIC_GPUS = 64 };

struct pp_traffic_port {
	char hca[64];
	unsigned int port;
	bool simulated;		 /* of the software device's made /sys */
	uint64_t sent, received; /* bytes; a simulated one's by memory too */
};

struct pp_traffic_gpu {
	char bdf[32];
	bool known, sampled;   /* sampled: NVML's rate over 20 ms, now and then; else its counter */
	double sent, received; /* bytes; sent: from the GPU */
	char why[160];	       /* not known */
};

/* Of the whole machine. */
struct pp_traffic_host {
	bool known; /* of memory */
	double read, written;
	bool io_known;
	double io_in, io_out; /* from and to devices */
	char why[256];	      /* memory not known */
};

struct pp_traffic {
	pp_ns window;
	struct pp_traffic_port port[PP_TRAFFIC_PORTS];
	unsigned int n_ports;
	char why_ports[256]; /* none */
	struct pp_traffic_gpu gpu[PP_TRAFFIC_GPUS];
	unsigned int n_gpus;
	char why_gpus[256]; /* none */
	struct pp_traffic_host host;
};

enum pp_traffic_sign { PP_TRAFFIC_UNKNOWN, PP_TRAFFIC_NONE, PP_TRAFFIC_DIRECT, PP_TRAFFIC_STAGED };
/* "unknown", "no traffic", "fits direct", "host-staged" */
const char *pp_traffic_sign_name(enum pp_traffic_sign s);

/*
 * Watches for @window: two helpers ("traffic-host", "traffic-gpu") count at the same time. -ENOMEM
 * only. @module_absent: NVIDIA's module is known not to be loaded: NVML is not opened.
 */
int pp_traffic_watch(struct pp_source *s, pp_ns window, bool module_absent, struct pp_traffic *ret);

/*
 * The same where the window's end is not known beforehand: begin() returns when counting has begun,
 * after 3 s at the latest; end() frees, and *ret is what was counted. A day at the most.
 */
struct pp_traffic_span;
int pp_traffic_begin(struct pp_source *s, bool module_absent, struct pp_traffic_span **ret);
int pp_traffic_end(struct pp_source *s, struct pp_traffic_span *span, struct pp_traffic *ret);

/* Pure. One line of why in @why. */
enum pp_traffic_sign pp_traffic_judge(const struct pp_traffic *t, char *why, size_t size);

/* {"window_ms", "ports", "gpus", "host_memory", "io", "sign", "why", "about": "traffic", ...} */
void pp_traffic_write(struct pp_json *j, const char *key, const struct pp_traffic *t);

#endif
