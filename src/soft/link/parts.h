/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a link among themselves: sockets, the train being built, what came in, ill wires.
 */
#ifndef SOFT_LINK_PARTS_H
#define SOFT_LINK_PARTS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "soft/link/arrival.h"
#include "soft/link/fault.h"
#include "soft/link/link.h"
#include "soft/link/outbox.h"
#include "soft/link/slot.h"

enum {
	SOFT_SENDERS = 4,	  /* sockets an address: source ports for ECMP */
	SOFT_TRAIN_PACKETS = 64,  /* UDP_MAX_SEGMENTS of kernels before 6.9; later ones take 128 */
	SOFT_TRAIN_BYTES = 65507, /* 65535 - IPv4 header 20 - UDP header 8 */
	SOFT_HELD_MAX = 8,
	SOFT_LATER_BYTES = 512, /* of payload: less is packed at once */
};

union soft_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct soft_sender {
	int fd; /* -1: not made yet */
	uint16_t port;
	bool no_trains; /* not wanted, or the kernel or the device refused UDP_SEGMENT */
	/* Where its trains go, and the mark of the last one. */
	unsigned int outbox;
	uint64_t last;
};

/* What is known of the group of processes that share a receiving socket's port; see steer.c. */
struct soft_steer {
	uint32_t nonce;		/* of the probes under way, 0: none */
	unsigned int first;	/* place that the first of them goes to */
	unsigned int answers;	/* to them */
	unsigned int fresh;	/* slots that they brought to light */
	unsigned int seen;	/* answers that the slot took in before */
	unsigned int misrouted; /* runs handed on since it was last asked */
	pp_ns deadline, not_before;
	int16_t places[SOFT_SLOTS]; /* by slot, -1: unknown */
	int16_t told[SOFT_SLOTS];   /* the same, of this asking alone */
	bool heard[SOFT_SLOTS];	    /* who asked meanwhile */
	unsigned int again;	    /* times it was asked again for their sake */
};

struct soft_receiver {
	int fd;
	bool ipv4;
	struct soft_gid gid;
	unsigned int streak; /* turns in a row that found something at once */
	struct soft_steer steer;
};

/* A packet's payload that its train has only the place for. */
struct soft_later {
	struct iovec piece; /* iov_base NULL: it is packed */
	size_t header;	    /* bytes before it */
};

/* Packets of one path and size, the last maybe shorter, in the order of the wire. */
struct soft_train {
	struct soft_outbox *outbox; /* that it lies in; NULL: the link's own */
	struct soft_sender *sender;
	struct soft_icrc_flow flow;
	uint8_t traffic_class, hop_limit;
	bool closed; /* its last packet was shorter */
	unsigned int packets;
	size_t segment, total; /* bytes of the first packet, of all */
	unsigned int unpacked; /* packets: who sends it packs them */
	struct soft_later later[SOFT_TRAIN_PACKETS];
	uint8_t bytes[SOFT_TRAIN_BYTES];
};

/* A packet that an ill wire holds back. */
struct soft_held {
	struct soft_path path;
	unsigned int behind, flushes; /* packets, and flushes, that still go before it */
	size_t len;
	uint8_t bytes[SOFT_HEADER_MAX + SOFT_MTU_MAX + 3 + SOFT_ICRC_BYTES];
};

struct soft_late; /* a packet that goes later; ill.c */

struct soft_ill {
	struct soft_fault *fault;	    /* borrowed */
	struct soft_late *late, *late_last; /* those that go later */
	size_t late_bytes;
	pp_ns free_at; /* when a slow wire takes the next packet */
	unsigned int num_held;
	struct soft_held held[SOFT_HELD_MAX];
};

struct soft_link {
	struct soft_receiver receivers[SOFT_LINK_GIDS_MAX];
	unsigned int num_receivers;
	/* These two are of who reads: by turns, or the thread that does nothing else. */
	unsigned int hot;   /* receiver that got something last: read first */
	unsigned int turns; /* of receiving; the others are read every few */
	unsigned int slot;
	bool singly;
	struct soft_slot *handover; /* borrowed, or NULL */
	size_t receive_buffer;
	struct soft_sender senders[SOFT_LINK_GIDS_MAX][SOFT_SENDERS];
	struct soft_ill *ill; /* NULL: the wire is sound */
	struct soft_link_stats stats;
	/* Borrowed; none: whoever builds a train sends it. All trains of a sender go by the same.
	 */
	struct soft_outbox *outboxes[SOFT_OUTBOXES_MAX];
	unsigned int num_outboxes;
	struct soft_train *train; /* that is being built: own_train, or one of an outbox */
	struct soft_train own_train;
	uint64_t given;		     /* packets, to the kernel or an outbox */
	uint64_t bulk;		     /* bytes of those in long trains */
	struct soft_arrival arrival; /* the last one that soft_link_receive() read */
};

/* socket.c */
/* Fills @ret, returns its length. */
socklen_t soft_sockaddr_make(const struct soft_gid *gid, uint16_t port, union soft_sockaddr *ret);
/* Opens the socket that takes what comes to @gid; @ret_buffer: bytes the kernel granted. */
int soft_receiver_open(struct soft_receiver *r, const struct soft_gid *gid, size_t *ret_buffer,
		       struct pp_error *err);
/* Opens a socket on a random port of 0xC000-0xFFFF. */
int soft_sender_open(struct soft_sender *s, const struct soft_gid *gid);

/* train.c */
/* As soft_link_send(). */
uint64_t soft_train_add(struct soft_link *link, const struct soft_path *path,
			const struct soft_packet *p, const struct iovec *pieces,
			unsigned int num_pieces);
/* Sends @len bytes that are a whole packet already, as a train of its own. */
void soft_train_send_raw(struct soft_link *link, const struct soft_path *path, const uint8_t *bytes,
			 size_t len);
/* Gives it to the kernel, or to its outbox. */
void soft_train_send(struct soft_link *link);
/* Copies payload that it has only the place for, and sums it. */
void soft_train_pack(struct soft_train *t);
/* Nothing but the system call: 0 or -errno. */
int soft_train_transmit(struct soft_train *t);
/* Counts what the outboxes have sent; trains that were refused go packet by packet. */
void soft_train_reap(struct soft_link *link);

/* steer.c */
/* Attaches a filter that takes the slot for the place: until somebody has asked. */
void soft_steer_by_number(int fd);
/* Asks who sits where; link->handover must be there. */
void soft_steer_start(struct soft_link *link, struct soft_receiver *r);
/* Goes on with it, as far as answers have come. Only while r->steer.nonce is set. */
void soft_steer_advance(struct soft_link *link, struct soft_receiver *r);
/* Is the datagram, which is for our slot, an answer to a probe? */
bool soft_steer_takes(struct soft_link *link, struct soft_receiver *r,
		      const struct soft_datagram *d);
/* A probe of the slot was handed on. */
void soft_steer_heard(struct soft_receiver *r, unsigned int slot);
/* Asks again, unless it is under way or was done just now. */
void soft_steer_doubt(struct soft_link *link, struct soft_receiver *r);
/* Datagrams of another slot came, and their process is there. */
void soft_steer_misrouted(struct soft_link *link, struct soft_receiver *r);

/* ill.c */
void soft_ill_send(struct soft_link *link, const struct soft_path *path,
		   const struct soft_packet *p, const struct iovec *pieces,
		   unsigned int num_pieces);
/* Lets go what was held back for long enough. When it wants to be called again; 0: it does not. */
pp_ns soft_ill_flush(struct soft_link *link);
/* Lets go all that is held back. */
void soft_ill_end(struct soft_link *link);
int soft_ill_new(struct soft_fault *fault, struct soft_ill **ret); /* -ENOMEM */
void soft_ill_free(struct soft_ill *ill);			   /* NULL is fine */

#endif
