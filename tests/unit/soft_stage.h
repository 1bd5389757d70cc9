/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queue pair with memory, completion queues and a wire that only remembers: what tests of
 * responder and datagrams play their scripts on. Include after unit.h.
 *
 * Memory lies between guards that must never change. Remote keys all name the same bytes; they
 * differ in what they allow.
 */
#ifndef PP_TESTS_SOFT_STAGE_H
#define PP_TESTS_SOFT_STAGE_H

#include <stdbool.h>

#include "soft/qp/parts.h"

enum {
	STAGE_MTU = 256,
	STAGE_PSN = 100,
	STAGE_BYTES = 8192,
	STAGE_GUARD = 512,
	STAGE_SENT = 512,
	STAGE_PEER = 0x77,
	STAGE_QP = 0x42,
	STAGE_RNR_TIMER = 12,
};
#define STAGE_VA      UINT64_C(0x7f0000001000) /* of remote keys */
#define STAGE_BUFFERS UINT64_C(0x7e0000002000) /* of local ones */

enum stage_key {
	KEY_ALL,
	KEY_READ,     /* remote read only */
	KEY_LOCAL,    /* nothing remote; the receive buffers */
	KEY_SEALED,   /* the receive buffers, not even to be written locally */
	KEY_FOREIGN,  /* of another protection domain */
	KEY_INDIRECT, /* all rights, but the processor cannot address it */
	KEY_BROKEN,   /* the same, and every access fails */
	KEY_GONE,     /* never registered */
	STAGE_KEYS = KEY_GONE,
};

struct stage_memory {
	uint8_t before[STAGE_GUARD];
	uint8_t bytes[STAGE_BYTES];
	uint8_t after[STAGE_GUARD];
};

struct stage_sent {
	struct soft_packet p;
	struct soft_path path;
	uint8_t payload[SOFT_MTU_MAX];
};

struct stage {
	struct soft_qp qp;
	struct soft_regions *regions;
	struct soft_region region[STAGE_KEYS];
	struct soft_cq send_cq, recv_cq;
	struct soft_window window;
	struct soft_counters counters;
	struct stage_memory remote, local;
	struct stage_sent sent[STAGE_SENT];
	unsigned int num_sent, seen_sent;
	enum soft_qp_event events[8];
	unsigned int num_events, seen_events;
};

/* Bytes that tell where they come from. */
static inline uint8_t stage_byte(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 37 + i * 7 + (i >> 8));
}

static inline void stage_send(struct soft_qp *qp, const struct soft_path *path,
			      const struct soft_packet *p, const struct iovec *pieces,
			      unsigned int num_pieces)
{
	struct stage *s = qp->owner;
	struct stage_sent *to = &s->sent[s->num_sent++];
	size_t at = 0;

	assert_true(s->num_sent < STAGE_SENT);
	/* 9.7.1.1: the state MIGRATED is that of a queue pair with no other path. */
	assert_true(p->migrated);
	to->p = *p;
	to->path = *path;
	for (unsigned int i = 0; i < num_pieces; i++) {
		assert_true(pieces[i].iov_len <= sizeof(to->payload) - at);
		memcpy(to->payload + at, pieces[i].iov_base, pieces[i].iov_len);
		at += pieces[i].iov_len;
	}
	assert_int_equal(at, p->payload_bytes);
}

static inline void stage_event(struct soft_qp *qp, enum soft_qp_event event)
{
	struct stage *s = qp->owner;

	assert_true(s->num_events < 8);
	s->events[s->num_events++] = event;
}

static inline uint8_t *stage_nowhere(const struct soft_region *region, uint64_t offset)
{
	(void)region;
	(void)offset;
	return NULL;
}

static inline int stage_fetch(const struct soft_region *region, uint64_t offset, void *to,
			      size_t len)
{
	if (!region->base)
		return -5;
	assert_true(offset + len <= region->length);
	memcpy(to, region->base + offset, len);
	return 0;
}

static inline int stage_store(struct soft_region *region, uint64_t offset, const void *from,
			      size_t len)
{
	if (!region->base)
		return -5;
	assert_true(offset + len <= region->length);
	memcpy(region->base + offset, from, len);
	return 0;
}

static const struct soft_qp_ops stage_ops = {stage_send, stage_event};
static const struct soft_region_ops stage_indirect = {stage_nowhere, stage_fetch, stage_store,
						      NULL};
static const int stage_pd, stage_other_pd;

static inline void stage_fill(struct stage_memory *m, uint32_t seed)
{
	memset(m, 0xee, sizeof(*m));
	for (uint32_t i = 0; i < STAGE_BYTES; i++)
		m->bytes[i] = stage_byte(seed, i);
}

static inline void stage_regions(struct stage *s)
{
	const uint32_t remote = SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_WRITE |
				SOFT_ACCESS_REMOTE_ATOMIC | SOFT_ACCESS_LOCAL_WRITE;
	static const struct {
		uint32_t access;
		bool local, indirect;
	} kinds[STAGE_KEYS] = {
		[KEY_READ] = {SOFT_ACCESS_REMOTE_READ},
		[KEY_LOCAL] = {SOFT_ACCESS_LOCAL_WRITE, .local = true},
		[KEY_SEALED] = {0, .local = true},
		[KEY_INDIRECT] = {.indirect = true},
		[KEY_BROKEN] = {.indirect = true},
	};

	assert_int_equal(soft_regions_new(&s->regions), 0);
	for (unsigned int i = 0; i < STAGE_KEYS; i++) {
		bool all = i == KEY_ALL || i == KEY_FOREIGN || kinds[i].indirect;

		s->region[i] = (struct soft_region){
			.access = all ? remote : kinds[i].access,
			.pd = i == KEY_FOREIGN ? &stage_other_pd : &stage_pd,
			.iova = kinds[i].local ? STAGE_BUFFERS : STAGE_VA,
			.length = STAGE_BYTES,
			.base = kinds[i].local ? s->local.bytes : s->remote.bytes,
			.ops = kinds[i].indirect ? &stage_indirect : &soft_region_host,
		};
		if (i == KEY_BROKEN)
			s->region[i].base = NULL;
		assert_int_equal(soft_regions_add(s->regions, &s->region[i]), 0);
	}
}

static inline uint32_t stage_key(const struct stage *s, unsigned int key)
{
	uint32_t unused = 1;

	if (key < STAGE_KEYS)
		return s->region[key].key;
	while (soft_regions_find(s->regions, unused))
		unused++;
	return unused;
}

/* A connected QP in RTS that allows all; tests change what they are about. */
static inline struct stage *stage_open(enum soft_transport transport)
{
	const struct soft_qp_caps caps = {64, 64, 2, 2, 0};
	struct stage *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	stage_fill(&s->remote, 1);
	stage_fill(&s->local, 2);
	stage_regions(s);
	assert_int_equal(soft_cq_init(&s->send_cq, 256), 0);
	assert_int_equal(soft_cq_init(&s->recv_cq, 256), 0);
	soft_window_init(&s->window, 1 << 20);
	s->qp.num = STAGE_QP;
	s->qp.transport = transport;
	s->qp.pd = &stage_pd;
	s->qp.regions = s->regions;
	s->qp.send_cq = &s->send_cq;
	s->qp.recv_cq = &s->recv_cq;
	s->qp.window = &s->window;
	s->qp.counters = &s->counters;
	s->qp.ops = &stage_ops;
	s->qp.owner = s;
	assert_int_equal(soft_qp_init(&s->qp, &caps, NULL, true), 0);
	s->qp.attr = (struct soft_qp_attr){
		.remote_qpn = STAGE_PEER,
		.rq_psn = STAGE_PSN,
		.qkey = 0x11111111,
		.mtu = STAGE_MTU,
		.pkey = 0xffff,
		.min_rnr_timer = STAGE_RNR_TIMER,
		.max_dest_rd_atomic = 2,
		.access = SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_WRITE |
			  SOFT_ACCESS_REMOTE_ATOMIC,
	};
	soft_qp_to_rtr(&s->qp);
	soft_qp_to_rts(&s->qp);
	return s;
}

static inline void stage_close(struct stage *s)
{
	soft_qp_done(&s->qp);
	soft_cq_done(&s->send_cq);
	soft_cq_done(&s->recv_cq);
	soft_regions_free(s->regions);
	free(s);
}

/* One receive request over @bytes of the buffers from @offset, in two pieces when they allow it. */
static inline int stage_receive(struct stage *s, uint64_t id, uint32_t offset, uint32_t bytes,
				enum stage_key key)
{
	struct soft_sge sges[2] = {
		{STAGE_BUFFERS + offset, bytes / 3, stage_key(s, key)},
		{STAGE_BUFFERS + offset + bytes / 3, bytes - bytes / 3, stage_key(s, key)},
	};

	return soft_recv_queue_post(s->qp.resp.rq, id, sges, bytes ? 2 : 0);
}

static inline bool stage_guards_whole(const struct stage *s)
{
	for (unsigned int i = 0; i < STAGE_GUARD; i++)
		if (s->remote.before[i] != 0xee || s->remote.after[i] != 0xee ||
		    s->local.before[i] != 0xee || s->local.after[i] != 0xee)
			return false;
	return true;
}

#endif
