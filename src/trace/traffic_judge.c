/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a window's bytes fit. Pure.
 */
#include <stdio.h>

#include "base/compiler.h"
#include "trace/traffic.h"
#include "base/banned.h"

/* Below that the machine's own noise is larger than what is looked for. */
static const double LEAST = 64 << 20;
/*
 * Memory traffic for each byte of the ports. Staged: written once and read once, so near 2; half of
 * that is lost at most where the cache holds a part. Direct: none but the rest of the machine's.
 */
static const double STAGED_FROM = 1.5, DIRECT_TO = 0.25;
/* A GPU's link carried the ports' bytes when it carried this share of them. */
static const double CARRIED = 0.8;

const char *pp_traffic_sign_name(enum pp_traffic_sign s)
{
	static const char *const names[] = {
		[PP_TRAFFIC_UNKNOWN] = "unknown",
		[PP_TRAFFIC_NONE] = "no traffic",
		[PP_TRAFFIC_DIRECT] = "fits direct",
		[PP_TRAFFIC_STAGED] = "host-staged",
	};

	return names[s];
}

static double gpu_bytes(const struct pp_traffic *t, bool *ret_known)
{
	double sum = 0;

	*ret_known = t->n_gpus > 0;
	for (unsigned int i = 0; i < t->n_gpus; i++) {
		*ret_known = *ret_known && t->gpu[i].known;
		sum += t->gpu[i].sent + t->gpu[i].received;
	}
	return sum;
}

enum pp_traffic_sign pp_traffic_judge(const struct pp_traffic *t, char *why, size_t size)
{
	double ports = 0, memory = t->host.read + t->host.written, gpus;
	bool gpus_known;

	for (unsigned int i = 0; i < t->n_ports; i++)
		ports += (double)t->port[i].sent + (double)t->port[i].received;
	gpus = gpu_bytes(t, &gpus_known);
	if (!t->n_ports) {
		(void)snprintf(why, size, "%s", t->why_ports);
		return PP_TRAFFIC_UNKNOWN;
	}
	if (ports < LEAST) {
		(void)snprintf(why, size, "the ports carried %.1f MiB; %.0f are needed to judge",
			       ports / (1 << 20), LEAST / (1 << 20));
		return PP_TRAFFIC_NONE;
	}
	if (!gpus_known) {
		(void)snprintf(why, size, "PCIe bytes of the GPUs are not known: %s",
			       t->n_gpus ? "NVML gives none" : t->why_gpus);
		return PP_TRAFFIC_UNKNOWN;
	}
	if (gpus < CARRIED * ports) {
		(void)snprintf(why, size,
			       "the GPUs' links carried %.2f bytes for each byte of the ports: "
			       "other memory took part",
			       gpus / ports);
		return PP_TRAFFIC_UNKNOWN;
	}
	if (!t->host.known) {
		(void)snprintf(why, size, "bytes of host memory are not known: %s", t->host.why);
		return PP_TRAFFIC_UNKNOWN;
	}
	(void)snprintf(why, size,
		       "host memory carried %.2f bytes for each byte of the ports, the GPUs' links "
		       "%.2f",
		       memory / ports, gpus / ports);
	if (memory >= STAGED_FROM * ports)
		return PP_TRAFFIC_STAGED;
	return memory <= DIRECT_TO * ports ? PP_TRAFFIC_DIRECT : PP_TRAFFIC_UNKNOWN;
}

static void write_ports(struct pp_json *j, const struct pp_traffic *t)
{
	pp_json_array(j, "ports");
	for (unsigned int i = 0; i < t->n_ports; i++) {
		const struct pp_traffic_port *p = &t->port[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "hca", p->hca);
		pp_json_u64(j, "port", p->port);
		pp_json_u64(j, "sent_bytes", p->sent);
		pp_json_u64(j, "received_bytes", p->received);
		pp_json_bool(j, "simulated", p->simulated);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static void write_gpus(struct pp_json *j, const struct pp_traffic *t)
{
	pp_json_array(j, "gpus");
	for (unsigned int i = 0; i < t->n_gpus; i++) {
		const struct pp_traffic_gpu *g = &t->gpu[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "gpu", g->bdf);
		if (g->known) {
			pp_json_u64(j, "pcie_sent_bytes", (uint64_t)g->sent);
			pp_json_u64(j, "pcie_received_bytes", (uint64_t)g->received);
			pp_json_bool(j, "sampled", g->sampled);
		} else {
			pp_json_str(j, "unknown", g->why);
		}
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

void pp_traffic_write(struct pp_json *j, const char *key, const struct pp_traffic *t)
{
	char why[256];
	enum pp_traffic_sign sign = pp_traffic_judge(t, why, sizeof(why));

	pp_json_object(j, key);
	pp_json_str(j, "about", pp_about_name(PP_TRAFFIC));
	pp_json_str(j, "witness", pp_witness_name(PP_BY_KERNEL));
	pp_json_str(j, "scope", pp_scope_name(PP_OF_NODE));
	pp_json_i64(j, "window_ms", t->window / PP_MILLISECOND);
	write_ports(j, t);
	write_gpus(j, t);
	pp_json_object(j, "host_memory");
	if (t->host.known) {
		pp_json_u64(j, "read_bytes", (uint64_t)t->host.read);
		pp_json_u64(j, "written_bytes", (uint64_t)t->host.written);
	} else {
		pp_json_str(j, "unknown", t->host.why);
	}
	pp_json_end_object(j);
	if (t->host.io_known) {
		pp_json_object(j, "io_stacks");
		pp_json_u64(j, "from_devices_bytes", (uint64_t)t->host.io_in);
		pp_json_u64(j, "to_devices_bytes", (uint64_t)t->host.io_out);
		pp_json_end_object(j);
	}
	pp_json_str(j, "sign", pp_traffic_sign_name(sign));
	pp_json_str(j, "why", why);
	pp_json_end_object(j);
}
