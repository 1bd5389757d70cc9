/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end of a connection over real sockets: an engine, a wire, a queue pair with its completion
 * queue, and memory that it may write to. Several of one process share their engine.
 */
#ifndef PP_TESTS_SOFT_END_H
#define PP_TESTS_SOFT_END_H

#include "unit.h"

#include <poll.h>
#include <sys/mman.h>

#include "soft/engine/parts.h"

enum {
	BUFFER = 4 << 20,
	DEPTH = 64,
	PATIENT = 20, /* 4.3 s: on a busy machine a process does wait for 0.2 s to be run */
};

struct end {
	struct soft_engine *engine;
	struct soft_wire *wire;
	struct soft_cq cq;
	struct soft_qp qp;
	struct soft_region region;
	uint8_t *buffer;
	struct soft_gid gid;
};

static inline void on_event(struct soft_qp *qp, enum soft_qp_event event)
{
	(void)qp;
	(void)event;
}

static const struct soft_qp_ops ops = {
	.send = soft_engine_send,
	.event = on_event,
	.ready = soft_engine_qp_ready,
	.withdraw = soft_engine_qp_withdraw,
	.await_read = soft_engine_await_read,
};

static inline void end_open_with(struct end *e, const char *address_v4,
				 enum soft_transport transport, enum soft_wire_threads thread)
{
	static const uint8_t lo6[16] = {[15] = 1};
	/* Who says how sockets are read wants them used. */
	struct soft_link_config config = {.num_gids = 1,
					  .wire_threads = thread,
					  .wire_only = thread != SOFT_WIRE_THREADS_AUTO};
	struct soft_qp_caps caps = {DEPTH, DEPTH, 1, 1, 0};
	struct pp_error err = {0};

	memset(e, 0, sizeof(*e));
	memcpy(e->gid.raw, lo6, 16);
	if (address_v4) {
		memset(e->gid.raw, 0, 16);
		e->gid.raw[10] = e->gid.raw[11] = 0xff;
		e->gid.raw[12] = 127;
		e->gid.raw[15] = 1;
	}
	config.gids[0] = e->gid;
	assert_int_equal(soft_engine_get(NULL, NULL, &e->engine, &err), 0);
	assert_int_equal(soft_engine_open_wire(e->engine, &config, NULL, NULL, &e->wire), 0);
	assert_int_equal(soft_cq_init(&e->cq, 4 * DEPTH), 0);
	e->buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(e->buffer, MAP_FAILED);
	e->qp.transport = transport;
	e->qp.pd = e;
	e->qp.send_cq = e->qp.recv_cq = &e->cq;
	e->qp.ops = &ops;
	e->qp.owner = e;
	assert_int_equal(soft_qp_init(&e->qp, &caps, NULL, false), 0);
	soft_engine_lock(e->engine);
	if (soft_engine_add_qp(e->engine, e->wire, &e->qp, &err) < 0)
		fail_msg("%s", err.text);
	e->region = (struct soft_region){.access = 0xf,
					 .pd = e,
					 .iova = (uintptr_t)e->buffer,
					 .length = BUFFER,
					 .base = e->buffer,
					 .ops = &soft_region_host};
	assert_int_equal(soft_regions_add(soft_engine_regions(e->engine), &e->region), 0);
	soft_engine_unlock(e->engine);
}

static inline void end_open(struct end *e, const char *address_v4, enum soft_transport transport)
{
	end_open_with(e, address_v4, transport, SOFT_WIRE_THREADS_AUTO);
}

static inline void end_connect(struct end *e, uint32_t remote_qpn, uint8_t timeout)
{
	soft_engine_lock(e->engine);
	e->qp.attr = (struct soft_qp_attr){.remote_qpn = remote_qpn,
					   .mtu = 4096,
					   .pkey = 0xffff,
					   .timeout = timeout,
					   .retry_cnt = 2,
					   .rnr_retry = 7,
					   .min_rnr_timer = 12,
					   .max_rd_atomic = 4,
					   .max_dest_rd_atomic = 4,
					   .access = 0xf};
	assert_int_equal(soft_engine_connect(e->engine, &e->qp, &e->gid, &e->gid, 0, 64, 0), 0);
	soft_qp_to_rtr(&e->qp);
	soft_qp_to_rts(&e->qp);
	soft_engine_unlock(e->engine);
}

static inline void end_close(struct end *e)
{
	soft_engine_lock(e->engine);
	soft_regions_remove(soft_engine_regions(e->engine), &e->region);
	soft_qp_reset(&e->qp);
	soft_engine_remove_qp(e->engine, &e->qp);
	soft_engine_unlock(e->engine);
	soft_qp_done(&e->qp);
	soft_cq_done(&e->cq);
	soft_engine_close_wire(e->engine, e->wire);
	soft_engine_put(e->engine);
	munmap(e->buffer, BUFFER);
}

/* The engine's lock is held. */
static inline struct soft_send_wr *stage(struct end *e, uint8_t opcode, uint32_t offset,
					 uint32_t len)
{
	struct soft_send_wr *wr = soft_send_queue_next(&e->qp.req.sq);

	assert_non_null(wr);
	memset(wr, 0, sizeof(*wr));
	wr->id = offset;
	wr->opcode = opcode;
	wr->flags = SOFT_WR_SIGNALED;
	wr->num_sge = 1;
	wr->length = len;
	soft_send_wr_sges(wr)[0] =
		(struct soft_sge){(uintptr_t)e->buffer + offset, len, e->region.key};
	e->qp.req.sq.posted++;
	return wr;
}

static inline void post(struct end *e, uint8_t opcode, uint64_t remote, uint32_t rkey,
			uint32_t offset, uint32_t len)
{
	struct soft_send_wr *wr;

	soft_engine_lock(e->engine);
	wr = stage(e, opcode, offset, len);
	wr->rc.remote_addr = remote;
	wr->rc.rkey = rkey;
	soft_engine_kick(e->engine, &e->qp);
	soft_engine_unlock(e->engine);
}

static inline void await(struct end *e, unsigned int status, bool poll_engine)
{
	struct soft_cqe cqe;
	pp_ns until = pp_clock_monotonic() + 20 * PP_SECOND;

	while (soft_cq_pop(&e->cq, &cqe, 1) == 0) {
		if (pp_clock_monotonic() > until)
			fail_msg("no completion in 20 s");
		if (poll_engine)
			soft_engine_poll(e->engine);
		else
			poll(NULL, 0, 1);
	}
	assert_int_equal(cqe.status, status);
}

static inline void fill(uint8_t *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

#endif
