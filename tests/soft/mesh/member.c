/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a member: opens the device, moves messages until all are through, leaves clean. */
#include "mesh.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CQ_DEPTH = 1 << 16, AT_ONCE = 32, HANG_S = 40, NAP_US = 200, SPINS = 50 };

void mesh_fault(struct mesh_member *m, const char *format, ...)
{
	struct mesh_card *card = &m->board->card[m->me];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(card->fault, sizeof(card->fault), format, args);
	va_end(args);
	_exit(1);
}

static void open_device(struct mesh_member *m)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_port_attr port;

	if (!list || !list[0])
		mesh_fault(m, "no device: %s", strerror(errno));
	m->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!m->context)
		mesh_fault(m, "ibv_open_device: %s", strerror(errno));
	if (ibv_query_port(m->context, 1, &port) ||
	    ibv_query_gid(m->context, 1, 0, &m->board->card[m->me].gid))
		mesh_fault(m, "no port");
	m->mtu = port.active_mtu;
	m->pd = ibv_alloc_pd(m->context);
	m->channel = ibv_create_comp_channel(m->context);
	m->cq = m->channel ? ibv_create_cq(m->context, CQ_DEPTH, m, m->channel, 0) : NULL;
	if (!m->pd || !m->cq)
		mesh_fault(m, "no completion queue: %s", strerror(errno));
	init.send_cq = init.recv_cq = m->cq;
	m->first = ibv_create_qp(m->pd, &init);
	if (!m->first) {
		int rc = errno;

		(void)snprintf(m->board->card[m->me].fault, sizeof(m->board->card[0].fault),
			       "ibv_create_qp: %s", strerror(rc));
		_exit(rc == EADDRINUSE ? MESH_SKIP : 1);
	}
}

/* Completions will come, so a member may sleep for them without looking at the board. */
static bool expects(const struct mesh_member *m)
{
	for (unsigned int i = 0; i < m->num_lanes; i++)
		if (!m->lanes[i].broken && m->lanes[i].posted != m->lanes[i].done)
			return true;
	return false;
}

static unsigned int poll_all(struct mesh_member *m)
{
	struct ibv_wc wc[AT_ONCE];
	unsigned int sum = 0;
	int n;

	while ((n = ibv_poll_cq(m->cq, AT_ONCE, wc)) > 0) {
		for (int i = 0; i < n; i++)
			mesh_completion(m, &wc[i]);
		sum += (unsigned int)n;
		if (sum > 4 * AT_ONCE)
			break;
	}
	if (n < 0)
		mesh_fault(m, "ibv_poll_cq");
	return sum;
}

/* Sleeps in ibv_get_cq_event() itself; what came before the queue was armed is looked for. */
static unsigned int sleep_for_one(struct mesh_member *m)
{
	struct ibv_cq *cq;
	void *context;
	unsigned int n;

	if (ibv_req_notify_cq(m->cq, 0))
		mesh_fault(m, "ibv_req_notify_cq");
	n = poll_all(m);
	if (n)
		return n;
	if (ibv_get_cq_event(m->channel, &cq, &context) || cq != m->cq || context != m)
		mesh_fault(m, "ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	return poll_all(m);
}

static void rest(struct mesh_member *m, unsigned int *idle)
{
	if (m->sleeps && expects(m)) {
		if (sleep_for_one(m))
			*idle = 0;
	} else if (m->sleeps) {
		(void)usleep(NAP_US);
	} else if (++*idle % SPINS == 0) {
		(void)sched_yield();
	}
}

static bool all_over(struct mesh_member *m)
{
	uint32_t dead = atomic_load(&m->board->dead);

	if (m->board->plan.count == 0 && !atomic_load(&m->board->stop))
		return false;
	for (unsigned int i = 0; i < MESH_MEMBERS_MAX; i++)
		if (i != m->me && !m->peers[i].memory && !(dead >> i & 1) &&
		    (i < m->board->plan.members ||
		     atomic_load(&m->board->card[i].state) != MESH_ABSENT))
			return false;
	for (unsigned int i = 0; i < m->num_lanes; i++)
		if (!mesh_lane_over(m, &m->lanes[i]))
			return false;
	return true;
}

static void stuck(struct mesh_member *m)
{
	for (unsigned int i = 0; i < m->num_lanes; i++) {
		struct mesh_lane *l = &m->lanes[i];

		if (!mesh_lane_over(m, l))
			mesh_fault(m,
				   "nothing for %d s: member %u lane %u: %llu posted, %llu done, "
				   "%llu receives taken, peer done %llu of %lld, live %d",
				   HANG_S, l->peer, l->lane, (unsigned long long)l->posted,
				   (unsigned long long)l->done, (unsigned long long)l->taken,
				   (unsigned long long)atomic_load(&l->far->done),
				   (long long)atomic_load(&l->far->total), l->live);
	}
	mesh_fault(m, "nothing for %d s, a member did not come", HANG_S);
}

static void traffic(struct mesh_member *m)
{
	struct mesh_clock clock = {0};
	int64_t last = 0, now;
	unsigned int idle = 0;

	while (!all_over(m)) {
		bool any = false;

		mesh_lanes_open(m);
		mesh_lanes_connect(m);
		for (unsigned int i = 0; i < m->num_lanes; i++)
			any |= mesh_lane_send(m, &m->lanes[i]);
		any |= poll_all(m) > 0;
		now = mesh_clock_s(&clock);
		if (any) {
			last = now;
			idle = 0;
		} else if (now - last > HANG_S) {
			stuck(m);
		} else {
			rest(m, &idle);
		}
	}
}

/* The peers may still need answers; the library's own thread gives them. */
static void wait_for_others(struct mesh_member *m)
{
	struct mesh_board *b = m->board;

	atomic_store(&b->card[m->me].state, MESH_DONE);
	for (unsigned int i = 0; i < MESH_MEMBERS_MAX; i++)
		while (atomic_load(&b->card[i].state) == MESH_READY &&
		       !(atomic_load(&b->dead) >> i & 1))
			(void)usleep(NAP_US);
	while (atomic_load(&b->hold))
		(void)usleep(NAP_US);
}

static void leave(struct mesh_member *m)
{
	if (ibv_destroy_qp(m->first))
		mesh_fault(m, "ibv_destroy_qp");
	for (unsigned int i = 0; i < m->num_lanes; i++) {
		struct mesh_lane *l = &m->lanes[i];

		if (ibv_destroy_qp(l->qp))
			mesh_fault(m, "ibv_destroy_qp");
		if (!l->broken && *l->target != l->far->word)
			mesh_fault(m, "member %u lane %u: the atomics' sum is wrong", l->peer,
				   l->lane);
	}
	for (unsigned int i = 0; i < MESH_MEMBERS_MAX; i++) {
		if (m->peers[i].mr && ibv_dereg_mr(m->peers[i].mr))
			mesh_fault(m, "ibv_dereg_mr");
		free(m->peers[i].memory);
	}
	if (ibv_destroy_cq(m->cq) || ibv_destroy_comp_channel(m->channel) ||
	    ibv_dealloc_pd(m->pd) || ibv_close_device(m->context))
		mesh_fault(m, "something is still in use at the end");
	free(m->lanes);
}

int mesh_member_run(struct mesh_board *board, unsigned int me)
{
	static struct mesh_member m;

	m.board = board;
	m.me = me;
	m.sleeps = board->plan.wait == MESH_SLEEPS || (board->plan.wait == MESH_MIXED && me % 2);
	m.lanes = calloc((size_t)MESH_MEMBERS_MAX * board->plan.lanes, sizeof(*m.lanes));
	if (!m.lanes)
		mesh_fault(&m, "no memory");
	open_device(&m);
	atomic_store(&board->card[me].state, MESH_READY);
	traffic(&m);
	wait_for_others(&m);
	leave(&m);
	return 0;
}
