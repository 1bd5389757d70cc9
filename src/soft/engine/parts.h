/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's parts among themselves. All functions want the engine's lock held unless they say
 * otherwise.
 */
#ifndef SOFT_ENGINE_PARTS_H
#define SOFT_ENGINE_PARTS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "soft/engine/gpus.h"
#include "soft/engine/engine.h"
#include "soft/engine/lanes.h"
#include "soft/engine/origin.h"
#include "soft/engine/reader.h"
#include "soft/engine/writer.h"
#include "soft/link/fault.h"
#include "soft/link/slot.h"

enum {
	SOFT_QP_INDEXES = 1 << SOFT_SLOT_SHIFT,
	SOFT_WINDOW_BUCKETS = 64,
	/* Bytes read from one device, and sent by one queue pair, before another has its turn. */
	SOFT_RECEIVE_BUDGET = 256 * 1024,
	SOFT_HELD_BYTES = 1024, /* of a turn after which acknowledges may be held back */
	SOFT_REPLIES = 4,
	SOFT_STREAM_BYTES = 16 * 1024, /* of a turn: a train, not a short message */
	SOFT_SLOT_TURNS = 8,	       /* the slot is looked at every so many turns */
	/* Beside lanes in use, sockets that brought nothing so many times are read every so many.
	 */
	SOFT_SOCKETS_QUIET = 8,
	SOFT_SOCKET_TURNS = 16,
	SOFT_POLLS_IN_VAIN = 32,       /* then a caller gives way to others */
	SOFT_PUMP_BUDGET = 240 * 1024, /* four whole trains of 15 packets */
	SOFT_PUMP_TRAINS = 6,	       /* that it may become */
};

/* Longer than the round of a polling loop, ns; who waits on memory between polls makes longer ones.
 */
#define SOFT_POLL_GAP ((pp_ns)5000)

/* A lane is in use for so long after a record, ns. */
#define SOFT_LANES_BUSY ((pp_ns)1000000)

/* For so long after acknowledges were held back the thread looks in at every tick, ns. */
#define SOFT_HOLDING ((pp_ns)10000000)

struct soft_wire {
	struct soft_engine *engine;
	unsigned int users;
	struct soft_link_config config;
	struct soft_fault fault;
	struct soft_cq_late late;
	struct soft_link *link; /* NULL until the first queue pair */
	struct soft_counters counters;
	struct soft_link_stats no_stats; /* shown while there is no link */
	struct soft_drops drops;
	struct soft_board *board;	 /* NULL: its counters are written nowhere */
	struct soft_icrc_flow last_flow; /* of the last datagram: trains share it */
	struct soft_origin origins[SOFT_ORIGINS];
	struct soft_outgoing_bulk outgoing;
	struct soft_wire *next;
};

/* Counters are the wire's: the way back to it without a pointer in every queue pair. */
static inline struct soft_wire *soft_wire_of(const struct soft_qp *qp)
{
	return (struct soft_wire *)((char *)qp->counters - offsetof(struct soft_wire, counters));
}

/* The window of an address and how many queue pairs share it. */
struct soft_engine_window {
	struct soft_window window; /* first: queue pairs point here */
	struct soft_gid dst;
	unsigned int users;
	struct soft_engine_window *next;
};

struct soft_qp_table {
	struct soft_qp **by_index; /* SOFT_QP_INDEXES */
	struct soft_wire **wires;  /* the wire of each */
	struct soft_qp *all;	   /* by table_next */
	uint32_t next, used;
};

enum soft_thread_mode {
	SOFT_THREAD_WATCH, /* sleeps on the sockets */
	SOFT_THREAD_TICK,  /* callers poll: sleeps on a timer */
};

struct soft_engine {
	pthread_mutex_t lock;
	unsigned int users;
	bool inherited;
	struct soft_slot *slot;
	struct soft_regions *regions;
	struct soft_qp_table table;
	struct soft_engine_window *windows[SOFT_WINDOW_BUCKETS];
	struct soft_wire *wires;
	struct soft_lanes lanes;
	struct soft_mover mover;
	struct soft_gpus gpus; /* has a lock of its own, taken before the engine's */
	struct soft_qp *ready_head, *ready_tail;
	pp_ns held_until;    /* acknowledges wait for a reply that they may go with; 0: none does */
	pp_ns held;	     /* when that began last */
	pp_ns streamed;	     /* last turn that took a train: more is likely to follow at once */
	pp_ns doubted;	     /* when somebody last waited for an answer in vain */
	pp_ns turned;	     /* when the last turn of anybody began */
	pp_ns polled;	     /* when a caller last ended a turn or a post */
	unsigned int streak; /* of those that followed each other without a gap */
	_Atomic unsigned int vain; /* callers' polls in a row that moved nothing */
	bool called;		   /* a caller is at it now, not the thread */
	struct soft_engine_timer *timers;
	pp_ns next_deadline; /* no queue pair or timer wants time before; 0: none does */
	unsigned int turns;
	pp_ns board_due;    /* when counters are to be written; 0: all are */
	bool slot_busy;	    /* something was handed on to us lately */
	unsigned int quiet; /* readings of the sockets in a row that found nothing */
	bool processors;    /* enough of them for a thread that looks on beside callers */
	cpu_set_t affinity; /* of who made the engine, and so of its threads */
	struct soft_bulk bulk;

	pthread_t thread;
	int wake_fd; /* eventfd: stop, new sockets, callers gone to sleep */
	int show_fd; /* listening, or -1 */
	soft_engine_show *show;
	void *show_arg;
	_Atomic(soft_engine_request *) request;
	int caller_fd; /* who connected and has not said yet what it wants, or -1 */
	pp_ns caller_until;
	_Atomic bool stop;
	_Atomic int mode;	/* enum soft_thread_mode */
	_Atomic bool asleep;	/* the thread: whoever reads sockets for it wakes it */
	_Atomic uint64_t polls; /* by callers, whether or not they got the lock */
};

/* table.c */
int soft_qp_table_init(struct soft_qp_table *t);
void soft_qp_table_done(struct soft_qp_table *t);
int soft_qp_table_add(struct soft_qp_table *t, unsigned int slot, struct soft_wire *wire,
		      struct soft_qp *qp);
void soft_qp_table_remove(struct soft_qp_table *t, struct soft_qp *qp);
struct soft_qp *soft_qp_table_find(const struct soft_qp_table *t, uint32_t num);
struct soft_wire *soft_qp_table_wire(const struct soft_qp_table *t, const struct soft_qp *qp);

/* windows.c */
struct soft_window *soft_engine_window_get(struct soft_engine *e, const struct soft_gid *dst,
					   uint64_t limit);
void soft_engine_window_put(struct soft_engine *e, struct soft_window *w);

/* turn.c */
void soft_engine_ready(struct soft_engine *e, struct soft_qp *qp);
void soft_engine_unready(struct soft_engine *e, struct soft_qp *qp);
/* Receives, lets queue pairs send, sees to timers. true: something moved, another turn may move
 * more. */
bool soft_engine_turn(struct soft_engine *e);
/* Lets the ready queue pairs send once round. true: something was sent, and more waits. */
bool soft_engine_send_ready(struct soft_engine *e, pp_ns now);

/* timer.c */
void soft_engine_timers_run(struct soft_engine *e, pp_ns now);

/* input.c */
struct soft_engine_input {
	struct soft_engine *engine;
	struct soft_wire *wire; /* NULL: handed on by another process, found by the address */
	pp_ns now;
	unsigned int datagrams;
	size_t bytes;
};
void soft_engine_input(void *input, const struct soft_datagram *d);
/* What a lane brought. */
void soft_engine_record(struct soft_engine_input *in, const struct soft_record *record,
			struct soft_packet *p);

/* caller.c */
/* A caller leaves, and may not come again; the thread knew @deadline. @more: somebody stopped for
 * its budget. */
void soft_engine_hand_over(struct soft_engine *e, pp_ns deadline, bool more);

/* thread.c; not under the lock */
int soft_engine_thread_start(struct soft_engine *e);
void soft_engine_thread_stop(struct soft_engine *e);
void soft_engine_thread_wake(struct soft_engine *e);
/* A thread that no signal interrupts, on the processors of @affinity. -errno. */
int soft_engine_thread_make(pthread_t *ret, const char *name, const cpu_set_t *affinity,
			    void *(*run)(void *), void *arg);

#endif
