/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_engine: what moves packets of this process: the sockets, the queue pairs by number,
 * timers, and one thread. One a process; made at the first ibv_open_device(), gone after the last
 * close.
 *
 * Progress is made by whoever is there: a caller that posts or polls, else the thread. While
 * callers poll, the thread sleeps beside them on a timer and does not watch the sockets; as soon
 * as nobody polled for a tick it watches them, and an idle process costs nothing.
 *
 * One lock covers all: queue pairs, regions, links, windows. Completion queues have their own.
 * A child of fork() has no thread: what it inherited answers -EIO, what it opens itself is new.
 */
#ifndef SOFT_ENGINE_ENGINE_H
#define SOFT_ENGINE_ENGINE_H

#include "base/buf.h"
#include "base/error.h"
#include "soft/lane/lane.h"
#include "soft/link/fault.h"
#include "soft/link/link.h"
#include "soft/qp/qp.h"

struct soft_board;
struct soft_engine;

enum { SOFT_WIRES_MAX = 32 }; /* that the thread watches */

/* A device's wire. */
struct soft_wire;

/*
 * Appends what `soft show` is to know of this process to @out, as one JSON object. Called by the
 * thread with the engine's lock held.
 */
typedef void soft_engine_show(void *arg, struct soft_engine *engine, struct pp_buf *out);

/*
 * Something that is to change, as `peerpath soft fault` writes it. Called by the thread with no
 * lock held; appends an answer.
 */
typedef void soft_engine_request(void *arg, struct soft_engine *engine, const char *request,
				 size_t len, struct pp_buf *out);

/* Once: the engine's handlers of fork(). Who has locks that come before the engine's registers its
 * own after this. */
void soft_engine_watch_forks(void);

/* Takes a reference; makes the engine, with its thread, when there is none. @show may be NULL. */
int soft_engine_get(soft_engine_show *show, void *show_arg, struct soft_engine **ret,
		    struct pp_error *err);
void soft_engine_put(struct soft_engine *engine);

/* Who answers requests; @show_arg of soft_engine_get() is its first argument. Not under the lock.
 */
void soft_engine_on_request(struct soft_engine *engine, soft_engine_request *answer);

void soft_engine_lock(struct soft_engine *engine);
void soft_engine_unlock(struct soft_engine *engine);

/* true in a child of fork() that inherited @engine. */
bool soft_engine_inherited(const struct soft_engine *engine);

unsigned int soft_engine_slot(const struct soft_engine *engine);
struct soft_regions *soft_engine_regions(struct soft_engine *engine);
/* As soft_regions_add(); under the lock. */
int soft_engine_add_region(struct soft_engine *engine, struct soft_region *region);

/*
 * Not under the lock. The same addresses give the same wire, whose faults the first opener chose.
 * Copies @config, whose slot, handover and fault are the engine's to fill, and
 * @faults (NULL: none). No socket is opened before the first queue pair: looking at a device costs
 * nobody a port. @board (NULL: none): where its counters are written, the wire's from now on.
 */
int soft_engine_open_wire(struct soft_engine *engine, const struct soft_link_config *config,
			  const struct soft_fault_plan *faults, struct soft_board *board,
			  struct soft_wire **ret);
void soft_engine_close_wire(struct soft_engine *engine, struct soft_wire *wire);

/* Under the lock from here on. */

/*
 * Gives @qp a number (top bits: the slot) on @wire, and its counters. -ENOSPC: all are in use; what
 * soft_link_open() returns when the first opens the sockets.
 */
int soft_engine_add_qp(struct soft_engine *engine, struct soft_wire *wire, struct soft_qp *qp,
		       struct pp_error *err);
/* After soft_qp_reset(): nothing of it may be under way. */
void soft_engine_remove_qp(struct soft_engine *engine, struct soft_qp *qp);
/* Memory of a region that was removed: what was sent of it may be read no more. */
void soft_engine_take_back(struct soft_engine *engine, const void *base, uint64_t len);
/* The same for what @qp sent, after soft_qp_reset(). */
void soft_engine_withdraw(struct soft_engine *engine, struct soft_qp *qp);
void soft_engine_each_qp(struct soft_engine *engine, void (*each)(void *, struct soft_qp *),
			 void *arg);

/* Fills qp->path and qp->window from the address vector; -EADDRNOTAVAIL, -ENOMEM. */
int soft_engine_connect(struct soft_engine *engine, struct soft_qp *qp, const struct soft_gid *src,
			const struct soft_gid *dst, uint8_t traffic_class, uint8_t hop_limit,
			uint32_t flow_label);
/* A path alone, for UD address handles. */
int soft_engine_path(struct soft_engine *engine, struct soft_wire *wire, const struct soft_gid *src,
		     const struct soft_gid *dst, uint32_t entropy, struct soft_path *ret);

/* What soft_qp_ops.send of every QP calls. */
void soft_engine_send(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		      const struct iovec *pieces, unsigned int num_pieces);

/* What soft_qp_ops.await_read, .ready and .withdraw of every QP call. */
void soft_engine_await_read(struct soft_qp *qp, uint64_t mark);
void soft_engine_qp_ready(struct soft_qp *qp);
void soft_engine_qp_withdraw(struct soft_qp *qp);

/* @qp has something to do (posted, state changed): pumps it now and flushes the link. */
void soft_engine_kick(struct soft_engine *engine, struct soft_qp *qp);
/* Before a queue pair ends: an acknowledge that waits for its reply leaves alone. The application
 * has seen the request complete, and its peer must too. */
void soft_engine_settle(struct soft_engine *engine);

/*
 * Calls @expired once, with the lock held, when the time has come; zero-filled before the first
 * use. Setting one that is set moves it.
 */
struct soft_engine_timer {
	pp_ns at; /* 0: not set */
	void (*expired)(struct soft_engine_timer *timer);
	struct soft_engine_timer *next;
};
void soft_engine_timer_set(struct soft_engine *engine, struct soft_engine_timer *timer, pp_ns at);
void soft_engine_timer_cancel(struct soft_engine *engine, struct soft_engine_timer *timer);

/* Not under the lock: a poller found nothing. Makes progress unless another thread is at it. */
void soft_engine_poll(struct soft_engine *engine);

/* Not under the lock: the caller is about to sleep on a descriptor; the thread takes over at once.
 */
void soft_engine_sleep(struct soft_engine *engine);

/*
 * Faults of a wire; under the lock. Of the wire alone: who keeps packets off it (between processes
 * of one host) asks soft_wire_ill(), which may change at any time, and sends them by the wire while
 * it is true.
 */
bool soft_wire_ill(const struct soft_wire *wire);
/* See soft_fault_apply(); takes effect with the next packet. -ENOSPC, -ENOMEM. */
int soft_wire_set_fault(struct soft_wire *wire, const struct soft_fault_spec *spec,
			struct pp_error *err);
void soft_wire_set_port(struct soft_wire *wire, bool down);
void soft_wire_set_dead(struct soft_wire *wire, const struct soft_gid *gid, bool dead);
/* Takes away all of them. */
void soft_wire_clear_faults(struct soft_wire *wire);
const struct soft_fault *soft_wire_fault(const struct soft_wire *wire);
/* Completions of queues whose `late` is this are shown so much later; 0: at once, those too that
 * wait. */
struct soft_cq_late *soft_wire_late(struct soft_wire *wire);
void soft_wire_set_cq_delay(struct soft_wire *wire, pp_ns delay);

/* Statistics; under the lock. */
const struct soft_counters *soft_wire_counters(const struct soft_wire *wire);
const struct soft_link_stats *soft_wire_stats(const struct soft_wire *wire);
/* Packets dropped before a queue pair saw them, by reason. */
struct soft_drops {
	uint64_t malformed, icrc, no_qp, wrong_address, wrong_pkey, wrong_state;
};
const struct soft_drops *soft_wire_drops(const struct soft_wire *wire);

/* The link that @qp uses: "wire", "same-host (one copy)", "same-host (two copies)"; *ret_reason is
 * set when there is one why it is not the best. */
const char *soft_engine_link_of(const struct soft_qp *qp, const char **ret_reason);

/* One end of a lane, from or to another process of this host. */
struct soft_lane_view {
	bool out;	    /* else: in */
	bool up;	    /* both ends have it */
	unsigned int slot;  /* of the other process; of one that came, as it says */
	unsigned int users; /* out: queue pairs */
	int pid;	    /* in: 0: none that has a number here */
	int pull_errno;	    /* not 0: why payload is copied twice */
	int shelf_errno; /* in: not 0: why the shelf of the other is not mapped, or not page-locked
			  */
	int loan_errno;	 /* not 0: why no GPU copies from the memory of the other's */
	const struct soft_lane_stats *stats;
};
void soft_engine_each_lane(struct soft_engine *engine,
			   void (*each)(void *, const struct soft_lane_view *), void *arg);
struct soft_lanes_refused {
	uint64_t other_users; /* that knocked */
	uint64_t broken;      /* that brought what cannot be */
};
struct soft_lanes_refused soft_engine_lanes_refused(const struct soft_engine *engine);

#endif
