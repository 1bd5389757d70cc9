/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel counts: bytes of ports, of memory controllers and of I/O stacks.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "trace/traffic_parts.h"
#include "trace/uncore.h"
#include "base/banned.h"

static const char CLASS[] = "/sys/class/infiniband";
/* port_xmit_data and port_rcv_data are octets divided by 4
 * (Documentation/ABI/stable/sysfs-class-infiniband). */
enum { OCTETS = 4 };

static int counter(struct pp_source *s, const struct pp_traffic_port *p, const char *name,
		   uint64_t unit, uint64_t *ret)
{
	char path[PP_PATH_MAX], text[32];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s/ports/%u/%s", CLASS, p->hca, p->port, name);
	r = pp_source_text(s, path, text, sizeof(text));
	r = r ? r : pp_parse_u64(text, 0, UINT64_MAX / unit, ret);
	*ret *= r ? 1 : unit;
	return r;
}

/* The made /sys of the software device says so itself. */
static bool is_simulated(struct pp_source *s, const char *hca)
{
	char path[PP_PATH_MAX], text[32];

	return (size_t)snprintf(path, sizeof(path), "%s/%s/peerpath_simulated", CLASS, hca) <
		       sizeof(path) &&
	       !pp_source_text(s, path, text, sizeof(text)) && !strcmp(text, "1");
}

/* Between processes of one host the software device's bytes go by memory, which its port does not
 * count: its queue pairs do. */
static int read_port(struct pp_source *s, struct pp_traffic_port *p)
{
	int r;

	if (p->simulated && !counter(s, p, "hw_counters/peerpath_sent_data_bytes", 1, &p->sent) &&
	    !counter(s, p, "hw_counters/peerpath_received_data_bytes", 1, &p->received))
		return 0;
	r = counter(s, p, "counters/port_xmit_data", OCTETS, &p->sent);
	return r ? r : counter(s, p, "counters/port_rcv_data", OCTETS, &p->received);
}

static void list_ports_of(struct pp_source *s, const char *hca, struct pp_traffic *t)
{
	char dir[PP_PATH_MAX];
	struct pp_names names;
	uint64_t number;
	bool simulated = is_simulated(s, hca);

	if (strlen(hca) >= sizeof(t->port[0].hca) ||
	    (size_t)snprintf(dir, sizeof(dir), "%s/%s/ports", CLASS, hca) >= sizeof(dir) ||
	    pp_source_list(s, dir, &names))
		return;
	for (size_t i = 0; i < names.n && t->n_ports < PP_TRAFFIC_PORTS; i++) {
		struct pp_traffic_port p = {0};

		if (pp_parse_u64(names.name[i], 1, 255, &number))
			continue;
		p.port = (unsigned int)number;
		(void)snprintf(p.hca, sizeof(p.hca), "%s", hca);
		p.simulated = simulated;
		if (!read_port(s, &p))
			t->port[t->n_ports++] = p;
	}
	pp_names_done(&names);
}

static void list_ports(struct pp_source *s, struct pp_traffic *t)
{
	struct pp_names names;

	if (pp_source_list(s, CLASS, &names))
		return;
	for (size_t i = 0; i < names.n; i++)
		list_ports_of(s, names.name[i], t);
	pp_names_done(&names);
}

/* Differences; a port that is gone, or whose counters began anew, is left out. */
static void write_ports(struct pp_json *data, struct pp_source *s, const struct pp_traffic *before)
{
	pp_json_array(data, "ports");
	for (unsigned int i = 0; i < before->n_ports; i++) {
		const struct pp_traffic_port *was = &before->port[i];
		struct pp_traffic_port now = *was;
		uint64_t sent, received;

		if (read_port(s, &now) || __builtin_sub_overflow(now.sent, was->sent, &sent) ||
		    __builtin_sub_overflow(now.received, was->received, &received))
			continue;
		pp_json_object(data, NULL);
		pp_json_str(data, "hca", now.hca);
		pp_json_u64(data, "port", now.port);
		pp_json_bool(data, "simulated", now.simulated);
		pp_json_u64(data, "sent_bytes", sent);
		pp_json_u64(data, "received_bytes", received);
		pp_json_end_object(data);
	}
	pp_json_end_array(data);
}

static void write_bytes(struct pp_json *data, const char *key, double bytes)
{
	if (!isnan(bytes))
		pp_json_u64(data, key, (uint64_t)bytes);
}

int pp_traffic_host_run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct pp_traffic_question *q = arg;
	struct pp_traffic *PP_AUTO_FREE before = calloc(1, sizeof(*before));
	struct pp_uncore *PP_AUTO_FREE uncore = calloc(1, sizeof(*uncore));
	double bytes[PP_UNCORE_KINDS];
	struct pp_error why;
	pp_ns start;
	int r;

	if (!before || !uncore)
		return pp_error_set(err, -ENOMEM, "no memory");
	r = pp_uncore_find(q->src, uncore, &why);
	if (!r)
		r = pp_uncore_start(uncore, &why);
	list_ports(q->src, before);
	start = pp_clock_monotonic();
	pp_traffic_ready(q);
	(void)pp_traffic_until(q, start + q->window);
	if (!r)
		r = pp_uncore_stop(uncore, bytes, &why);
	write_ports(data, q->src, before);
	pp_json_i64(data, "window_us", (pp_clock_monotonic() - start) / 1000);
	if (r) {
		pp_json_str(data, "uncore_error", why.text);
		return 0;
	}
	write_bytes(data, "memory_read_bytes", bytes[PP_UNCORE_MEMORY_READ]);
	write_bytes(data, "memory_written_bytes", bytes[PP_UNCORE_MEMORY_WRITE]);
	write_bytes(data, "io_in_bytes", bytes[PP_UNCORE_IO_IN]);
	write_bytes(data, "io_out_bytes", bytes[PP_UNCORE_IO_OUT]);
	return 0;
}
