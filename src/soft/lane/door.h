/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two processes of one user in one network namespace come to share a ring: an abstract AF_UNIX
 * socket "peerpath-soft.<slot>.lane" beside the slot's own.
 *
 *   writer                                        reader
 *   connect, HELLO + ring's memory     ────────►  maps it, tries to read the writer's memory
 *   (+ shelf's memory)
 *   may write from now on              ◄────────  WELCOME + descriptor that wakes it
 *
 * The connection stays: its end is the end of the process, or of the lane. Who is at the other end
 * is told by the kernel (SO_PEERCRED); root does not count as the same user. Nothing here waits.
 */
#ifndef SOFT_LANE_DOOR_H
#define SOFT_LANE_DOOR_H

#include <stdint.h>
#include <sys/types.h>

struct soft_hello {
	uint32_t magic; /* changes with what lies in the ring */
	uint32_t slot;	/* of the writer: shown, not believed */
	/* A word of the writer's memory, to be read there: proves that the process of that number
	 * is the writer, and may be read. */
	uint64_t token_at, token;
	uint64_t shelf_at; /* where the writer has its shelf, if it shows one (copy/shelf.h) */
};

struct soft_welcome {
	uint32_t magic;
	int32_t pull_errno; /* 0: the reader can read the writer's memory */
};

enum { SOFT_LANE_MAGIC = 0x706c0002 };

/* Listening descriptor, or -errno. */
int soft_door_listen(unsigned int slot);

/* -ECONNREFUSED: nobody listens; -EAGAIN: too many wait there; -EPERM: another user's. Returns the
 * connection. @shelf_fd: -1: none. */
int soft_door_knock(unsigned int slot, const struct soft_hello *hello, int ring_fd, int shelf_fd);
/* -EAGAIN: nobody knocks; -EPERM: another user did, and was shut out. Returns the connection;
 * @ret_pid 0: of no process that has a number here. */
int soft_door_accept(int listen_fd, pid_t *ret_pid);

/* What the writer said, its ring, and its shelf or -1; -EAGAIN: nothing yet; else it is not one of
 * ours. */
int soft_door_hear(int fd, struct soft_hello *ret, int *ret_ring_fd, int *ret_shelf_fd);
int soft_door_welcome(int fd, int pull_errno, int bell_fd);
/* What the reader said, and what wakes it; as soft_door_hear(). */
int soft_door_welcomed(int fd, struct soft_welcome *ret, int *ret_bell_fd);

#endif
