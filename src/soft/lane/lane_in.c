/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading end of a lane. Nothing that the writer says or wrote is believed.
 */
#include "soft/lane/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

int soft_lane_in_accept(int listen_fd, struct soft_lane_in **ret)
{
	pid_t pid;
	int fd = soft_door_accept(listen_fd, &pid);
	struct soft_lane_in *lane;

	if (fd < 0)
		return fd;
	lane = calloc(1, sizeof(*lane));
	if (!lane) {
		(void)close(fd);
		return -ENOMEM;
	}
	lane->end = SOFT_LANE_IN;
	lane->fd = fd;
	lane->pid = pid;
	*ret = lane;
	return 0;
}

void soft_lane_in_forget_view(struct soft_lane_in *lane)
{
	lane->view = NULL;
}

/* From the view's imports to the writer. He who does not read waits in vain for what is lost. */
static void answer(void *arg, uint32_t number, int what)
{
	const struct soft_lane_in *lane = arg;

	(void)soft_door_answer(lane->fd, number, what);
}

int soft_lane_in_told(struct soft_lane_in *lane, struct soft_showing *ret)
{
	return soft_door_told(lane->fd, ret);
}

void soft_lane_in_answer(struct soft_lane_in *lane, uint32_t number, int what)
{
	answer(lane, number, what);
}

void soft_lane_in_close(struct soft_lane_in *lane)
{
	if (lane->view)
		lane->view->answer = NULL;
	soft_shelf_view_put(lane->view);
	(void)close(lane->fd);
	soft_ring_done(&lane->ring);
	free(lane);
}

int soft_lane_in_hear(struct soft_lane_in *lane, int bell_fd)
{
	struct soft_hello hello;
	int memory, shelf, rc;

	if (lane->ring.shared)
		return -EALREADY;
	rc = soft_door_hear(lane->fd, &hello, &memory, &shelf);
	if (rc < 0)
		return rc;
	rc = soft_ring_adopt(&lane->ring, memory);
	(void)close(memory);
	if (shelf >= 0) {
		/* Without it payload is fetched. */
		int seen = rc < 0 ? rc : soft_shelf_look(shelf, hello.shelf_at, &lane->view);

		lane->view_errno = -seen;
		if (!seen) {
			lane->view->answer = answer;
			lane->view->answer_arg = lane;
		}
		(void)close(shelf);
	}
	if (rc < 0)
		return rc;
	lane->slot = hello.slot;
	lane->pull_errno = soft_pull_try(lane->pid, hello.token_at, hello.token);
	if (lane->pull_errno)
		soft_ring_refuse_pulls(&lane->ring, lane->pull_errno);
	return soft_door_welcome(lane->fd, lane->pull_errno, bell_fd);
}

/* A fetch that failed for another reason than a reference taken back will fail again: from now on
 * the writer is to copy. */
static void note_pull(struct soft_lane_in *lane, const struct soft_pull *pull)
{
	lane->stats.pulls += pull->pulls;
	lane->stats.pulled_bytes += pull->bytes;
	lane->stats.lent += pull->lent;
	lane->stats.lent_bytes += pull->lent_bytes;
	lane->stats.mapped += pull->mapped;
	lane->stats.mapped_bytes += pull->mapped_bytes;
	lane->stats.direct += pull->direct;
	lane->stats.direct_bytes += pull->direct_bytes;
	lane->stats.lost += pull->lost;
	if (pull->loan_error && !lane->loan_errno) {
		lane->loan_errno = pull->loan_error;
		soft_ring_refuse_loans(&lane->ring, pull->loan_error);
	}
	if (!pull->error)
		return;
	lane->stats.lost++;
	if (pull->error == ESTALE || lane->pull_errno)
		return;
	lane->pull_errno = pull->error;
	soft_ring_refuse_pulls(&lane->ring, pull->error);
}

static void handle(struct soft_lane_in *lane, soft_lane_handler *handler, void *arg)
{
	struct soft_record_read *read = &lane->read;
	struct soft_pull pull;

	lane->stats.records++;
	lane->stats.bytes += read->packet.payload_bytes;
	if (!read->record.num_pieces) {
		handler(arg, &read->record, &read->packet);
		return;
	}
	soft_pull_init(&pull, lane->pid, lane->view, read);
	read->packet.source = &pull.source;
	handler(arg, &read->record, &read->packet);
	read->packet.source = NULL;
	note_pull(lane, &pull);
}

int soft_lane_in_receive(struct soft_lane_in *lane, size_t budget, soft_lane_handler *handler,
			 void *arg)
{
	const uint8_t *at;
	size_t there, got = 0;
	int n = 0;

	while (got < budget && (at = soft_ring_peek(&lane->ring, &there))) {
		int64_t bytes = soft_record_read(at, there, &lane->read);

		if (bytes < 0)
			return -EPROTO;
		if (lane->read.record.kind == SOFT_RECORD_PACKET) {
			handle(lane, handler, arg);
			got += lane->read.packet.payload_bytes;
			n++;
		}
		got += SOFT_RING_UNIT;
		/* Behind the look at it: the payload lies there. */
		soft_ring_take(&lane->ring, (size_t)bytes);
	}
	return lane->ring.broken ? -EPROTO : n;
}
