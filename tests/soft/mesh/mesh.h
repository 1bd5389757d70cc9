/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of one host, each connected to each by RC queue pairs, with plain verbs and nothing
 * else: every byte that moves is foretold and checked, every atomic counted, every receive in its
 * order. The parent holds no device; it starts members, kills them, and judges.
 *
 * What members tell each other lies on a board in shared memory. A message is known by who sends
 * it to whom over which lane, and its number: both ends make the same kind, size and bytes of it.
 */
#ifndef PP_TESTS_MESH_H
#define PP_TESTS_MESH_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	MESH_MEMBERS_MAX = 10,
	MESH_LANES_MAX = 256, /* queue pairs of two members */
	MESH_WINDOW = 8,      /* messages of a lane under way */
	MESH_RECEIVES = 8,
	MESH_INLINE = 64,
	MESH_GUARD = 32, /* bytes on either side of a message that must stay */
	MESH_SKIP = 77,
};

enum mesh_wait { MESH_POLLS, MESH_SLEEPS, MESH_MIXED };

struct mesh_plan {
	unsigned int members, lanes, size_max, receives;
	uint64_t count; /* messages of a lane each way; 0: until told to stop */
	uint64_t seed;
	uint8_t timeout, retry_cnt;
	enum mesh_wait wait;
};

/* What a member says of one of its queue pairs to the member at the other end. */
struct mesh_end {
	_Atomic bool published, connected, broken;
	uint32_t qpn, psn, rkey;
	uint64_t in, fixed, target; /* where they lie */
	_Atomic uint64_t verified;  /* messages that took a receive here */
	_Atomic uint64_t done;	    /* own messages that completed */
	_Atomic uint64_t total;	    /* own messages, when no more follow; else UINT64_MAX */
	uint64_t word;		    /* what the atomics have left at the other end; with total */
	int status, later; /* of the first failed completion; of another that followed it */
};

enum mesh_state { MESH_ABSENT, MESH_READY, MESH_DONE };

struct mesh_card {
	_Atomic int state;
	pid_t pid;
	union ibv_gid gid;
	char fault[256]; /* the first; set before the process ends */
};

struct mesh_board {
	struct mesh_plan plan;
	_Atomic bool stop, hold; /* no more messages; members stay after their last */
	_Atomic uint32_t dead;	 /* a bit a member */
	struct mesh_card card[MESH_MEMBERS_MAX];
	struct mesh_end end[MESH_MEMBERS_MAX][MESH_MEMBERS_MAX][MESH_LANES_MAX];
};

enum mesh_kind {
	MESH_WRITE, /* followed by a WRITE of nothing with an immediate */
	MESH_WRITE_IMM,
	MESH_SEND,
	MESH_SEND_IMM,
	MESH_READ,
	MESH_FETCH_ADD,
	MESH_SWAP,
	MESH_KINDS,
};

struct mesh_message {
	enum mesh_kind kind;
	uint32_t size, shift; /* bytes; where they begin behind the guard */
	uint64_t word;	      /* what its bytes are made of; what an atomic adds or swaps in */
	uint32_t imm;	      /* as the completion shows it */
	bool in_line, hits, pieces;
};

/*
 * Seconds in which this machine ran: one that was paused as a whole has given nobody the chance to
 * go on.
 */
struct mesh_clock {
	int64_t last, sum_ns;
};
int64_t mesh_clock_s(struct mesh_clock *clock);

/* message.c */
struct mesh_message mesh_message(const struct mesh_plan *plan, unsigned int from, unsigned int to,
				 unsigned int lane, uint64_t number);
static inline bool mesh_receives(const struct mesh_message *m)
{
	return m->kind <= MESH_SEND_IMM;
}
uint64_t mesh_mix(uint64_t a, uint64_t b);
void mesh_fill(uint8_t *to, size_t len, uint64_t word);
void mesh_clear(uint8_t *to, size_t len);
/*
 * NULL: @slot holds, from @at on, @len bytes of @word from its @skip-th on, and is clear around
 * them; else what is wrong.
 */
const char *mesh_verify(const uint8_t *slot, size_t slot_bytes, size_t at, size_t len,
			uint64_t word, size_t skip);

struct mesh_lane {
	struct ibv_qp *qp;
	unsigned int peer, lane;
	struct mesh_end *mine, *far;
	bool connected, live, broken;
	uint32_t lkey;
	uint8_t *in, *received, *out, *back, *fixed; /* MESH_WINDOW slots each, fixed is one */
	uint64_t *target;			     /* of the peer's atomics */
	uint64_t posted, done;			     /* own messages */
	uint64_t asked;				     /* of them, that take a receive there */
	uint64_t taken;				     /* the peer's messages that took a receive */
	uint64_t far_number;		/* of the peer's message to be looked at next */
	uint64_t word;			/* in the peer's target, once all is done */
	uint64_t expected[MESH_WINDOW]; /* what an atomic under way will find */
};

struct mesh_member {
	struct mesh_board *board;
	unsigned int me;
	bool sleeps;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *first; /* never connected: holds the port from the start */
	enum ibv_mtu mtu;
	struct mesh_lane *lanes;
	unsigned int num_lanes, room;
	struct {
		uint8_t *memory;
		struct ibv_mr *mr;
	} peers[MESH_MEMBERS_MAX];
};

void mesh_fault(struct mesh_member *m, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* lane.c */
size_t mesh_slot_bytes(const struct mesh_plan *plan);
/* Lanes to every member that has come since. */
void mesh_lanes_open(struct mesh_member *m);
/* Brings those on whose other end is there. */
void mesh_lanes_connect(struct mesh_member *m);
/* The @number-th receive of the lane. */
void mesh_receive_post(struct mesh_member *m, struct mesh_lane *l, uint64_t number);

/* traffic.c */
/* Posts what the window and the receiver allow; true: something was. */
bool mesh_lane_send(struct mesh_member *m, struct mesh_lane *l);
void mesh_completion(struct mesh_member *m, const struct ibv_wc *wc);
/* All of both directions is through, or the lane is broken as it must be. */
bool mesh_lane_over(struct mesh_member *m, struct mesh_lane *l);

/* member.c: the life of a member; the exit status. */
int mesh_member_run(struct mesh_board *board, unsigned int me);

#endif
