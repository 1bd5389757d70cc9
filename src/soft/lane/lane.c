/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing end of a lane.
 *
 * A reference is a place in a small table whose token the record carries: the reader reads it
 * behind the bytes, so that storing 0 there takes the reference back. A place is used again when
 * the reader has passed its record.
 */
#include "soft/lane/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/banned.h"

static const pp_ns RTO_MIN = 50 * PP_MILLISECOND;

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static int knock(struct soft_lane *lane, unsigned int own_slot)
{
	struct soft_hello hello = {.magic = SOFT_LANE_MAGIC, .slot = own_slot};
	int memory, rc;

	if (getrandom(&lane->random, sizeof(lane->random), 0) != sizeof(lane->random))
		return -EIO;
	rc = soft_ring_make(&lane->ring, &memory);
	if (rc < 0)
		return rc;
	lane->random |= 1;
	hello.token_at = (uintptr_t)&lane->random;
	hello.token = lane->random;
	hello.shelf_at = lane->shelf ? (uintptr_t)lane->shelf->bytes : 0;
	lane->fd = soft_door_knock(lane->slot, &hello, memory, lane->shelf ? lane->shelf->fd : -1);
	(void)close(memory);
	return lane->fd < 0 ? lane->fd : 0;
}

int soft_lane_open(unsigned int slot, unsigned int own_slot, const struct soft_shelf *shelf,
		   struct soft_lane **ret)
{
	struct soft_lane *lane = calloc(1, sizeof(*lane));
	int rc;

	if (!lane)
		return -ENOMEM;
	lane->end = SOFT_LANE_OUT;
	lane->slot = slot;
	lane->shelf = shelf;
	lane->fd = lane->bell_fd = -1;
	/* Nothing has to be found out: nobody else uses the ring. */
	soft_window_init(&lane->window, SOFT_LANE_WINDOW);
	lane->window.limit = lane->window.limit_max;
	/* A reader that does not get the processor has lost nothing. */
	lane->window.rto_min = RTO_MIN;
	rc = knock(lane, own_slot);
	if (rc < 0) {
		soft_lane_close(lane);
		return rc;
	}
	*ret = lane;
	return 0;
}

void soft_lane_close(struct soft_lane *lane)
{
	if (!lane)
		return;
	close_fd(&lane->fd);
	close_fd(&lane->bell_fd);
	soft_ring_done(&lane->ring);
	free(lane);
}

int soft_lane_hear(struct soft_lane *lane)
{
	struct soft_welcome welcome;
	int rc;

	if (lane->up)
		return -EALREADY;
	rc = soft_door_welcomed(lane->fd, &welcome, &lane->bell_fd);
	if (rc == 0)
		lane->up = true;
	return rc;
}

int soft_lane_answered(struct soft_lane *lane, struct soft_door_answer *ret)
{
	return soft_door_answered(lane->fd, ret);
}

int soft_lane_show(struct soft_lane *lane, const struct soft_export *x)
{
	struct soft_showing showing = {
		.kind = x->of.kind,
		.number = x->number,
		.bytes = x->of.len,
		.fd = x->of.fd,
	};

	memcpy(showing.handle, x->of.handle, sizeof(showing.handle));
	return soft_door_tell(lane->fd, &showing);
}

int soft_lane_withdraw(struct soft_lane *lane, uint32_t number)
{
	const struct soft_showing showing = {.number = number, .fd = -1};

	return soft_door_tell(lane->fd, &showing);
}

int soft_lane_loan_errno(const struct soft_lane *lane)
{
	return soft_ring_loan_errno(&lane->ring);
}

int soft_lane_pull_errno(const struct soft_lane *lane)
{
	return soft_ring_pull_errno(&lane->ring);
}

static void resize(struct soft_window *w, uint64_t limit)
{
	if (w->limit_max == limit)
		return;
	w->limit = w->limit_max = w->fast_until = limit;
}

/* Is there a place for each reference of a turn? */
static bool references_left(struct soft_lane *lane)
{
	unsigned int last = lane->next_reference + SOFT_LANE_TURN - 1;

	return soft_ring_passed(&lane->ring, lane->references[last % SOFT_LANE_REFERENCES].end);
}

struct soft_lane_shape soft_lane_shape(struct soft_lane *lane)
{
	bool copied = soft_lane_pull_errno(lane);

	resize(&lane->window, copied ? SOFT_LANE_WINDOW_COPIED : SOFT_LANE_WINDOW);
	return (struct soft_lane_shape){
		.jumbo = copied ? SOFT_LANE_JUMBO_COPIED : SOFT_LANE_JUMBO,
		.reads = copied ? 0 : SOFT_LANE_READS,
		.full = soft_ring_beyond(&lane->ring, SOFT_LANE_FULL) || !references_left(lane),
	};
}

/* A place for a reference, or NULL: the reader is too far behind. */
static struct soft_lane_reference *reference(struct soft_lane *lane)
{
	struct soft_lane_reference *r =
		&lane->references[lane->next_reference % SOFT_LANE_REFERENCES];

	if (!soft_ring_passed(&lane->ring, r->end))
		return NULL;
	lane->next_reference++;
	return r;
}

/* The token of a new reference to @pieces, behind whose record the ring will be at @end. */
static uint64_t refer(struct soft_lane *lane, struct soft_lane_reference *r, uint32_t qpn,
		      const struct iovec *pieces, unsigned int num_pieces, uint64_t end)
{
	/* Odd steps of an odd number: it comes round to a used one after 2^63. */
	uint64_t token = lane->random += 2;

	r->end = end;
	r->qpn = qpn;
	r->from = UINTPTR_MAX;
	r->to = 0;
	for (unsigned int i = 0; i < num_pieces; i++) {
		uintptr_t from = (uintptr_t)pieces[i].iov_base, to = from + pieces[i].iov_len;

		r->from = from < r->from ? from : r->from;
		r->to = to > r->to ? to : r->to;
	}
	atomic_store_explicit(&r->token, token, memory_order_release);
	return token;
}

static bool lost(struct soft_lane *lane)
{
	lane->stats.lost++;
	return false;
}

bool soft_lane_send(struct soft_lane *lane, const struct soft_record_route *route, uint32_t qpn,
		    const struct soft_packet *p, const struct iovec *pieces,
		    unsigned int num_pieces)
{
	struct soft_lane_reference *r = NULL;
	bool near;
	size_t bytes, skip = soft_ring_far(&lane->ring);
	uint8_t *at;

	if (skip && (at = soft_ring_reserve(&lane->ring, skip))) {
		soft_record_skip(at, skip);
		soft_ring_publish(&lane->ring, skip);
	}
	if (p->direct)
		num_pieces = 1;
	else if (p->stays && p->payload_bytes > SOFT_LANE_COPIED && !soft_lane_pull_errno(lane))
		r = reference(lane);
	near = !r && !p->direct;
	bytes = soft_record_bytes(near ? p->payload_bytes : 0, near ? 0 : num_pieces);
	at = soft_ring_reserve(&lane->ring, bytes);
	if (!at)
		return lost(lane);
	if (p->direct)
		soft_record_lend(at, route, p);
	else if (r)
		soft_record_refer(at, route, p, pieces, num_pieces, lane->shelf, &r->token,
				  refer(lane, r, qpn, pieces, num_pieces, lane->ring.mine + bytes));
	else
		soft_record_write(at, route, p, pieces, num_pieces);
	soft_ring_publish(&lane->ring, bytes);
	lane->unrung = true;
	lane->stats.records++;
	lane->stats.bytes += p->payload_bytes;
	lane->stats.pulls += r != NULL;
	lane->stats.pulled_bytes += r ? p->payload_bytes : 0;
	lane->stats.direct += p->direct != NULL;
	lane->stats.direct_bytes += p->direct ? p->payload_bytes : 0;
	return true;
}

void soft_lane_flush(struct soft_lane *lane)
{
	const uint64_t one = 1;

	if (!lane->unrung)
		return;
	lane->unrung = false;
	if (!soft_ring_must_wake(&lane->ring))
		return;
	lane->stats.wakes++;
	/* A full counter is a wake-up already. */
	(void)!write(lane->bell_fd, &one, sizeof(one));
}

static void take_back(struct soft_lane_reference *r)
{
	/* Before the memory is anybody else's: the reader reads the token behind the bytes. */
	atomic_store(&r->token, 0);
}

void soft_lane_take_back(struct soft_lane *lane, uintptr_t from, uintptr_t to)
{
	for (unsigned int i = 0; i < SOFT_LANE_REFERENCES; i++) {
		struct soft_lane_reference *r = &lane->references[i];

		if (r->from < to && from < r->to)
			take_back(r);
	}
}

void soft_lane_take_back_of(struct soft_lane *lane, uint32_t qpn)
{
	for (unsigned int i = 0; i < SOFT_LANE_REFERENCES; i++)
		if (lane->references[i].qpn == qpn)
			take_back(&lane->references[i]);
}
