/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verbs provider in memory: no library, no wire. Its one device, "null0", takes every request
 * and completes it at the next poll; what it is like and how it misbehaves is in one struct. It
 * keeps the rules that a device keeps: a queue that is full refuses, unsignalled requests that
 * succeed say nothing, after an error everything is flushed.
 */
#ifndef PP_TESTS_FAKE_NULL_H
#define PP_TESTS_FAKE_NULL_H

#include <stdbool.h>

#include "node/verbs.h"

enum { NULL_QPS = 64, NULL_COMPLETIONS = 1 << 16, NULL_RECEIVES = 1 << 14, NULL_GIDS = 4 };

struct null_message {
	unsigned int qp; /* in order of creation */
	uint64_t id, local, remote;
	uint32_t lkey, rkey, length;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
};

struct null {
	/* What it is like; null_reset() makes it a RoCE port with one v2 GID. */
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid[NULL_GIDS]; /* all zero: empty */
	uint32_t max_inline;
	bool old_library; /* does not say what kind a GID is */

	/* How it behaves. */
	unsigned int fail_nth; /* of the calls that can fail; ENOMEM. 0: none */
	bool mute;	       /* nothing ever completes */
	uint64_t error_at;     /* the so-manieth message (from 1) fails with @status; 0: none */
	enum ibv_wc_status status;
	uint64_t refuse_at; /* the so-manieth post fails with EINVAL */
	void (*on_send)(unsigned int qp, const struct ibv_send_wr *wr); /* NULL: nothing */
	void (*on_empty)(void);						/* a poll found nothing */

	/* What happened. */
	unsigned int calls, live; /* objects, and memory of lists */
	uint64_t sends, signalled, posts, polls, receives, overflows;
	struct null_message *log; /* of the first n_log messages; the test's */
	size_t n_log;
	struct ibv_qp_attr attr[NULL_QPS]; /* as modify_qp() left them */
	struct ibv_qp_cap cap[NULL_QPS];
};

extern struct null null;

void null_reset(void);
const struct pp_verbs *null_verbs(void);
/* A message of @length comes on queue pair @qp; false: no receive is posted. */
bool null_deliver(unsigned int qp, uint32_t length);
/* Receives that are posted and unused. */
unsigned int null_receives(unsigned int qp);

#endif
