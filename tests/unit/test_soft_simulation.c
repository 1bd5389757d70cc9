/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requester against responder over an ill wire, on a virtual clock: mixed messages by seed, with a
 * model of every byte. The model knows the order in which verbs promise effects, and nothing of
 * the engine.
 */
#include "unit.h"

#include "base/compiler.h"
#include "soft_sim.h"

enum {
	PAIRS = 3,
	DEPTH = 24, /* work requests under way */
	RECEIVES = 16,
	LARGEST = 200 * 1024,
	SOURCE = 512 * 1024,
	TARGET = 256 * 1024,
	SLOT = 64,
	LANDING = LARGEST + 64,
	GUARD = 0xa5,
};

/* What a posted work request must have done when it completes. */
struct promise {
	uint64_t id;
	uint8_t opcode;
	bool signalled;
	uint32_t from, length; /* READ: bytes of the peer's source, or its slot */
	bool of_slot;
	uint8_t slot[SLOT];
	uint64_t original; /* atomics */
};

/* A message that consumes a receive. */
struct message {
	uint32_t from, length, imm_be;
	bool imm, write;
};

/*
 * One direction. Memory of the peer: source (never changes), target (WRITEs), slot (written,
 * read back, written again behind a fence), counter (atomics).
 */
struct direction {
	struct soft_sim_end *end, *other;
	struct direction *back; /* the other direction */
	uint8_t *source, *target, *model, *landing, *receive;
	uint8_t slot[SLOT], slot_model[SLOT];
	uint64_t counter, counter_model;
	uint32_t key_source, key_target, key_landing, key_receive, key_slot, key_counter;
	struct promise promises[DEPTH];
	uint32_t posted, completed;
	struct message messages[4096];
	uint32_t sent_messages, received_messages, posted_receives;
	uint64_t next_receive_at;
	uint32_t left;
};

struct scene {
	struct soft_sim sim;
	struct soft_sim_node nodes[2 * PAIRS];
	struct soft_sim_end ends[2 * PAIRS];
	struct direction ways[2 * PAIRS];
};

static uint32_t any(struct scene *s, uint32_t below)
{
	return soft_sim_random(&s->sim, below);
}

static uint8_t *filled(struct scene *s, size_t len)
{
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)any(s, 256);
	return bytes;
}

/* Lengths that matter: none, around the packet, large. */
static uint32_t some_length(struct scene *s, uint32_t most)
{
	uint32_t length;

	switch (any(s, 8)) {
	case 0:
		length = 0;
		break;
	case 1:
	case 2:
		length = any(s, 65);
		break;
	case 3:
		length = 1024 * (1 + any(s, 8)) + any(s, 3) - 1;
		break;
	case 4:
		length = any(s, LARGEST + 1);
		break;
	default:
		length = any(s, 9000);
		break;
	}
	return length < most ? length : most;
}

/* @length bytes at @base as one to four pieces. */
static uint16_t cut(struct scene *s, struct soft_sge sges[8], const uint8_t *base, uint32_t length,
		    uint32_t key)
{
	uint16_t n = 0;

	while (length && n < 3 && any(s, 2)) {
		uint32_t part = any(s, length + 1);

		sges[n++] = (struct soft_sge){(uint64_t)(uintptr_t)base, part, key};
		base += part;
		length -= part;
	}
	if (length || any(s, 2))
		sges[n++] = (struct soft_sge){(uint64_t)(uintptr_t)base, length, length ? key : 0};
	return n;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct promise *promise(struct direction *d)
{
	return &d->promises[d->posted % DEPTH];
}

static uint8_t *landing(struct direction *d, uint32_t n)
{
	return d->landing + (size_t)(n % DEPTH) * LANDING;
}

static void post(struct direction *d, struct soft_send_wr *wr, const struct soft_sge *sges)
{
	struct promise *p = promise(d);

	p->id = wr->id = 1000 + d->posted;
	p->opcode = wr->opcode;
	p->signalled = wr->flags & SOFT_WR_SIGNALED;
	assert_true(soft_sim_post(d->end, wr, sges));
	d->posted++;
}

static void post_message(struct scene *s, struct direction *d, bool write)
{
	bool imm = write || any(s, 2);
	struct soft_send_wr wr = {
		.opcode = write ? SOFT_WR_WRITE_IMM : (imm ? SOFT_WR_SEND_IMM : SOFT_WR_SEND),
		.flags = any(s, 3) ? SOFT_WR_SIGNALED : 0,
		.imm_be = any(s, ~0u),
	};
	struct message *m = &d->messages[d->sent_messages];
	struct soft_sge sges[8];

	m->length = some_length(s, write ? TARGET : LARGEST);
	m->from = any(s, SOURCE - m->length);
	m->imm_be = wr.imm_be;
	m->imm = imm;
	m->write = write;
	wr.num_sge = cut(s, sges, d->source + m->from, m->length, d->key_source);
	if (write) {
		uint32_t to = any(s, TARGET - m->length + 1);

		wr.rc.remote_addr = address(d->target) + to;
		wr.rc.rkey = d->key_target;
		memcpy(d->model + to, d->source + m->from, m->length);
	}
	if (m->length <= 64 && any(s, 2))
		wr.flags |= SOFT_WR_INLINE;
	d->sent_messages++;
	post(d, &wr, sges);
}

static void post_write(struct scene *s, struct direction *d)
{
	uint32_t length = some_length(s, TARGET), from = any(s, SOURCE - length);
	uint32_t to = any(s, TARGET - length + 1);
	struct soft_send_wr wr = {
		.opcode = SOFT_WR_WRITE,
		.flags = any(s, 3) ? 0 : SOFT_WR_SIGNALED,
		.rc = {.remote_addr = address(d->target) + to, .rkey = d->key_target},
	};
	struct soft_sge sges[8];

	wr.num_sge = cut(s, sges, d->source + from, length, d->key_source);
	memcpy(d->model + to, d->source + from, length);
	post(d, &wr, sges);
}

static void post_read(struct scene *s, struct direction *d)
{
	struct promise *p = promise(d);
	uint8_t *to = landing(d, d->posted);
	struct soft_send_wr wr = {.opcode = SOFT_WR_READ, .flags = SOFT_WR_SIGNALED};
	struct soft_sge sges[8];

	p->of_slot = false;
	p->length = some_length(s, LARGEST);
	p->from = any(s, SOURCE - p->length);
	memset(to, GUARD, LANDING);
	wr.rc.remote_addr = address(d->back->source) + p->from;
	wr.rc.rkey = d->back->key_source;
	wr.num_sge = cut(s, sges, to + 32, p->length, d->key_landing);
	post(d, &wr, sges);
}

/* Written, then read: in order. Written again: only behind a fence is the READ safe. */
static void post_slot(struct scene *s, struct direction *d)
{
	struct soft_send_wr wr = {
		.opcode = SOFT_WR_WRITE,
		.flags = SOFT_WR_FENCE,
		.num_sge = 1,
		.rc = {.remote_addr = address(d->slot), .rkey = d->key_slot},
	};
	uint32_t from = any(s, SOURCE - SLOT);
	struct soft_sge sge = {address(d->source) + from, SLOT, d->key_source};
	struct promise *p;
	uint8_t *to;

	memcpy(d->slot_model, d->source + from, SLOT);
	post(d, &wr, &sge);
	p = promise(d);
	to = landing(d, d->posted);
	memset(to, GUARD, LANDING);
	p->of_slot = true;
	p->length = SLOT;
	memcpy(p->slot, d->slot_model, SLOT);
	wr.opcode = SOFT_WR_READ;
	wr.flags = SOFT_WR_SIGNALED;
	sge = (struct soft_sge){address(to) + 32, SLOT, d->key_landing};
	post(d, &wr, &sge);
}

static void post_atomic(struct scene *s, struct direction *d)
{
	bool add = any(s, 2);
	uint8_t *to = landing(d, d->posted);
	struct soft_send_wr wr = {
		.opcode = add ? SOFT_WR_FETCH_ADD : SOFT_WR_COMPARE_SWAP,
		.flags = SOFT_WR_SIGNALED,
		.num_sge = 1,
		.rc = {.remote_addr = address(&d->counter), .rkey = d->key_counter},
	};
	struct soft_sge sge = {address(to) + 32, 8, d->key_landing};
	struct promise *p = promise(d);

	memset(to, GUARD, LANDING);
	p->original = d->counter_model;
	p->length = 8;
	if (add) {
		wr.rc.compare_add = (uint64_t)any(s, ~0u) << any(s, 33);
		d->counter_model += wr.rc.compare_add;
	} else {
		wr.rc.compare_add = any(s, 2) ? d->counter_model : any(s, ~0u);
		wr.rc.swap = (uint64_t)any(s, ~0u) << 20;
		if (wr.rc.compare_add == d->counter_model)
			d->counter_model = wr.rc.swap;
	}
	post(d, &wr, &sge);
}

static void post_something(struct scene *s, struct direction *d)
{
	switch (any(s, 8)) {
	case 0:
	case 1:
		post_message(s, d, false);
		break;
	case 2:
		post_message(s, d, true);
		break;
	case 3:
	case 4:
		post_write(s, d);
		break;
	case 5:
		post_read(s, d);
		break;
	case 6:
		post_slot(s, d);
		break;
	default:
		post_atomic(s, d);
		break;
	}
	d->left--;
}

static void check_landing(struct direction *d, const struct promise *p, uint32_t n)
{
	const uint8_t *at = landing(d, n);

	for (unsigned int i = 0; i < 32; i++) {
		assert_int_equal(at[i], GUARD);
		assert_int_equal(at[32 + p->length + i], GUARD);
	}
	if (p->opcode == SOFT_WR_READ)
		assert_memory_equal(at + 32, p->of_slot ? p->slot : d->back->source + p->from,
				    p->length);
	else
		assert_memory_equal(at + 32, &p->original, 8);
}

/* Completions come in the order of posting; those that asked for none have none. */
static void reap(struct direction *d)
{
	struct soft_cqe cqe;

	while (soft_sim_poll(&d->end->send_cq, &cqe)) {
		struct promise *p;

		assert_int_equal(cqe.status, SOFT_WC_SUCCESS);
		do {
			assert_true(d->completed < d->posted);
			p = &d->promises[d->completed++ % DEPTH];
		} while (!p->signalled);
		assert_int_equal(cqe.wr_id, p->id);
		if (p->opcode == SOFT_WR_READ || p->opcode == SOFT_WR_COMPARE_SWAP ||
		    p->opcode == SOFT_WR_FETCH_ADD)
			check_landing(d, p, d->completed - 1);
	}
	/* Places become free without a completion, too. */
	while (d->completed < d->posted && !d->promises[d->completed % DEPTH].signalled &&
	       (int32_t)(d->end->qp.req.sq.retired - d->completed) > 0)
		d->completed++;
}

static uint8_t *receive_slot(struct direction *d, uint32_t n)
{
	return d->receive + (size_t)(n % RECEIVES) * LANDING;
}

static void post_receive(struct scene *s, struct direction *d)
{
	uint8_t *at = receive_slot(d, d->posted_receives);
	struct soft_sge sges[8];
	uint32_t n = cut(s, sges, at + 32, LARGEST, d->key_receive);

	memset(at, GUARD, LANDING);
	assert_int_equal(soft_recv_queue_post(d->other->qp.resp.rq, d->posted_receives, sges, n),
			 0);
	d->posted_receives++;
}

/* Receives are consumed once each, in order, by the messages in order. */
static void receive(struct direction *d)
{
	struct soft_cqe cqe;

	while (soft_sim_poll(&d->other->recv_cq, &cqe)) {
		const struct message *m = &d->messages[d->received_messages];
		const uint8_t *at = receive_slot(d, d->received_messages) + 32;

		assert_true(d->received_messages < d->sent_messages);
		assert_int_equal(cqe.status, SOFT_WC_SUCCESS);
		assert_int_equal(cqe.wr_id, d->received_messages);
		assert_int_equal(cqe.opcode, m->write ? 129 : 128);
		assert_int_equal(cqe.byte_len, m->length);
		assert_int_equal(!!(cqe.flags & 2), m->imm);
		if (m->imm)
			assert_int_equal(cqe.imm_be, m->imm_be);
		if (!m->write)
			assert_memory_equal(at, d->source + m->from, m->length);
		assert_int_equal(at[m->write ? 0 : m->length], GUARD);
		d->received_messages++;
	}
}

static void give_receives(struct scene *s, struct direction *d)
{
	if ((uint64_t)s->sim.now < d->next_receive_at)
		return;
	d->next_receive_at = (uint64_t)s->sim.now + any(s, 300000);
	for (uint32_t n = 1 + any(s, 6); n && d->posted_receives - d->received_messages < RECEIVES;
	     n--)
		post_receive(s, d);
}

static void open_way(struct scene *s, struct direction *d, struct soft_sim_end *end,
		     struct soft_sim_end *other)
{
	uint32_t all = SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_READ |
		       SOFT_ACCESS_REMOTE_WRITE | SOFT_ACCESS_REMOTE_ATOMIC;

	d->end = end;
	d->other = other;
	d->source = filled(s, SOURCE);
	d->target = filled(s, TARGET);
	d->model = malloc(TARGET);
	d->landing = malloc((size_t)DEPTH * LANDING);
	d->receive = malloc((size_t)RECEIVES * LANDING);
	assert_true(d->model && d->landing && d->receive);
	memcpy(d->model, d->target, TARGET);
	d->key_source = soft_sim_register(end->node, d->source, SOURCE, SOFT_ACCESS_REMOTE_READ,
					  soft_sim_pd);
	d->key_landing = soft_sim_register(end->node, d->landing, (size_t)DEPTH * LANDING,
					   SOFT_ACCESS_LOCAL_WRITE, soft_sim_pd);
	d->key_target = soft_sim_register(other->node, d->target, TARGET, all, soft_sim_pd);
	d->key_slot = soft_sim_register(other->node, d->slot, SLOT, all, soft_sim_pd);
	d->key_counter = soft_sim_register(other->node, &d->counter, 8, all, soft_sim_pd);
	d->key_receive = soft_sim_register(other->node, d->receive, (size_t)RECEIVES * LANDING,
					   SOFT_ACCESS_LOCAL_WRITE, soft_sim_pd);
}

static void close_way(struct direction *d)
{
	free(d->source);
	free(d->target);
	free(d->model);
	free(d->landing);
	free(d->receive);
}

static bool finished(const struct direction *d)
{
	return !d->left && d->completed == d->posted && d->received_messages == d->sent_messages;
}

static void play(struct scene *s, uint32_t ways)
{
	pp_ns end = s->sim.now + 600 * PP_SECOND;
	bool all = false;

	while (!all) {
		all = true;
		for (uint32_t i = 0; i < ways; i++) {
			struct direction *d = &s->ways[i];

			reap(d);
			receive(d);
			give_receives(s, d);
			while (d->left && d->posted - d->completed < DEPTH - 2 && any(s, 4))
				post_something(s, d);
			d->end->ready = true;
			all = all && finished(d);
		}
		assert_true(all || soft_sim_step(&s->sim));
		assert_true(s->sim.now < end); /* it hangs */
		for (uint32_t i = 0; i < ways; i++)
			assert_int_equal(s->ends[i].qp.state, SOFT_QP_RTS);
	}
}

static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

static struct {
	uint64_t records, jumbos, fetched, unfetched;
} lanes;

static struct {
	uint32_t ppm; /* regions that are far */
	size_t taken; /* staging that others have */
	uint64_t done, refused;
} device;

/* Memory of atomics stays near: devices that copy have none. */
static void make_far(struct scene *s, struct direction *d)
{
	const struct {
		struct soft_sim_node *node;
		uint32_t key;
	} all[] = {
		{d->end->node, d->key_source},	  {d->end->node, d->key_landing},
		{d->other->node, d->key_target},  {d->other->node, d->key_slot},
		{d->other->node, d->key_receive},
	};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (any(s, 1000000) < device.ppm)
			soft_sim_make_far(&s->sim, all[i].node, all[i].key, device.taken);
}

static uint64_t mixed(uint64_t seed, uint32_t messages, struct soft_sim_plan plan)
{
	struct scene *s = calloc(1, sizeof(*s));
	uint64_t recovered = 0;

	assert_non_null(s);
	soft_sim_init(&s->sim, seed);
	s->sim.plan = plan;
	for (uint32_t i = 0; i < 2 * PAIRS; i++) {
		struct soft_sim_attr attr = soft_sim_attr();

		attr.mtu = mtus[(seed + i / 2) % 5];
		attr.max_rd_atomic = (uint8_t)(1 + (seed + i / 2) % 4 * 5);
		attr.sq_psn = any(s, 2) ? 0xffff00 + any(s, 256) : any(s, 1 << 24);
		attr.min_rnr_timer = (uint8_t)(1 + any(s, 12));
		attr.max_send_wr = DEPTH;
		attr.max_recv_wr = RECEIVES;
		soft_sim_node_init(&s->nodes[i], 32 * 1024 << any(s, 6));
		soft_sim_end_init(&s->sim, &s->ends[i], &s->nodes[i], &attr);
	}
	for (uint32_t i = 0; i < 2 * PAIRS; i++) {
		open_way(s, &s->ways[i], &s->ends[i], &s->ends[i ^ 1]);
		s->ways[i].back = &s->ways[i ^ 1];
		s->ways[i].left = messages / (2 * PAIRS) + 1;
	}
	for (uint32_t i = 0; i < 2 * PAIRS && device.ppm; i++)
		make_far(s, &s->ways[i]);
	for (uint32_t i = 0; i < PAIRS; i++)
		soft_sim_connect(&s->ends[2 * i], &s->ends[2 * i + 1]);
	play(s, 2 * PAIRS);
	for (uint32_t i = 0; i < 2 * PAIRS; i++) {
		struct direction *d = &s->ways[i];

		assert_memory_equal(d->target, d->model, TARGET);
		assert_memory_equal(d->slot, d->slot_model, SLOT);
		assert_true(d->counter == d->counter_model);
		assert_int_equal(s->ends[i].over_window, 0);
		assert_int_equal(s->nodes[i].window.in_flight, 0);
		assert_int_equal(soft_qp_deadline(&s->ends[i].qp), 0);
		recovered += s->nodes[i].counters.retransmitted_packets;
		device.done += s->nodes[i].copier.done;
		device.refused += s->nodes[i].mover.in.refused + s->nodes[i].mover.out.refused;
	}
	lanes.records += s->sim.records;
	lanes.jumbos += s->sim.jumbos;
	lanes.fetched += s->sim.fetched;
	lanes.unfetched += s->sim.unfetched;
	for (uint32_t i = 0; i < 2 * PAIRS; i++) {
		soft_sim_end_done(&s->ends[i]);
		close_way(&s->ways[i]);
	}
	for (uint32_t i = 0; i < 2 * PAIRS; i++)
		soft_sim_node_done(&s->nodes[i]);
	soft_sim_done(&s->sim);
	free(s);
	return recovered;
}

/* Where a checker makes each take many times as long a fifth of the seeds will do: no kind of
 * message or fault is left out by that. */
static uint64_t fewer(uint64_t n)
{
#ifdef __SANITIZE_ADDRESS__
	return (n + 4) / 5;
#else
	return getenv("PEERPATH_TEST_SLOW") ? (n + 4) / 5 : n;
#endif
}

static void clean_wire(void **state)
{
	struct soft_sim_plan plan = {.delay = 8000};

	(void)state;
	for (uint64_t seed = 100; seed < 105; seed++)
		(void)mixed(seed, 300, plan);
}

/* Every packet of every queue pair by a lane. */
static void clean_lane(void **state)
{
	struct soft_sim_plan plan = {.delay = 800, .lane_ppm = 1000000};

	(void)state;
	for (uint64_t seed = 200; seed < 205; seed++)
		(void)mixed(seed, 300, plan);
}

/* Now a lane, now the wire, in the middle of messages; packets overtake each other as they change,
 * get lost, and cannot be fetched. */
static void changing_link(void **state)
{
	(void)state;
	memset(&lanes, 0, sizeof(lanes));
	for (uint64_t seed = 1; seed <= fewer(10); seed++) {
		struct soft_sim_plan plan = {
			.delay = 5000,
			.jitter = seed % 2 ? 0 : 3000,
			.reorder_delay = 40000,
			.loss_ppm = 10000,
			.duplicate_ppm = 10000,
			.reorder_ppm = 20000,
			.corrupt_ppm = 1000,
			.lane_ppm = 500000,
			.unfetched_ppm = 20000,
		};

		assert_true(mixed(seed, 500, plan) > 0);
	}
	assert_true(lanes.records > fewer(1000) && lanes.jumbos > fewer(100) &&
		    lanes.fetched > fewer(100) && lanes.unfetched > fewer(10));
}

static void ill_wire(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= fewer(10); seed++) {
		struct soft_sim_plan plan = {
			.delay = 5000 * (pp_ns)seed,
			.jitter = seed % 2 ? 0 : 3000,
			.reorder_delay = 40000,
			.loss_ppm = 10000,
			.duplicate_ppm = 5000,
			.reorder_ppm = 5000,
			.corrupt_ppm = 2000,
		};

		assert_true(mixed(seed, 1020, plan) > 0);
	}
}

/* Memory of devices, here and there, by copies that take as long as they do; staging that is
 * plenty, or not enough. */
static void far_memory(void **state)
{
	static const pp_ns slow[] = {20000, 300000, 3 * PP_MILLISECOND};

	/* Of few seeds each fifth: they differ in all that is counted by 2, 3, 4 and 12. */
	const uint64_t step = 5 / fewer(5);

	(void)state;
	memset(&device, 0, sizeof(device));
	for (uint64_t seed = step; seed <= 24; seed += step) {
		struct soft_sim_plan plan = {
			.delay = 5000,
			.jitter = seed % 2 ? 0 : 3000,
			.reorder_delay = 40000,
			.loss_ppm = seed % 4 ? 0 : 5000,
			.duplicate_ppm = seed % 4 ? 0 : 5000,
			.reorder_ppm = seed % 4 ? 0 : 5000,
			.lane_ppm = seed % 3 * 500000,
			.unfetched_ppm = seed % 5 ? 0 : 20000,
			.copy_delay = slow[seed % 3],
			.copy_jitter = slow[seed % 3],
		};

		device.ppm = seed % 2 ? 1000000 : 500000;
		device.taken = seed > 12 ? SOFT_STAGING_SEGMENT - 512 * 1024 : 0;
		(void)mixed(seed, 400, plan);
	}
	assert_true(device.done > fewer(1000) && device.refused > fewer(10));
	memset(&device, 0, sizeof(device));
}

static void set(struct soft_fault *fault, const char *text)
{
	struct soft_fault_spec spec;
	struct pp_error err = {0};

	if (soft_fault_spec_parse(text, &spec, &err) || soft_fault_apply(fault, &spec, &err))
		fail_msg("%s: %s", text, err.text);
}

/* The faults of `peerpath soft fault`: the same seed and the same traffic, the same log of them;
 * and every byte right under each. */
static void replayed(void **state)
{
	static const char *const faults[] = {"loss=1%",
					     "duplicate=1%",
					     "reorder=2%",
					     "corrupt=0.1%",
					     "delay=1us~20us@10%",
					     "loss=ack@5..6",
					     "loss=read_response_last@2",
					     "duplicate=atomic@/9"};
	static struct soft_fault fault[5];

	(void)state;
	for (unsigned int k = 0; k < 5; k++) {
		const struct soft_fault_plan none = {.seed = k < 3 ? 11 : 12};
		struct soft_sim_plan plan = {
			.delay = 5000, .reorder_delay = 40000, .fault = &fault[k]};

		soft_fault_init(&fault[k], &none);
		for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			set(&fault[k], faults[i]);
		assert_true(mixed(/* seed= */ k == 4 ? 4 : 3, 2 * fewer(500), plan) > 0);
		assert_true(fault[k].logged > fewer(50));
	}
	/* 0 and 1: the same. 2: the same again. 3: another seed of faults. 4: other traffic. */
	assert_true(fault[0].hash == fault[1].hash && fault[0].logged == fault[1].logged);
	assert_memory_equal(fault[0].log, fault[2].log, sizeof(fault[0].log));
	assert_true(fault[0].hash != fault[3].hash);
	assert_true(fault[3].hash != fault[4].hash);
}

/* The argument names a part of them, so that parts run beside each other. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_wire),	 cmocka_unit_test(clean_lane),
		cmocka_unit_test(changing_link), cmocka_unit_test(ill_wire),
		cmocka_unit_test(far_memory),	 cmocka_unit_test(replayed),
	};
	const char *part = argc > 1 ? argv[1] : "";
	struct CMUnitTest chosen[PP_ARRAY_LEN(tests)];
	size_t n = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(tests); i++)
		if (!strncmp(tests[i].name, part, strlen(part)))
			chosen[n++] = tests[i];
	if (!n)
		return 1;
	return _cmocka_run_group_tests(part, chosen, n, NULL, NULL);
}
