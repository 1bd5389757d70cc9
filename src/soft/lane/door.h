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
 *   showing (+ memory of a GPU)       ────────►  maps it
 *   may lend what lies there           ◄────────  answer
 *
 * The connection stays: its end is the end of the process, or of the lane. Who is at the other end
 * is told by the kernel (SO_PEERCRED); root does not count as the same user. Nothing here waits.
 */
#ifndef SOFT_LANE_DOOR_H
#define SOFT_LANE_DOOR_H

#include <stdint.h>
#include <sys/types.h>

#include "soft/copy/export.h"

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

enum { SOFT_LANE_MAGIC = 0x706c0003 };

/* Of the writer, at any time later: an allocation of a GPU that the reader may map, or (no kind)
 * has to let go. */
struct soft_showing {
	uint32_t magic;
	uint32_t kind; /* enum soft_export_kind */
	uint32_t number;
	int32_t fd; /* -1: none. What goes over is the descriptor itself */
	uint64_t bytes;
	uint8_t handle[SOFT_EXPORT_HANDLE];
};

/* And of the reader: what became of it (copy/import.h). */
struct soft_door_answer {
	uint32_t magic;
	uint32_t number;
	int32_t what;
};

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
int soft_door_tell(int fd, const struct soft_showing *showing);
int soft_door_told(int fd, struct soft_showing *ret);
int soft_door_answer(int fd, uint32_t number, int what);
int soft_door_answered(int fd, struct soft_door_answer *ret);
int soft_door_welcomed(int fd, struct soft_welcome *ret, int *ret_bell_fd);

#endif
