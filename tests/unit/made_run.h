/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of one made job, as the reference says that such a job looks: two nodes of one rank each,
 * NCCL's own IB transport, ten DMA-BUF regions a rank (nccl-on-soft), all_reduce. Of each P bytes a
 * rank reduces, a ring's rank sends 2(n-1)/n P: with two ranks P. All that the unit tests change is
 * changed by them.
 */
#ifndef PP_TESTS_MADE_RUN_H
#define PP_TESTS_MADE_RUN_H

#include "unit.h"

#include "nccl/run.h"

static const uint64_t made_payload = 100000000000;

static inline void made_node(struct pp_nccl_run_node *n, unsigned int i)
{
	struct pp_traffic_port *port = &n->traffic.port[0];

	(void)snprintf(n->id, sizeof(n->id), "node-%u", i);
	(void)snprintf(n->host, sizeof(n->host), "gpu%u.example", i);
	n->ranks = 1;
	n->cpu_seconds = 20;
	n->traffic.window = 30 * PP_SECOND;
	n->traffic.n_ports = 1;
	(void)snprintf(port->hca, sizeof(port->hca), "mlx5_0");
	port->port = 1;
	/* with headers, some more than the payload */
	port->sent = port->received = made_payload / 100 * 102;
	n->traffic.host.known = true;
	n->traffic.host.read = 2e9;
	n->traffic.host.written = 1e9;
	(void)snprintf(n->traffic.why_gpus, sizeof(n->traffic.why_gpus), "not asked");
	(void)snprintf(n->expected_hca, sizeof(n->expected_hca), "mlx5_0");
	n->expected_port = 1;
	n->library.made[PP_REGISTERED_DMABUF] = n->kernel.made[PP_REGISTERED_DMABUF] = 10;
	n->library.made[PP_REGISTERED_HOST] = n->kernel.made[PP_REGISTERED_HOST] = 12;
	n->peermem_known = true;
	n->peermem = PP_NCCL_ABSENT;
	(void)snprintf(n->mapped, sizeof(n->mapped), "/usr/lib/libnccl.so.2.28.9");
	n->n_mapped = 1;
	n->was_observed = true;
	n->observed.way[PP_REGISTERED_DMABUF] = (struct pp_observed_way){10, 41943040};
	n->log_bytes = 4000;
}

static inline struct pp_nccl_run *made_run(enum pp_nccl_arm arm)
{
	struct pp_nccl_run *r = NULL;

	assert_int_equal(pp_nccl_run_new(arm, 2, &r), 0);
	r->started = (pp_ns)1764489600 * PP_SECOND;
	r->took = 30 * PP_SECOND;
	(void)snprintf(r->command, sizeof(r->command), "all_reduce_perf -b 8 -e 4G -f 2");
	(void)snprintf(r->library, sizeof(r->library), "/usr/lib/libnccl.so.2.28.9");
	(void)snprintf(r->library_version, sizeof(r->library_version), "2.28.9");
	made_node(&r->node[0], 0);
	made_node(&r->node[1], 1);
	r->judgement.path = PP_NCCL_PATH_GDR;
	r->judgement.expected_path = PP_NCCL_PATH_GDR;
	r->judgement.mechanism = PP_NCCL_MECHANISM_UNDETERMINED;
	r->judgement.claim_gdr = PP_NCCL_PROVEN;
	r->judgement.claim_mechanism = PP_NCCL_UNPROVEN;
	r->judgement.coverage = PP_NCCL_COVER_ALL;
	r->judgement.ranks = r->judgement.ranks_seen = 2;
	(void)snprintf(r->judgement.version, sizeof(r->judgement.version), "2.28.9");
	r->judgement.ends.gdr = 8;
	r->judgement.ends.gdr_sends = 4;
	(void)snprintf(r->networks, sizeof(r->networks), "IB");
	r->speed = (struct pp_nccl_run_speed){.known = true,
					      .large_bytes = (uint64_t)4 << 30,
					      .small_bytes = 8,
					      .large_busbw_gbps = 46.5,
					      .small_us = 24.5,
					      .payload_bytes = made_payload};
	(void)snprintf(r->speed.collective, sizeof(r->speed.collective), "all_reduce");
	return r;
}

static inline void made_setting(struct pp_nccl_run *r, const char *name, const char *value,
				enum pp_nccl_origin from, uint32_t nodes)
{
	struct pp_nccl_run_setting *s = &r->setting[r->n_settings++];

	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	(void)snprintf(s->value, sizeof(s->value), "%s", value);
	s->from = from;
	s->nodes = nodes;
}

#endif
