/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_lanes: the engine's lanes (lane/lane.h) to and from other processes of this host, and
 * which queue pair uses which. All functions want the engine's lock held.
 *
 * A queue pair is led to its lane when it first has something to do in RTR, and back to the wire
 * when the lane ends, when the wire is ill (faults are of the wire), or where there can be none;
 * qp->wire_reason says why. It may change at any time: what crosses is put right by packet numbers.
 */
#ifndef SOFT_ENGINE_LANES_H
#define SOFT_ENGINE_LANES_H

#include "soft/lane/lane.h"
#include "soft/link/slot.h"
#include "soft/qp/qp.h"

struct soft_engine;
struct soft_engine_input;

struct soft_lanes {
	int epoll_fd; /* of the two below and all lanes; -1: no lanes */
	int listen_fd;
	struct soft_lane *out[SOFT_SLOTS], *outs; /* by the peer's slot; all of them */
	struct soft_lane_in *in;
	unsigned int num_in;
	uint64_t sent;	       /* records, ever */
	pp_ns busy;	       /* a record came last */
	uint64_t other_users;  /* that knocked */
	uint64_t broken;       /* lanes that brought what cannot be */
	struct soft_gid asked; /* address that was looked for last, when, and whether it is here */
	pp_ns asked_at;
	bool asked_here;
};

int soft_lanes_init(struct soft_lanes *lanes);
/* Ends all lanes; of a child of fork() too. */
void soft_lanes_done(struct soft_engine *e);

/* lanes.c: queue pairs */
/* From now on others may come. Not being reachable is no reason not to work. */
void soft_lanes_listen(struct soft_engine *e);
/* Chooses the link of @qp; before every pump. */
void soft_lanes_route(struct soft_engine *e, struct soft_qp *qp);
/* Can @qp use the lane that it was led to now? If not, *ret_reason, when there is one. */
bool soft_lanes_usable(const struct soft_qp *qp, const char **ret_reason);
void soft_lanes_detach(struct soft_engine *e, struct soft_qp *qp);
void soft_lanes_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_packet *p,
		     const struct iovec *pieces, unsigned int num_pieces);
/* Memory [base, base + len) is about to be the client's again. */
void soft_lanes_take_back(struct soft_engine *e, const void *base, uint64_t len);

/* lanes_turn.c: what comes in, and sleep */
/* epoll_fd can be read: who came, answered, or ended. */
void soft_lanes_events(struct soft_engine *e);
unsigned int soft_lanes_receive(struct soft_engine *e, struct soft_engine_input *in);
void soft_lanes_flush(struct soft_engine *e);
/* Says to all writers that nobody looks; false: something lies there, and somebody must. */
bool soft_lanes_sleep(struct soft_engine *e);
void soft_lanes_awake(struct soft_engine *e);
/* The lane has ended: its queue pairs go back to the wire. */
void soft_lanes_end(struct soft_engine *e, struct soft_lane *lane, const char *why);

#endif
