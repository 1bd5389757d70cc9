/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "soft_sim.h"

#include "soft/wire/crc32.h"
#include "soft/wire/psn.h"

static const int the_pd;
const void *const soft_sim_pd = &the_pd;

struct soft_sim_attr soft_sim_attr(void)
{
	return (struct soft_sim_attr){
		.mtu = 1024,
		.sq_psn = 0xfffffd,
		.rq_psn = 0x000100,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = 1,
		.max_send_wr = 64,
		.max_recv_wr = 64,
		.access = SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_WRITE |
			  SOFT_ACCESS_REMOTE_ATOMIC,
	};
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t draw(struct soft_sim *sim)
{
	uint64_t z = sim->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t soft_sim_random(struct soft_sim *sim, uint32_t below)
{
	return below ? (uint32_t)(draw(sim) % below) : 0;
}

static bool happens(struct soft_sim *sim, uint32_t ppm)
{
	return ppm && soft_sim_random(sim, 1000000) < ppm;
}

void soft_sim_init(struct soft_sim *sim, uint64_t seed)
{
	memset(sim, 0, sizeof(*sim));
	sim->random = seed;
	sim->now = PP_SECOND;
	sim->plan.delay = 10000;
}

void soft_sim_done(struct soft_sim *sim)
{
	for (size_t i = 0; i < sim->in_heap; i++)
		free(sim->heap[i].bytes);
	free(sim->heap);
}

void soft_sim_node_init(struct soft_sim_node *node, uint64_t window)
{
	memset(node, 0, sizeof(*node));
	assert_int_equal(soft_regions_new(&node->regions), 0);
	soft_window_init(&node->window, window);
}

static void copier_start(struct soft_copier *copier, struct soft_copy *copy)
{
	struct soft_sim_copier *c = (struct soft_sim_copier *)copier;
	struct soft_sim *sim = c->sim;
	unsigned int way = copy->to_device;

	copy->next = NULL;
	copy->begun = sim->now + sim->plan.copy_delay +
		      (pp_ns)soft_sim_random(sim, (uint32_t)sim->plan.copy_jitter);
	if (copy->begun < c->to[way].free_at)
		copy->begun = c->to[way].free_at;
	c->to[way].free_at = copy->begun;
	if (c->to[way].last)
		c->to[way].last->next = copy;
	else
		c->to[way].first = copy;
	c->to[way].last = copy;
}

static void copier_do(struct soft_sim_copier *c, unsigned int way)
{
	struct soft_copy *copy = c->to[way].first;
	void *device = (void *)(uintptr_t)copy->at;
	bool fails = c->sim && happens(c->sim, c->sim->plan.copy_failure_ppm);

	c->to[way].first = copy->next;
	if (!copy->next)
		c->to[way].last = NULL;
	if (copy->what != SOFT_COPY) {
		c->pins += copy->what == SOFT_COPY_PIN;
		c->unpins += copy->what == SOFT_COPY_UNPIN;
		soft_copy_done(copy, c->pin_rc);
		return;
	}
	if (!fails && way)
		memcpy(device, copy->host, copy->len);
	else if (!fails)
		memcpy(copy->host, device, copy->len);
	c->done++;
	c->failed += fails;
	soft_copy_done(copy, fails ? -EIO : 0);
}

/* When the next copy is done; 0: none is under way. */
static pp_ns copier_next(const struct soft_sim_copier *c)
{
	pp_ns a = c->to[0].first ? c->to[0].first->begun : 0;
	pp_ns b = c->to[1].first ? c->to[1].first->begun : 0;

	if (c->held)
		return 0;
	return !a || (b && b < a) ? b : a;
}

static void copier_run(struct soft_sim_copier *c, pp_ns now)
{
	for (unsigned int way = 0; way < 2; way++)
		while (!c->held && c->to[way].first && c->to[way].first->begun <= now)
			copier_do(c, way);
}

static void copier_cancel(struct soft_copier *copier, struct soft_region *region)
{
	(void)copier;
	(void)region;
}

void soft_sim_make_far(struct soft_sim *sim, struct soft_sim_node *node, uint32_t key, size_t taken)
{
	struct soft_region *region = soft_regions_find(node->regions, key);

	assert_non_null(region);
	region->far = region->iova;
	region->base = NULL;
	region->ops = &soft_region_far;
	region->copier = &node->copier.copier;
	if (node->mover.regions++)
		return;
	node->copier.copier = (struct soft_copier){copier_start, copier_cancel};
	node->copier.sim = sim;
	sim->far[sim->num_far++] = node;
	node->staging = malloc(2 * SOFT_STAGING_SEGMENT);
	assert_non_null(node->staging);
	assert_true(soft_staging_add(&node->mover.out, node->staging, NULL));
	assert_true(soft_staging_add(&node->mover.in, node->staging + SOFT_STAGING_SEGMENT, NULL));
	node->taken = taken;
	if (taken) {
		assert_non_null(soft_staging_get(&node->mover.out, taken));
		assert_non_null(soft_staging_get(&node->mover.in, taken));
	}
}

void soft_sim_show_shelf(struct soft_sim_node *from, struct soft_sim_node *to)
{
	assert_int_equal(soft_shelf_make(&from->shelf), 0);
	from->mover.out.segments[0].memory = from->shelf.bytes;
	from->mover.out.segments[0].generations = from->shelf.generations;
	assert_int_equal(soft_shelf_look(from->shelf.fd, (uintptr_t)from->shelf.bytes, &to->view),
			 0);
}

void soft_sim_node_done(struct soft_sim_node *node)
{
	soft_shelf_view_put(node->view);
	/* Copies that nobody waits for any more. */
	node->copier.sim = NULL;
	for (unsigned int way = 0; way < 2; way++)
		while (node->copier.to[way].first)
			copier_do(&node->copier, way);
	assert_int_equal(node->mover.in.in_use, node->taken);
	assert_int_equal(node->mover.out.in_use, node->taken);
	assert_int_equal(node->copier.pins,
			 node->copier.pin_rc ? node->copier.pins : node->copier.unpins);
	free(node->staging);
	soft_shelf_done(&node->shelf);
	for (unsigned int i = 0; i < node->num_regions; i++)
		soft_regions_remove(node->regions, &node->region[i]);
	soft_regions_free(node->regions);
}

uint32_t soft_sim_register(struct soft_sim_node *node, void *base, size_t len, uint32_t access,
			   const void *pd)
{
	struct soft_region *region = &node->region[node->num_regions++];

	assert_true(node->num_regions <= SOFT_SIM_REGIONS);
	*region = (struct soft_region){
		.access = access,
		.pd = pd,
		.iova = (uint64_t)(uintptr_t)base,
		.length = len,
		.base = base,
		.ops = &soft_region_host,
	};
	assert_int_equal(soft_regions_add(node->regions, region), 0);
	return region->key;
}

/* The heap of packets under way: earliest first, in the order of sending among equals. */

static bool before(const struct soft_sim_flight *a, const struct soft_sim_flight *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void fly(struct soft_sim *sim, struct soft_sim_flight flight)
{
	size_t i = sim->in_heap++;

	if (sim->in_heap > sim->heap_room) {
		sim->heap_room = sim->heap_room ? 2 * sim->heap_room : 256;
		sim->heap = realloc(sim->heap, sim->heap_room * sizeof(*sim->heap));
		assert_non_null(sim->heap);
	}
	for (; i && before(&flight, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = flight;
}

static struct soft_sim_flight land(struct soft_sim *sim)
{
	struct soft_sim_flight first = sim->heap[0], last = sim->heap[--sim->in_heap];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < sim->in_heap && before(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (child >= sim->in_heap || before(&last, &sim->heap[child]))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
	return first;
}

/* Bytes of the packet, with a sum over all of them where the ICRC lies. */
static size_t encode(const struct soft_packet *p, const struct iovec *pieces,
		     unsigned int num_pieces, uint8_t **ret)
{
	uint32_t pad = soft_packet_pad(p->payload_bytes), sum, gathered = 0;
	uint8_t *bytes = calloc(1, SOFT_HEADER_MAX + p->payload_bytes + pad + SOFT_ICRC_BYTES);
	size_t at;

	assert_non_null(bytes);
	at = soft_packet_encode(p, bytes);
	for (unsigned int i = 0; i < num_pieces; i++) {
		memcpy(bytes + at + gathered, pieces[i].iov_base, pieces[i].iov_len);
		gathered += (uint32_t)pieces[i].iov_len;
	}
	assert_int_equal(gathered, p->payload_bytes);
	at += gathered + pad;
	sum = soft_crc32(~0u, bytes, at);
	memcpy(bytes + at, &sum, sizeof(sum));
	*ret = bytes;
	return at + SOFT_ICRC_BYTES;
}

static void record(struct soft_sim_end *end, const struct soft_packet *p,
		   const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_sim_sent *sent = &end->sent[end->num_sent++];
	uint32_t at = 0;

	assert_true(end->num_sent <= SOFT_SIM_SENT);
	sent->p = *p;
	for (unsigned int i = 0; i < num_pieces; i++) {
		assert_true(at + pieces[i].iov_len <= SOFT_MTU_MAX);
		memcpy(sent->payload + at, pieces[i].iov_base, pieces[i].iov_len);
		at += (uint32_t)pieces[i].iov_len;
	}
	assert_int_equal(at, p->payload_bytes);
}

static void send_copy(struct soft_sim *sim, struct soft_sim_end *to, const uint8_t *bytes,
		      size_t len, bool record)
{
	struct soft_sim_flight flight = {
		.at = sim->now + sim->plan.delay +
		      (pp_ns)soft_sim_random(sim, (uint32_t)sim->plan.jitter),
		.order = sim->order++,
		.to = to,
		.len = len,
		.record = record,
	};

	if (happens(sim, sim->plan.loss_ppm)) {
		sim->lost++;
		return;
	}
	if (happens(sim, sim->plan.reorder_ppm))
		flight.at += sim->plan.reorder_delay;
	flight.bytes = malloc(len);
	assert_non_null(flight.bytes);
	memcpy(flight.bytes, bytes, len);
	/* Nothing is summed in a lane: memory does not fail. */
	if (!record && happens(sim, sim->plan.corrupt_ppm)) {
		uint32_t bit = soft_sim_random(sim, (uint32_t)len * 8);

		flight.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	fly(sim, flight);
}

/* As a link does it: by the fate that is drawn for the packet. */
static void send_by_fault(struct soft_sim *sim, struct soft_sim_end *to,
			  const struct soft_packet *p, uint8_t *bytes, size_t len)
{
	static const struct soft_gid nobody;
	const struct soft_fault_packet about = {&nobody, &nobody, p->psn, p->opcode, p->syndrome};
	struct soft_fault_fate fate = soft_fault_draw(sim->plan.fault, &about);
	pp_ns delay = sim->plan.delay;

	if (fate.lost) {
		sim->lost++;
		return;
	}
	if (fate.corrupted) {
		uint32_t bit = fate.corrupt_bit % ((uint32_t)len * 8);

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	sim->plan.delay +=
		fate.delay + (fate.reordered ? fate.behind * sim->plan.reorder_delay : 0);
	send_copy(sim, to, bytes, len, /* record= */ false);
	if (fate.duplicated)
		send_copy(sim, to, bytes, len, /* record= */ false);
	sim->plan.delay = delay;
}

/* A request leaves only if its window has room: data with all its bytes (counted already), a READ
 * request (not yet) for the beginning of its answer. One packet may always. */
static void check_window(struct soft_sim_end *end, const struct soft_packet *p)
{
	const struct soft_window *w = &end->node->window;
	unsigned int flags = soft_opcode_find(p->opcode)->flags;

	if (flags & SOFT_IS_RESPONSE)
		return;
	if (flags & (SOFT_IS_SEND | SOFT_IS_WRITE)) {
		if (w->in_flight < p->payload_bytes ||
		    (w->in_flight > w->limit && w->in_flight > p->payload_bytes + 256))
			end->over_window++;
	} else if (w->in_flight && w->in_flight >= w->limit) {
		end->over_window++;
	}
}

static size_t encode_record(struct soft_sim_end *end, const struct soft_packet *p,
			    const struct iovec *pieces, unsigned int num_pieces, uint8_t **ret)
{
	static const struct soft_record_route nowhere;
	struct soft_sim *sim = end->sim;
	bool refer = p->stays && num_pieces && (sim->plan.refer || soft_sim_random(sim, 2));
	size_t len = soft_record_bytes(refer ? 0 : p->payload_bytes, refer ? num_pieces : 0);

	*ret = calloc(1, len);
	assert_non_null(*ret);
	if (refer)
		soft_record_refer(*ret, &nowhere, p, pieces, num_pieces, &end->node->shelf, NULL,
				  0);
	else
		soft_record_write(*ret, &nowhere, p, pieces, num_pieces);
	sim->records++;
	sim->jumbos += soft_packet_count(p) > 1;
	return len;
}

static void on_send(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		    const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_sim_end *end = qp->owner;
	uint8_t *bytes;
	size_t len;

	(void)path;
	check_window(end, p);
	if (!end->peer) {
		record(end, p, pieces, num_pieces);
		return;
	}
	len = qp->jumbo ? encode_record(end, p, pieces, num_pieces, &bytes)
			: encode(p, pieces, num_pieces, &bytes);
	if (!end->peer->killed && end->sim->plan.fault && !qp->jumbo) {
		send_by_fault(end->sim, end->peer, p, bytes, len);
	} else if (!end->peer->killed) {
		send_copy(end->sim, end->peer, bytes, len, qp->jumbo);
		if (happens(end->sim, end->sim->plan.duplicate_ppm))
			send_copy(end->sim, end->peer, bytes, len, qp->jumbo);
	}
	free(bytes);
}

static void on_event(struct soft_qp *qp, enum soft_qp_event event)
{
	struct soft_sim_end *end = qp->owner;

	end->events[event]++;
}

static void on_ready(struct soft_qp *qp)
{
	struct soft_sim_end *end = qp->owner;

	end->ready = true;
}

static void on_withdraw(struct soft_qp *qp)
{
	(void)qp;
}

static const struct soft_qp_ops ops = {
	.send = on_send, .event = on_event, .ready = on_ready, .withdraw = on_withdraw};

void soft_sim_end_init(struct soft_sim *sim, struct soft_sim_end *end, struct soft_sim_node *node,
		       const struct soft_sim_attr *attr)
{
	struct soft_qp_caps caps = {
		.max_send_wr = attr->max_send_wr,
		.max_recv_wr = attr->max_recv_wr,
		.max_send_sge = 8,
		.max_recv_sge = 8,
		.max_inline = 64,
	};

	memset(end, 0, sizeof(*end));
	assert_int_equal(soft_cq_init(&end->send_cq, 1024), 0);
	assert_int_equal(soft_cq_init(&end->recv_cq, 1024), 0);
	end->sim = sim;
	end->node = node;
	end->qp.num = 0x10 + sim->num_ends;
	end->qp.transport = SOFT_RC;
	end->qp.pd = soft_sim_pd;
	end->qp.regions = node->regions;
	end->qp.mover = &node->mover;
	end->qp.send_cq = &end->send_cq;
	end->qp.recv_cq = &end->recv_cq;
	end->qp.window = &node->window;
	end->qp.counters = &node->counters;
	end->qp.ops = &ops;
	end->qp.owner = end;
	assert_int_equal(soft_qp_init(&end->qp, &caps, /* shared_rq= */ NULL, attr->signal_all), 0);
	end->qp.attr = (struct soft_qp_attr){
		.remote_qpn = 0x777,
		.sq_psn = attr->sq_psn,
		.rq_psn = attr->rq_psn,
		.mtu = attr->mtu,
		.pkey = 0xffff,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.min_rnr_timer = attr->min_rnr_timer,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_rd_atomic,
		.access = attr->access,
	};
	assert_true(sim->num_ends < SOFT_SIM_ENDS);
	sim->ends[sim->num_ends++] = end;
}

void soft_sim_end_done(struct soft_sim_end *end)
{
	soft_qp_done(&end->qp);
	soft_cq_done(&end->send_cq);
	soft_cq_done(&end->recv_cq);
	free(end->sent);
}

void soft_sim_alone(struct soft_sim_end *end)
{
	end->sent = calloc(SOFT_SIM_SENT, sizeof(*end->sent));
	assert_non_null(end->sent);
	end->qp.state = SOFT_QP_INIT;
	soft_qp_to_rtr(&end->qp);
	soft_qp_to_rts(&end->qp);
}

void soft_sim_connect(struct soft_sim_end *a, struct soft_sim_end *b)
{
	a->peer = b;
	b->peer = a;
	a->qp.attr.remote_qpn = b->qp.num;
	b->qp.attr.remote_qpn = a->qp.num;
	a->qp.attr.rq_psn = b->qp.attr.sq_psn;
	b->qp.attr.rq_psn = a->qp.attr.sq_psn;
	a->qp.state = b->qp.state = SOFT_QP_INIT;
	soft_qp_to_rtr(&a->qp);
	soft_qp_to_rtr(&b->qp);
	soft_qp_to_rts(&a->qp);
	soft_qp_to_rts(&b->qp);
}

bool soft_sim_post(struct soft_sim_end *end, const struct soft_send_wr *wr,
		   const struct soft_sge *sges)
{
	struct soft_send_wr *slot = soft_send_queue_next(&end->qp.req.sq);
	uint32_t length = 0;

	if (!slot)
		return false;
	*slot = *wr;
	for (unsigned int i = 0; i < wr->num_sge; i++) {
		if (wr->flags & SOFT_WR_INLINE)
			memcpy(soft_send_wr_inline(slot) + length,
			       (const void *)(uintptr_t)sges[i].addr, sges[i].length);
		else
			soft_send_wr_sges(slot)[i] = sges[i];
		length += sges[i].length;
	}
	slot->length = length;
	end->qp.req.sq.posted++;
	end->ready = true;
	return true;
}

bool soft_sim_poll(struct soft_cq *cq, struct soft_cqe *ret)
{
	return soft_cq_pop(cq, ret, 1) == 1;
}

static bool turn(struct soft_sim_end *end)
{
	const struct soft_sim_plan *plan = &end->sim->plan;

	/* The link changes at any time. */
	if (plan->lane_ppm)
		end->qp.jumbo = happens(end->sim, plan->lane_ppm)
					? plan->refer ? (uint32_t)SOFT_RECORD_PAYLOAD_MAX
						      : 4096u << soft_sim_random(end->sim, 7)
					: 0;
	return soft_qp_pump(&end->qp, 64 * 1024, end->sim->now);
}

void soft_sim_pump(struct soft_sim_end *end)
{
	unsigned int turns = 0;

	while (turn(end))
		assert_true(turns++ < 100000);
}

/* Pieces of a record, which lie in this process. */
struct pieces {
	struct soft_pull pull; /* first */
	struct soft_sim *sim;
	const struct soft_record_read *read;
};

static int fetch(struct soft_source *source, uint32_t offset, void *to, size_t len)
{
	struct pieces *p = (struct pieces *)source;
	uint8_t *at = to;

	if (happens(p->sim, p->sim->plan.unfetched_ppm)) {
		memset(to, 0xee, len / 2);
		p->sim->unfetched++;
		return -1;
	}
	for (unsigned int i = 0; i < p->read->record.num_pieces && len; i++) {
		const struct soft_record_piece *piece = &p->read->pieces[i];
		size_t part;

		if (offset >= piece->len) {
			offset -= (uint32_t)piece->len;
			continue;
		}
		part = piece->len - offset < len ? piece->len - offset : len;
		memcpy(at, (const uint8_t *)(uintptr_t)piece->addr + offset, part);
		at += part;
		len -= part;
		offset = 0;
	}
	assert_int_equal(len, 0);
	p->sim->fetched++;
	return 0;
}

static void deliver_record(struct soft_sim *sim, struct soft_sim_flight *flight)
{
	static struct soft_record_read read;
	struct pieces pieces = {.sim = sim, .read = &read};

	if (!flight->to->killed) {
		assert_int_equal(soft_record_read(flight->bytes, flight->len, &read), flight->len);
		assert_int_equal(read.packet.dest_qp, flight->to->qp.num);
		soft_pull_init(&pieces.pull, 0, flight->to->node->view, &read);
		pieces.pull.source.fetch = fetch;
		if (read.record.num_pieces)
			read.packet.source = &pieces.pull.source;
		soft_qp_receive(&flight->to->qp, &read.packet, &flight->to->qp.path, 0, sim->now);
		flight->to->ready = true;
		sim->delivered++;
	}
	free(flight->bytes);
}

static void deliver(struct soft_sim *sim, struct soft_sim_flight *flight)
{
	uint32_t sum = soft_crc32(~0u, flight->bytes, flight->len - SOFT_ICRC_BYTES);
	struct soft_packet p;

	if (memcmp(&sum, flight->bytes + flight->len - SOFT_ICRC_BYTES, sizeof(sum)) != 0) {
		sim->damaged++;
	} else if (!flight->to->killed) {
		assert_int_equal(soft_packet_decode(flight->bytes, flight->len, &p), 0);
		assert_int_equal(p.dest_qp, flight->to->qp.num);
		soft_qp_receive(&flight->to->qp, &p, &flight->to->qp.path, 0, sim->now);
		flight->to->ready = true;
		sim->delivered++;
	}
	free(flight->bytes);
}

/* When something happens next; 0: never. */
static pp_ns next(const struct soft_sim *sim)
{
	pp_ns at = sim->in_heap ? sim->heap[0].at : 0;

	for (unsigned int i = 0; i < sim->num_ends; i++) {
		const struct soft_sim_end *end = sim->ends[i];
		pp_ns deadline = end->killed ? 0 : soft_qp_deadline(&end->qp);

		if (end->ready && !end->killed)
			deadline = sim->now + 1000;
		if (deadline && (!at || deadline < at))
			at = deadline;
	}
	for (unsigned int i = 0; i < sim->num_far; i++) {
		pp_ns due = copier_next(&sim->far[i]->copier);

		if (due && (!at || due < at))
			at = due;
	}
	return at;
}

bool soft_sim_step(struct soft_sim *sim)
{
	pp_ns at;

	for (unsigned int i = 0; i < sim->num_ends; i++) {
		struct soft_sim_end *end = sim->ends[i];

		if (end->ready && !end->killed)
			end->ready = turn(end);
	}
	at = next(sim);
	if (!at)
		return false;
	if (at > sim->now)
		sim->now = at;
	for (unsigned int i = 0; i < sim->num_far; i++)
		copier_run(&sim->far[i]->copier, sim->now);
	while (sim->in_heap && sim->heap[0].at <= sim->now) {
		struct soft_sim_flight flight = land(sim);

		if (flight.record)
			deliver_record(sim, &flight);
		else
			deliver(sim, &flight);
	}
	for (unsigned int i = 0; i < sim->num_ends; i++) {
		struct soft_sim_end *end = sim->ends[i];
		pp_ns deadline = end->killed ? 0 : soft_qp_deadline(&end->qp);

		if (deadline && deadline <= sim->now) {
			soft_qp_tick(&end->qp, sim->now);
			end->ready = true;
		}
	}
	return true;
}
