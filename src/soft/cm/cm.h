/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the connection manager, shared by the files of this folder.
 *
 * One lock (soft_cm_lock) covers every id, channel and event that is not yet delivered. One thread
 * watches sockets and deadlines; it never calls verbs and never waits. Verbs are called by the
 * threads of the application, without the lock: what a queue pair needs is done when its event is
 * delivered, as rdma-core does it.
 *
 * An id is found by its number, never by a pointer that the thread kept: it may be gone.
 */
#ifndef SOFT_CM_CM_H
#define SOFT_CM_CM_H

#include <stdbool.h>

#include "base/clock.h"
#include "soft/cm/message.h"
#include "soft/cm/rdma_cma.h"

enum { SOFT_CM_GIDS_MAX = 64, SOFT_CM_BACKLOG_MAX = 1024, SOFT_CM_PORT = 1 };

/* Reasons of a reject, as InfiniBand numbers them; what SIDR answers; and the same for who asks. */
enum {
	SOFT_CM_REJ_RESOURCES = 3,
	SOFT_CM_REJ_TIMEOUT = 4,
	SOFT_CM_REJ_SERVICE_ID = 8,
	SOFT_CM_REJ_GID = 12,
	SOFT_CM_REJ_CONSUMER = 28,
	SOFT_CM_REJ_VERSION = 31,
	SOFT_CM_REJ_OPTION = 35,
	SOFT_CM_SIDR_UNSUPPORTED = 1,
	SOFT_CM_SIDR_REJECT = 2,
};

struct soft_cm_device {
	struct ibv_device *device;
	struct ibv_context *verbs;
	struct ibv_pd *pd; /* while ids use the device */
	unsigned int users;
	struct soft_gid gids[SOFT_CM_GIDS_MAX];
	unsigned int num_gids;
	uint8_t max_responder_resources, max_initiator_depth, mtu;
};

struct soft_cm_id;

struct soft_cm_event {
	struct rdma_cm_event pub; /* first: what clients hold */
	struct soft_cm_id *id;	  /* whose it counts for: of a request, the listener */
	struct soft_cm_id *child; /* of a request, until it is delivered */
	struct soft_cm_event *next;
	uint8_t private_data[SOFT_CM_PRIVATE_MAX];
};

struct soft_cm_channel {
	struct rdma_event_channel pub; /* first; fd is readable while events wait */
	int wake;		       /* sleepers in rdma_get_cm_event() read this one */
	unsigned int generation;
	struct soft_cm_event *head, **tail;
};

enum soft_cm_state {
	SOFT_CM_IDLE,
	SOFT_CM_BOUND,
	SOFT_CM_ADDRESS, /* resolved */
	SOFT_CM_ROUTE,
	SOFT_CM_LISTENING,
	SOFT_CM_CALLING,   /* active: TCP is under way */
	SOFT_CM_REQUESTED, /* active: waits for the reply */
	SOFT_CM_REPLIED,   /* active: has the reply */
	SOFT_CM_INCOMING,  /* passive: the request is not whole */
	SOFT_CM_ASKED,	   /* passive: the application has to answer */
	SOFT_CM_ACCEPTED,  /* passive: waits until the other is ready */
	SOFT_CM_ESTABLISHED,
	SOFT_CM_LEAVING, /* told the other so */
	SOFT_CM_TIMEWAIT,
	SOFT_CM_OVER,
};

struct soft_cm_id {
	struct rdma_cm_id pub; /* first: what clients hold */
	struct soft_cm_channel *channel;
	struct soft_cm_device *device;
	enum soft_cm_state state;
	uint64_t number; /* in the table; 0: not there */
	unsigned int generation;
	unsigned int delivered, acked; /* events */
	bool sync, reuse, has_ack_timeout, watched;
	bool left;  /* by rdma_disconnect(); under soft_cm_qp_lock */
	int afonly; /* -1: not said */
	uint8_t tos, ack_timeout;

	/* the control socket */
	int fd;
	pp_ns deadline, give_up, refusable; /* 0: none */
	pp_ns interval;			    /* between two tries; 0: there is one try */
	size_t in_len;
	uint8_t in[SOFT_CM_MESSAGE_MAX];

	/* the handshake: what this side said, and the other */
	struct soft_cm_message local, remote;
	uint8_t responder_resources, initiator_depth, mtu, sgid_index;
	struct ibv_ece local_ece, remote_ece;

	/* a listener: its children that were not delivered. A child: its listener, if that lives */
	unsigned int waiting, backlog;
	struct soft_cm_id *listener;
	struct ibv_qp_init_attr *qp_init; /* for the children of an endpoint */
};

static inline struct soft_cm_id *soft_cm_of(struct rdma_cm_id *id)
{
	return (struct soft_cm_id *)id;
}

static inline bool soft_cm_datagram(const struct soft_cm_id *id)
{
	return id->pub.ps == RDMA_PS_UDP;
}

/* errno = @err, and -1. */
int soft_cm_fail(int err);

/* ── loop.c ── */

/* False: inherited by fork(); nothing but its memory is this process's. */
bool soft_cm_mine(unsigned int generation);
unsigned int soft_cm_generation(void);
/* Before anything else: what has to be there once a process. 0, or errno. */
int soft_cm_begin(void);
void soft_cm_lock(void);
void soft_cm_unlock(void);
/*
 * Between an event that ends a queue pair and the call that takes the queue pair away: the one may
 * be fetched by another thread. Taken without soft_cm_lock; verbs are called under it.
 */
void soft_cm_qp_lock(void);
void soft_cm_qp_unlock(void);
void soft_cm_wait_locked(void); /* until some event is acknowledged */
void soft_cm_wake_locked(void);

int soft_cm_enter_locked(struct soft_cm_id *id); /* into the table; 0 or errno */
void soft_cm_leave_locked(struct soft_cm_id *id);
struct soft_cm_id *soft_cm_find_locked(uint64_t number); /* NULL: gone */
/* @each of every id, which it may take out. */
void soft_cm_each_locked(void (*each)(struct soft_cm_id *id, void *arg), void *arg);

/* Watches the socket for @events of epoll; starts the thread. 0 or errno. */
int soft_cm_watch_locked(struct soft_cm_id *id, uint32_t events);
void soft_cm_unwatch_locked(struct soft_cm_id *id);
/* @after: from now; 0: no deadline. Needs a watched socket of anybody: the thread. */
void soft_cm_deadline_locked(struct soft_cm_id *id, pp_ns after);

/* ── control.c: what the thread calls ── */

void soft_cm_ready_locked(struct soft_cm_id *id, uint32_t events);
void soft_cm_late_locked(struct soft_cm_id *id);
void soft_cm_close_locked(struct soft_cm_id *id);
/* A child that no application has seen is gone. */
void soft_cm_forget_locked(struct soft_cm_id *id);
/* The handshake failed, or the connection ended: closes, and tells the application. */
void soft_cm_end_locked(struct soft_cm_id *id, enum rdma_cm_event_type event, int status);
/* Sends a message of @kind about @id; 0 or errno. */
int soft_cm_say_locked(struct soft_cm_id *id, enum soft_cm_kind kind, uint16_t status,
		       const void *private_data, uint8_t private_len);
int soft_cm_call_locked(struct soft_cm_id *id); /* active, TCP; 0 or errno */
void soft_cm_established_locked(struct soft_cm_id *id);
void soft_cm_timewait_locked(struct soft_cm_id *id);
/* The kernel's patience: with an answer to a request, and to a disconnect. */
extern const pp_ns soft_cm_patience, soft_cm_leave_wait;
extern const pp_ns soft_cm_grace; /* for a listener that is not there yet */

/* ── socket.c ── */

/* A socket for the id's port space, bound to @address; reports the address with its port.
 * Negative: -errno. */
int soft_cm_socket(struct soft_cm_id *id, struct sockaddr_storage *address);
/* The address from which @to is reached; 0 or errno. @from: asked for, or any. */
int soft_cm_route(const struct sockaddr *from, const struct sockaddr *to,
		  struct sockaddr_storage *ret);
int soft_cm_socket_listen(int fd); /* 0 or errno */
void soft_cm_tune(int fd);

/* ── listen.c ── */

void soft_cm_accept_locked(struct soft_cm_id *listener);
void soft_cm_resume_locked(struct soft_cm_id *listener); /* when fewer wait */
void soft_cm_request_locked(struct soft_cm_id *child);	 /* its request is whole: tells */
void soft_cm_refuse_locked(struct soft_cm_id *child, uint16_t reason); /* and frees it */

/* ── datagram.c ── */

int soft_cm_lookup_locked(struct soft_cm_id *id);	 /* active: sends it, again and again */
void soft_cm_lookup_ready_locked(struct soft_cm_id *id); /* active: readable */
void soft_cm_lookup_late_locked(struct soft_cm_id *id);
void soft_cm_lookup_accept_locked(struct soft_cm_id *listener); /* passive: readable */
int soft_cm_lookup_answer_locked(struct soft_cm_id *child, uint16_t status, const void *data,
				 uint8_t len);

/* ── id.c ── */

struct soft_cm_id *soft_cm_id_new(struct soft_cm_channel *channel, void *context,
				  enum rdma_port_space ps, enum ibv_qp_type type);
int soft_cm_id_create(struct soft_cm_channel *channel, struct soft_cm_id **ret, void *context,
		      enum rdma_port_space ps, enum ibv_qp_type type);
void soft_cm_id_free(struct soft_cm_id *id);
/* Ends what the id has with its peer, says so, and takes it out of the table. */
void soft_cm_id_end_locked(struct soft_cm_id *id);
int soft_cm_id_migrate(struct soft_cm_id *id, struct rdma_event_channel *channel);

/* ── channel.c ── */

struct soft_cm_event *soft_cm_event_new(struct soft_cm_id *id, enum rdma_cm_event_type type,
					int status);
/* What the application is told of a message. */
void soft_cm_event_fill(struct soft_cm_event *event, const struct soft_cm_message *m);
void soft_cm_push_locked(struct soft_cm_channel *channel, struct soft_cm_event *event);
/* An event without more to it. */
void soft_cm_tell_locked(struct soft_cm_id *id, enum rdma_cm_event_type type, int status);
/* Takes events of the id out of its channel; their children end. */
void soft_cm_purge_locked(struct soft_cm_id *id);
void soft_cm_move_locked(struct soft_cm_id *id, struct soft_cm_channel *to);
void soft_cm_ack_locked(struct soft_cm_id *id);
/* The next event, counted as delivered; sleeps for it. 0 or errno. */
int soft_cm_channel_take(struct rdma_event_channel *channel, struct soft_cm_event **ret);

/* ── device.c ── */

/* Opens them: whoever listens does, so that its thread finds them open. 0 or errno. */
int soft_cm_device_look(void);
struct soft_cm_device *soft_cm_device_find(const struct soft_gid *gid, uint8_t *ret_index);
int soft_cm_device_hold(struct soft_cm_device *device); /* and its protection domain; 0 or errno */
void soft_cm_device_drop(struct soft_cm_device *device);
void soft_cm_device_forget(void); /* in a child of fork() */

/* ── resolve.c ── */

/* Gives the id the device of its local address; 0 or errno (ENODEV). */
int soft_cm_take_device(struct soft_cm_id *id);
/* The route of an id whose addresses are known: GIDs and the one path. 0 or errno. */
int soft_cm_take_route(struct soft_cm_id *id);

/* ── qp.c ── */

int soft_cm_qp_connect(struct soft_cm_id *id); /* to RTR and RTS; 0 or errno */
int soft_cm_qp_error(struct soft_cm_id *id);
/* The application leaves, and may take its queue pair away. */
int soft_cm_qp_leave(struct soft_cm_id *id);
void soft_cm_qp_left(struct soft_cm_id *id);			/* the other side has */
int soft_cm_qp_start(struct soft_cm_id *id, struct ibv_qp *qp); /* a new one */

/* ── endpoint.c ── */

/* A synchronous id waits for the event of the call that it made. */
int soft_cm_complete(struct soft_cm_id *id);

#endif
