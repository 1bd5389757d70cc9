/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: one direction from a process to another of the same user and network namespace, over a
 * ring (ring.h) made by the one that writes. struct soft_lane is the writing end, struct
 * soft_lane_in the reading one.
 *
 * A lane carries packets another way than UDP and promises no more than that: what does not fit, or
 * cannot be fetched, is lost, and repaired by the queue pairs as on the wire. So a lane may end at
 * any time: its process died, or wrote what cannot be.
 *
 * Payload is copied through the ring, or, above SOFT_LANE_COPIED bytes, referred to: the reader
 * fetches it from the writer's memory (pull.h), if it may. What was referred to and may be no
 * longer is taken back by soft_lane_take_back().
 */
#ifndef SOFT_LANE_LANE_H
#define SOFT_LANE_LANE_H

#include <stdatomic.h>

#include "soft/copy/shelf.h"
#include "soft/lane/door.h"
#include "soft/lane/pull.h"
#include "soft/lane/ring.h"
#include "soft/qp/window.h"

enum {
	SOFT_LANE_COPIED = 8 << 10,
	SOFT_LANE_REFERENCES = 256, /* not fetched yet; more are copied */
	SOFT_LANE_JUMBO = SOFT_RECORD_PAYLOAD_MAX,
	SOFT_LANE_JUMBO_COPIED = 64 << 10,
	/*
	 * What may be under way. By reference so much that the reader goes on while the writer
	 * waits for a processor; what is copied, and answers to READs of the other side, must fit
	 * into the ring: three of the longest records.
	 */
	SOFT_LANE_WINDOW = 32 << 20,
	SOFT_LANE_WINDOW_COPIED = 816 << 10,
	SOFT_LANE_READS = 8 << 20,
	/* Beyond that no request begins: what one turn of a queue pair sends, and answers, still
	 * fit. */
	SOFT_LANE_FULL = SOFT_RING_BYTES / 2,
	SOFT_LANE_TURN = 32, /* references of one turn: fewer fit into its bytes */
};

struct soft_lane_stats {
	uint64_t records, bytes; /* payload; through the ring, or by pulls */
	uint64_t pulls, pulled_bytes;
	/* Read, from the sender's shelf: copied by a GPU; by the processor. */
	uint64_t lent, lent_bytes, mapped, mapped_bytes;
	uint64_t direct, direct_bytes; /* from the memory of the sender's GPU: sent so, or read */
	uint64_t lost;		       /* no room in the ring; could not be fetched */
	uint64_t wakes;
};

struct soft_lane_reference {
	_Atomic uint64_t token; /* 0: taken back */
	uint64_t end;		/* the ring's position behind its record */
	uint32_t qpn;
	uintptr_t from, to; /* memory that its pieces lie in */
};

/* What the reader has of an allocation that may be shown to it. */
enum soft_show_state { SOFT_SHOW_NEVER, SOFT_SHOW_SHOWN, SOFT_SHOW_HELD, SOFT_SHOW_REFUSED };

struct soft_lane_show {
	uint32_t number; /* of the export; 0: nothing here */
	uint8_t state;
	bool withdrawn;
	int error;    /* refused: why */
	pp_ns answer; /* when */
};

enum soft_lane_end { SOFT_LANE_OUT, SOFT_LANE_IN };

struct soft_lane {
	enum soft_lane_end end; /* first, as in struct soft_lane_in */
	unsigned int slot;
	int fd, bell_fd; /* the connection; what wakes the reader */
	bool up;	 /* the reader said so */
	bool unrung;	 /* something was published, and nobody woken since */
	struct soft_ring ring;
	unsigned int users; /* queue pairs */
	struct soft_window window;
	uint64_t random;		/* tokens */
	const struct soft_shelf *shelf; /* borrowed; NULL: the reader knows of none */
	unsigned int next_reference;
	struct soft_lane_reference references[SOFT_LANE_REFERENCES];
	struct soft_lane_show shows[SOFT_EXPORTS_MAX];
	struct soft_lane_stats stats;
	struct soft_lane *next;
};

/* Knocks at @slot; soft_lane_hear() makes it usable. @shelf is shown to the reader, or NULL. -errno
 * of soft_door_knock(), soft_ring_make(). */
int soft_lane_open(unsigned int slot, unsigned int own_slot, const struct soft_shelf *shelf,
		   struct soft_lane **ret);
void soft_lane_close(struct soft_lane *lane); /* NULL is fine */
/* The connection can be read. 0: it is up; -EALREADY: it was, and more was said; -EAGAIN: not yet;
 * else it has ended. */
int soft_lane_hear(struct soft_lane *lane);
/* Then, until it is not 0: what the reader says of an allocation. -EAGAIN: nothing more; else as
 * above. */
int soft_lane_answered(struct soft_lane *lane, struct soft_door_answer *ret);
/* Shows @export to the reader, or takes it back. -errno: it could not be said. */
int soft_lane_show(struct soft_lane *lane, const struct soft_export *export);
int soft_lane_withdraw(struct soft_lane *lane, uint32_t number);
/* 0: the reader's GPU copies from what it was shown; else why it never does. */
int soft_lane_loan_errno(const struct soft_lane *lane);
/* A packet of queue pair @qpn. false: lost. */
bool soft_lane_send(struct soft_lane *lane, const struct soft_record_route *route, uint32_t qpn,
		    const struct soft_packet *p, const struct iovec *pieces,
		    unsigned int num_pieces);
/* Wakes the reader if it sleeps. */
void soft_lane_flush(struct soft_lane *lane);
/* What a queue pair may do on it now: most payload bytes of one packet, bytes that its READs ask
 * for (0: as on the wire), no request at all. Fits the window to how payload goes. */
struct soft_lane_shape {
	uint32_t jumbo, reads;
	bool full;
};
struct soft_lane_shape soft_lane_shape(struct soft_lane *lane);
/* 0: payload is fetched by the reader; else why it is copied. */
int soft_lane_pull_errno(const struct soft_lane *lane);
/* What was referred to in [from, to), or by @qpn, is not sent any more. */
void soft_lane_take_back(struct soft_lane *lane, uintptr_t from, uintptr_t to);
void soft_lane_take_back_of(struct soft_lane *lane, uint32_t qpn);

struct soft_lane_in {
	enum soft_lane_end end;
	int fd;
	pid_t pid; /* 0: none that has a number here */
	unsigned int slot;
	int pull_errno;		      /* 0: its memory can be read */
	struct soft_shelf_view *view; /* NULL: it shows none, or it cannot be mapped: */
	int view_errno;
	int loan_errno; /* why nothing is copied from the memory of his GPUs */
	struct soft_ring ring;
	struct soft_record_read read; /* the record being looked at */
	struct soft_lane_stats stats;
	struct soft_lane_in *next;
};

/* Takes one who knocks. -EAGAIN: nobody does. */
int soft_lane_in_accept(int listen_fd, struct soft_lane_in **ret);
void soft_lane_in_close(struct soft_lane_in *lane);
/* In a child: page-locked memory is the parent's business. */
void soft_lane_in_forget_view(struct soft_lane_in *lane);
/* As soft_lane_hear(); says welcome, and gives @bell_fd away. */
int soft_lane_in_hear(struct soft_lane_in *lane, int bell_fd);
/* Then, until it is not 0: what the writer shows, or takes back; the descriptor is the caller's. */
int soft_lane_in_told(struct soft_lane_in *lane, struct soft_showing *ret);
/* What becomes of it (copy/import.h). */
void soft_lane_in_answer(struct soft_lane_in *lane, uint32_t number, int what);

/*
 * Gives what lies there to @handler, at most about @budget bytes; @source is NULL, or what the
 * payload is to be fetched from. Returns how many records; -EPROTO: it wrote what cannot be.
 */
typedef void soft_lane_handler(void *arg, const struct soft_record *record, struct soft_packet *p);
int soft_lane_in_receive(struct soft_lane_in *lane, size_t budget, soft_lane_handler *handler,
			 void *arg);

#endif
