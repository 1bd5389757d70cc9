/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the filter of the sockets that share UDP 4791 at one address right.
 *
 * The filter returns a place in the kernel's list of the group. Places are given in the order of
 * bind(), and when a process goes, the last one moves into its gap: nobody is told. So a link that
 * joins, or that gets what is others' too often, asks: it sends probes that the filter delivers to
 * place 0, 1, 2.. Whoever gets one that is not its own hands it on like any other datagram, and so
 * answers: the slot that the answer comes from sits at that place. From the answers a table of
 * slots is made and attached for the whole group.
 *
 * Nothing here has to be right for a datagram to arrive: a wrong table costs a hop. Only a process
 * that is stopped, and hands nothing on, swallows what a stale table brings it: who waits for an
 * answer in vain asks too. Two processes
 * that ask at once may each attach what is old already: who is asked by one that it has not found
 * asks again. A place beyond the group's end is left to the kernel's hash, so it is answered by a
 * process whose true place is lower: the lowest counts. Probes need a filter too, so the
 * first of a group brings one along when it binds.
 */
#include <linux/filter.h>
#include <sys/random.h>

#include "base/compiler.h"
#include "soft/link/parts.h"
#include "soft/link/probe.h"
#include "soft/wire/psn.h"
#include "base/banned.h"

enum {
	BATCH = 8, /* within net.unix.max_dgram_qlen, 10 by default */
	UNKNOWN = -1,
	MISROUTED_MAX = 16,
	AGAIN_MAX = 3,
};
#define PATIENCE (20 * PP_MILLISECOND)	/* for an answer: the other one may have to wake up */
#define PAUSE	 (100 * PP_MILLISECOND) /* between two times of asking */

/*
 * The table as a filter; offset 0 is the UDP payload. Where the kernel takes no filter, things stay
 * as they are.
 */
static void attach(int fd, const int16_t places[SOFT_SLOTS])
{
	struct sock_filter code[6 + 2 * SOFT_SLOTS] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SOFT_PROBE_PKEY_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SOFT_PROBE_PLACE_AT),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SOFT_SLOT_AT),
	};
	struct sock_fprog program = {.filter = code};
	unsigned int n = 5;

	for (unsigned int slot = 0; slot < SOFT_SLOTS; slot++) {
		if (places[slot] == UNKNOWN)
			continue;
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (uint32_t)places[slot]);
	}
	/* Slots are taken from the lowest on: of an unknown one, its number is the best guess. */
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	program.len = (unsigned short)n;
	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

void soft_steer_by_number(int fd)
{
	int16_t places[SOFT_SLOTS];

	for (unsigned int i = 0; i < SOFT_SLOTS; i++)
		places[i] = UNKNOWN;
	attach(fd, places);
}

static void send_batch(struct soft_link *link, struct soft_receiver *r)
{
	struct soft_steer *s = &r->steer;
	struct soft_path path;

	s->answers = s->fresh = 0;
	s->deadline = pp_clock_monotonic() + PATIENCE;
	/* Without a socket to send from nobody answers: the deadline ends it. */
	if (soft_link_path(link, &r->gid, &r->gid, 0, &path) < 0)
		return;
	soft_train_send(link);
	for (unsigned int i = 0; i < BATCH; i++) {
		struct soft_packet p = {
			.opcode = SOFT_ACKNOWLEDGE,
			.dest_qp = link->slot << SOFT_SLOT_SHIFT | (s->first + i),
			.psn = s->nonce,
		};

		/* Each alone: a train is steered as one. */
		soft_train_add(link, &path, &p, /* pieces= */ NULL, 0);
		soft_train_send(link);
	}
}

static void ask(struct soft_link *link, struct soft_receiver *r)
{
	struct soft_steer *s = &r->steer;
	uint32_t random = 0;

	/* It only tells this asking from the last one: any other number will do. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = s->nonce + 2;
	s->nonce = (random & SOFT_PSN_MASK) | 1;
	s->first = 0;
	s->misrouted = 0;
	s->seen = soft_slot_answers(link->handover);
	for (unsigned int i = 0; !s->not_before && i < SOFT_SLOTS; i++)
		s->places[i] = UNKNOWN;
	s->not_before = pp_clock_monotonic() + PAUSE;
	for (unsigned int i = 0; i < SOFT_SLOTS; i++) {
		s->told[i] = UNKNOWN;
		s->heard[i] = false;
	}
	send_batch(link, r);
}

void soft_steer_start(struct soft_link *link, struct soft_receiver *r)
{
	r->steer.again = 0;
	ask(link, r);
}

void soft_steer_heard(struct soft_receiver *r, unsigned int slot)
{
	if (r->steer.nonce && slot < SOFT_SLOTS)
		r->steer.heard[slot] = true;
}

/* Not even we were found, or somebody joined since the probes were sent. */
static bool missed(const struct soft_steer *s, unsigned int slot)
{
	if (s->told[slot] == UNKNOWN)
		return true;
	for (unsigned int i = 0; i < SOFT_SLOTS; i++)
		if (s->heard[i] && s->told[i] == UNKNOWN)
			return true;
	return false;
}

static void answer(struct soft_steer *s, unsigned int slot, const struct soft_probe *probe)
{
	if (probe->nonce != s->nonce || probe->place < s->first ||
	    probe->place >= s->first + BATCH || slot >= SOFT_SLOTS)
		return;
	s->answers++;
	if (s->told[slot] == UNKNOWN)
		s->fresh++;
	if (s->told[slot] == UNKNOWN || probe->place < s->told[slot])
		s->told[slot] = probe->place;
}

bool soft_steer_takes(struct soft_link *link, struct soft_receiver *r,
		      const struct soft_datagram *d)
{
	struct soft_probe probe;

	if (!r->steer.nonce || !soft_probe_read(d->bytes, d->len, &probe))
		return false;
	answer(&r->steer, link->slot, &probe);
	return true;
}

/* Who did not answer may be stopped: it stays where it was last, unless another sits there now. */
static void learn(struct soft_steer *s)
{
	bool taken[SOFT_SLOTS] = {false};

	for (unsigned int i = 0; i < SOFT_SLOTS; i++)
		if (s->told[i] != UNKNOWN)
			taken[s->told[i]] = true;
	for (unsigned int i = 0; i < SOFT_SLOTS; i++)
		if (s->told[i] != UNKNOWN || (s->places[i] != UNKNOWN && taken[s->places[i]]))
			s->places[i] = s->told[i];
}

void soft_steer_advance(struct soft_link *link, struct soft_receiver *r)
{
	struct soft_steer *s = &r->steer;
	const struct soft_slot_answer *a;

	while ((a = soft_slot_answer(link->handover, &s->seen)))
		answer(s, a->from, &a->probe);
	if (s->answers < BATCH && pp_clock_monotonic() < s->deadline)
		return;
	/* Some may be stopped, and mute; beyond the group's end those answer who did before. */
	if (s->fresh && s->fresh == s->answers && s->first + 2 * BATCH <= SOFT_SLOTS) {
		s->first += BATCH;
		send_batch(link, r);
		return;
	}
	if (!missed(s, link->slot)) {
		learn(s);
		attach(r->fd, s->places);
		s->nonce = 0;
	} else if (s->again++ < AGAIN_MAX) {
		ask(link, r);
	} else {
		s->nonce = 0; /* what another attached may be better than this */
	}
}

void soft_steer_doubt(struct soft_link *link, struct soft_receiver *r)
{
	if (!r->steer.nonce && pp_clock_monotonic() >= r->steer.not_before)
		soft_steer_start(link, r);
}

void soft_steer_misrouted(struct soft_link *link, struct soft_receiver *r)
{
	if (++r->steer.misrouted >= MISROUTED_MAX)
		soft_steer_doubt(link, r);
}
