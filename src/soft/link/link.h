/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_link: the sockets of one device: a receiving one a address on UDP 4791, a few sending
 * ones.
 *
 * Sending sockets are unconnected with IP_MTU_DISCOVER=DO (see wire/icrc.h), bound to random ports
 * of 0xC000-0xFFFF. Packets of one flow and size leave as one UDP_SEGMENT train; GRO trains come
 * in. Several processes of one user share 4791 by SO_REUSEPORT and a classic filter on the top
 * bits of DestQP (the slot, see slot.h); what still comes to the wrong process is handed on.
 * Not thread-safe: the engine's lock covers it.
 */
#ifndef SOFT_LINK_LINK_H
#define SOFT_LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/error.h"
#include "soft/link/path.h"
#include "soft/wire/packet.h"

struct soft_fault;
struct soft_link;
struct soft_slot;

enum { SOFT_LINK_GIDS_MAX = 16, SOFT_LINK_FDS_MAX = SOFT_LINK_GIDS_MAX };

/* May threads of their own read the sockets, and send, while callers carry bulk? */
enum soft_wire_threads {
	SOFT_WIRE_THREADS_AUTO, /* where the process has processors to spare */
	SOFT_WIRE_THREADS_YES,
	SOFT_WIRE_THREADS_NO,
};

struct soft_link_config {
	struct soft_gid
		gids[SOFT_LINK_GIDS_MAX]; /* local addresses, each gets a receiving socket */
	unsigned int num_gids;
	unsigned int slot; /* of this process, for the filter */
	/* Borrowed; datagrams for other slots are handed on by it before any other look at them.
	 * NULL: the handler gets them. */
	struct soft_slot *handover;
	struct soft_fault *fault;	     /* borrowed; NULL: none */
	bool singly;			     /* no trains: each packet leaves alone */
	bool wire_only;			     /* the engine's: no lanes */
	bool gpu_staged;		     /* and: no GPU copies from a peer's memory */
	enum soft_wire_threads wire_threads; /* the engine's, too */
};

/* One UDP payload that came in, cut out of its train. */
struct soft_datagram {
	const uint8_t *bytes; /* BTH to ICRC; borrowed until the handler returns */
	size_t len;
	struct soft_gid src, dst;
	uint16_t sport;
	uint16_t place; /* in its train: the likely IPv4 identification */
	uint8_t traffic_class, hop_limit;
	const struct soft_icrc_verdict *checked; /* as long as @bytes; NULL: nobody has yet */
};

struct soft_link_stats {
	uint64_t sent_packets, sent_bytes, sent_trains, send_errors;
	uint64_t received_packets, received_bytes, received_trains, truncated;
	/* Of trains received by the thread that only reads; sent by those that only send. */
	uint64_t threaded_trains, threaded_sends;
	uint64_t handed_on, not_handed; /* packets for another process; no longer there, or busy */
	int last_send_errno;
};

/* -EADDRINUSE: another user or the kernel (rdma_rxe) owns UDP 4791 there; the text says so. */
int soft_link_open(const struct soft_link_config *config, struct soft_link **ret,
		   struct pp_error *err);
void soft_link_close(struct soft_link *link); /* NULL is fine */

/* Descriptors to be watched for reading; returns how many. */
unsigned int soft_link_fds(const struct soft_link *link, int ret_fds[SOFT_LINK_FDS_MAX]);

/* Bytes that may safely be under way to one receiving socket of this kind: what the kernel granted.
 */
size_t soft_link_receive_buffer(const struct soft_link *link);

/*
 * Reads what is waiting, at most about @budget bytes, without blocking; calls @handler for each
 * datagram in order of arrival. Returns the number of datagrams. For who waits for one datagram it
 * is fast rather than thorough: call it again, within a few turns every socket is read.
 */
typedef void soft_datagram_handler(void *arg, const struct soft_datagram *d);
unsigned int soft_link_receive(struct soft_link *link, size_t budget,
			       soft_datagram_handler *handler, void *arg);

/*
 * Fills @ret: source port chosen by @entropy (a QP number). -EADDRNOTAVAIL: @src is none of ours.
 */
int soft_link_path(struct soft_link *link, const struct soft_gid *src, const struct soft_gid *dst,
		   uint32_t entropy, struct soft_path *ret);

/*
 * Queues one packet: header fields of @p, p->payload_bytes of payload in @pieces (at most
 * SOFT_PIECES_MAX), each byte of which is read once: at once, and then it returns 0; or, if
 * p->later, by another thread, until soft_link_await_read() with the mark that it returns. The last
 * of a path stands for those before it. Sends earlier trains when needed; what the kernel refuses
 * is counted and lost, as a wire loses it.
 */
enum { SOFT_PIECES_MAX = 33 };
uint64_t soft_link_send(struct soft_link *link, const struct soft_path *path,
			const struct soft_packet *p, const struct iovec *pieces,
			unsigned int num_pieces);
/* Returns when all pieces that went along a path up to its @mark have been read: they may change,
 * or go away. */
void soft_link_await_read(struct soft_link *link, uint64_t mark);
/* The same for all that was sent. */
void soft_link_await_all_read(struct soft_link *link);
/* Sends what is queued. Returns when it wants to be called again, for packets that an ill wire
 * delays; 0: it does not. */
pp_ns soft_link_flush(struct soft_link *link);

/*
 * To be called when @fault has changed: packets leave by it from
 * now on, or soundly again. -ENOMEM: then they leave as before.
 */
int soft_link_set_fault(struct soft_link *link, struct soft_fault *fault);

/* No answer came where one should: looks whether what is for us still reaches us. Seldom, however
 * often it is called. */
void soft_link_doubt(struct soft_link *link);

/* Packets that were given to the kernel, or to a thread that sends for us. */
uint64_t soft_link_given(const struct soft_link *link);
/* Bytes of them in trains of 16 KiB or more. */
uint64_t soft_link_bulk(const struct soft_link *link);
/* Trains that may be sent along @path (NULL: any) without waiting for that thread; UINT_MAX: there
 * is none. */
unsigned int soft_link_room(struct soft_link *link, const struct soft_path *path);

const struct soft_link_stats *soft_link_stats(const struct soft_link *link);

#endif
