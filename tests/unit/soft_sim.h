/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs without sockets: a wire in memory and a clock that tests move. Every packet becomes
 * bytes and is read from them again, so that nothing passes that the wire could not carry; the wire
 * loses, doubles, delays and damages packets by seed. An end without a peer records what it sends.
 */
#ifndef PP_TESTS_SOFT_SIM_H
#define PP_TESTS_SOFT_SIM_H

#include "soft/copy/shelf.h"
#include "soft/lane/pull.h"
#include "soft/lane/record.h"
#include "soft/link/fault.h"
#include "soft/qp/parts.h"
#include "soft/qp/status.h"

enum { SOFT_SIM_ENDS = 8, SOFT_SIM_SENT = 4096, SOFT_SIM_REGIONS = 8 };

struct soft_sim;

/* A device: copies are carried out when they are done, in the order of each direction. */
struct soft_sim_copier {
	struct soft_copier copier; /* first */
	struct soft_sim *sim;
	struct {
		struct soft_copy *first, *last;
		pp_ns free_at;
	} to[2];
	uint64_t done, failed;
	size_t shortest_of_long; /* copy, of those that are a part of a message */
	bool held;		 /* nothing is done any more */
	int pin_rc;		 /* of page-locking */
	unsigned int pins, unpins;
};

/* A process at an address: its registered memory, its window to the other one. */
struct soft_sim_node {
	struct soft_mover mover;
	struct soft_sim_copier copier;
	uint8_t *staging;
	struct soft_shelf shelf;      /* of staging on its way out, if others see it */
	struct soft_shelf_view *view; /* the other node's */
	size_t taken;		      /* of staging of either direction, by others */
	struct soft_regions *regions;
	struct soft_region region[SOFT_SIM_REGIONS];
	unsigned int num_regions;
	struct soft_window window;
	struct soft_counters counters;
};

struct soft_sim_sent {
	struct soft_packet p;
	uint8_t payload[SOFT_MTU_MAX];
};

struct soft_sim_end {
	struct soft_qp qp;
	struct soft_cq send_cq, recv_cq;
	struct soft_sim *sim;
	struct soft_sim_node *node;
	struct soft_sim_end *peer; /* NULL: what it sends is recorded */
	bool ready, killed;
	unsigned int events[SOFT_QP_EVENT_LAST_WQE + 1];
	struct soft_sim_sent *sent;
	unsigned int num_sent;
	uint64_t over_window; /* sends that the window did not allow */
};

struct soft_sim_plan {
	uint32_t loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
	/* Turns of a queue pair that send as records of a lane, several packets in one; of those
	 * with pieces to be fetched, so many are not to be had. */
	uint32_t lane_ppm, unfetched_ppm;
	bool refer; /* all that may be, in the longest records; else some */
	pp_ns delay, jitter, reorder_delay;
	pp_ns copy_delay, copy_jitter; /* of regions that are far */
	uint32_t copy_failure_ppm;
	struct soft_fault *fault; /* what befalls packets of the wire besides; NULL: nothing */
};

struct soft_sim_flight {
	pp_ns at;
	uint64_t order; /* of packets that arrive together */
	struct soft_sim_end *to;
	size_t len;
	uint8_t *bytes;
	bool record;
};

struct soft_sim {
	pp_ns now;
	uint64_t random, order;
	struct soft_sim_plan plan;
	struct soft_sim_flight *heap;
	size_t in_heap, heap_room;
	struct soft_sim_end *ends[SOFT_SIM_ENDS];
	struct soft_sim_node *far[SOFT_SIM_ENDS];
	unsigned int num_far;
	unsigned int num_ends;
	uint64_t lost, damaged, delivered;
	uint64_t records, fetched, unfetched, jumbos;
};

struct soft_sim_attr {
	uint32_t mtu, sq_psn, rq_psn;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic;
	uint32_t max_send_wr, max_recv_wr, access;
	bool signal_all;
};

extern const void *const soft_sim_pd; /* of everything, unless a test says otherwise */

/* As perftest sets a QP: timeout 14, 7 retries; MTU 1024, one READ, PSN 0xfffffd. */
struct soft_sim_attr soft_sim_attr(void);

uint32_t soft_sim_random(struct soft_sim *sim, uint32_t below);
void soft_sim_init(struct soft_sim *sim, uint64_t seed);
void soft_sim_done(struct soft_sim *sim);

void soft_sim_node_init(struct soft_sim_node *node, uint64_t window);
void soft_sim_node_done(struct soft_sim_node *node);
/* Registers; the key. */
uint32_t soft_sim_register(struct soft_sim_node *node, void *base, size_t len, uint32_t access,
			   const void *pd);

/* A region becomes far: its memory is touched by copies alone. Before the first queue pair. @taken:
 * bytes of staging of either direction that others have. */
void soft_sim_make_far(struct soft_sim *sim, struct soft_sim_node *node, uint32_t key,
		       size_t taken);

/* Staging of @from, which is far, is on a shelf that @to sees. */
void soft_sim_show_shelf(struct soft_sim_node *from, struct soft_sim_node *to);

void soft_sim_end_init(struct soft_sim *sim, struct soft_sim_end *end, struct soft_sim_node *node,
		       const struct soft_sim_attr *attr);
void soft_sim_end_done(struct soft_sim_end *end);
/* Both to RTS; PSNs of each as its attributes say. */
void soft_sim_connect(struct soft_sim_end *a, struct soft_sim_end *b);
/* Alone to RTS: the test is the peer. */
void soft_sim_alone(struct soft_sim_end *end);

/* false: the queue is full. Inline requests take their bytes from @sges. */
bool soft_sim_post(struct soft_sim_end *end, const struct soft_send_wr *wr,
		   const struct soft_sge *sges);
bool soft_sim_poll(struct soft_cq *cq, struct soft_cqe *ret);

/* Until nothing more wants to be sent now. */
void soft_sim_pump(struct soft_sim_end *end);
/* Everything up to the next packet or deadline; false: nothing will ever happen again. */
bool soft_sim_step(struct soft_sim *sim);

#endif
