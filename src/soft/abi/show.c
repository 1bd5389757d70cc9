/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `peerpath soft show` learns of this process, as JSON. Called with the engine's lock held.
 */
#include "soft/abi/object.h"

#include <errno.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/json.h"
#include "soft/abi/show_gpu.h"
#include "soft/abi/show_link.h"
#include "soft/engine/counter.h"
#include "base/banned.h"

struct showing {
	struct pp_json *json;
	struct soft_engine *engine;
	const struct soft_wire *wire;
	struct soft_device *device;
};

/* What the kernel has no name for. */
#define COUNTERS(X)              \
	X(retransmitted_packets) \
	X(ghost_responses)       \
	X(rx_sends)              \
	X(sent_data_bytes)       \
	X(received_data_bytes)   \
	X(qkey_violations)       \
	X(datagrams_too_long)
#define TRAFFIC(X)          \
	X(sent_packets)     \
	X(sent_bytes)       \
	X(sent_trains)      \
	X(send_errors)      \
	X(received_packets) \
	X(received_bytes)   \
	X(received_trains)  \
	X(threaded_trains)  \
	X(threaded_sends)   \
	X(handed_on)
#define DROPS(X)         \
	X(malformed)     \
	X(icrc)          \
	X(no_qp)         \
	X(wrong_address) \
	X(wrong_pkey)    \
	X(wrong_state)

#define WRITE(field) pp_json_u64(s->json, #field, from->field);

static void show_counters(struct showing *s)
{
	const struct soft_counters *from = soft_wire_counters(s->wire);

	pp_json_object(s->json, "counters");
	COUNTERS(WRITE)
	pp_json_end_object(s->json);
}

/* What it has names for, by folder as in /sys. */
static void show_kernel_counters(struct showing *s, enum soft_counter_dir dir, const char *key)
{
	uint64_t value[SOFT_COUNTERS_MAX];

	soft_counter_read(s->wire, value);
	pp_json_object(s->json, key);
	for (size_t i = 0; i < soft_counter_count(); i++)
		if (soft_counter_at(i)->dir == dir)
			pp_json_u64(s->json, soft_counter_at(i)->name, value[i]);
	pp_json_end_object(s->json);
}

static void show_traffic(struct showing *s)
{
	const struct soft_link_stats *from = soft_wire_stats(s->wire);

	pp_json_object(s->json, "traffic");
	TRAFFIC(WRITE)
	pp_json_end_object(s->json);
}

static void show_drops(struct showing *s)
{
	const struct soft_drops *from = soft_wire_drops(s->wire);

	pp_json_object(s->json, "drops");
	DROPS(WRITE)
	pp_json_u64(s->json, "not_handed", soft_wire_stats(s->wire)->not_handed);
	pp_json_u64(s->json, "truncated", soft_wire_stats(s->wire)->truncated);
	pp_json_end_object(s->json);
}

static void show_qp(void *arg, struct soft_qp *qp)
{
	static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	struct showing *s = arg;
	const struct soft_qp_object *o = qp->owner;
	const struct soft_recv_queue *rq = qp->resp.rq;
	char text[64];

	if (soft_context_of(o->ex.qp_base.context)->device != s->device)
		return;
	pp_json_object(s->json, NULL);
	pp_json_u64(s->json, "qpn", qp->num);
	pp_json_str(s->json, "type",
		    qp->transport == SOFT_UD   ? "UD"
		    : qp->transport == SOFT_UC ? "UC"
					       : "RC");
	pp_json_str(s->json, "state", qp->state < PP_ARRAY_LEN(states) ? states[qp->state] : NULL);
	if (qp->transport != SOFT_UD && qp->state >= SOFT_QP_RTR) {
		pp_json_str(
			s->json, "remote",
			soft_config_gid_text((const struct soft_gid *)o->attr.ah_attr.grh.dgid.raw,
					     text, sizeof(text)));
		pp_json_u64(s->json, "remote_qpn", qp->attr.remote_qpn);
	}
	if (qp->state >= SOFT_QP_RTR)
		soft_show_link(s->json, qp);
	pp_json_u64(s->json, "send_open", qp->req.sq.posted - qp->req.sq.retired);
	pp_json_u64(s->json, "recv_posted", rq->posted - rq->taken);
	pp_json_end_object(s->json);
}

static void show_region(void *arg, struct soft_region *region)
{
	struct showing *s = arg;
	const struct soft_mr_object *mr = region->owner;

	/* A window has no memory of its own. */
	if (region->window || soft_context_of(mr->ibv.context)->device != s->device)
		return;
	pp_json_object(s->json, NULL);
	pp_json_str(s->json, "registration", mr->fd >= 0 ? "dmabuf" : "host");
	/* Not mr->ibv: its maker writes there after the region is entered, without the lock. */
	pp_json_u64(s->json, "lkey", region->key);
	pp_json_u64(s->json, "iova", region->iova);
	pp_json_u64(s->json, "length_bytes", region->length);
	pp_json_u64(s->json, "access", (uint64_t)mr->access);
	soft_show_gpu_region(s->json, mr);
	pp_json_end_object(s->json);
}

static void show_device(void *arg, struct soft_device *d)
{
	struct showing *s = arg;
	const struct soft_attach *a = d->attach;
	char text[64];

	if (!a || a->engine != s->engine)
		return;
	s->device = d;
	s->wire = a->wire;
	pp_json_object(s->json, NULL);
	pp_json_str(s->json, "name", d->config.name);
	pp_json_str(s->json, "netdev", d->config.netdev);
	pp_json_array(s->json, "gids");
	for (unsigned int i = 0; i < d->config.num_gids; i++)
		pp_json_str(s->json, NULL,
			    soft_config_gid_text(&d->config.gids[i].gid, text, sizeof(text)));
	pp_json_end_array(s->json);
	pp_json_u64(s->json, "mtu_bytes", d->config.mtu);
	pp_json_array(s->json, "queue_pairs");
	soft_engine_each_qp(s->engine, show_qp, s);
	pp_json_end_array(s->json);
	pp_json_array(s->json, "memory_regions");
	soft_regions_each(soft_engine_regions(s->engine), show_region, s);
	pp_json_end_array(s->json);
	soft_show_faults(s->json, d);
	show_traffic(s);
	show_kernel_counters(s, SOFT_HW_COUNTERS, "hw_counters");
	show_kernel_counters(s, SOFT_PORT_COUNTERS, "port_counters");
	show_counters(s);
	show_drops(s);
	pp_json_end_object(s->json);
}

void soft_show_process(void *arg, struct soft_engine *engine, struct pp_buf *out)
{
	struct pp_json json = PP_JSON(out, /* is_pretty= */ false);
	struct showing s = {.json = &json, .engine = engine};

	(void)arg;
	pp_json_object(&json, NULL);
	pp_json_i64(&json, "pid", getpid());
	pp_json_str(&json, "program", program_invocation_short_name);
	pp_json_u64(&json, "slot", soft_engine_slot(engine));
	pp_json_array(&json, "devices");
	soft_show_devices(&s, show_device);
	pp_json_end_array(&json);
	soft_show_lanes(&json, engine);
	soft_show_gpus(&json, engine);
	pp_json_end_object(&json);
}
