/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that a responder refuses as they stand (InfiniBand Architecture Specification, volume 1,
 * 9.7.4.1 and the table of responder faults in 9.9.3): NAK, event, QP in error, no byte touched.
 */
#include "unit.h"

#include "soft_script.h"

#include "base/banned.h"

/* What is refused as it stands. 9.7.4.1: opcode, length, rights; no receive request is involved. */
static const struct refusal {
	const char *rule;
	struct step before, packet;
	uint8_t syndrome;
} refusals[] = {
	{"middle of nothing", {END}, IN(SEND_MIDDLE, P, .len = 256), 0x61},
	{"last of nothing", {END}, IN(SEND_LAST, P, .len = 1), 0x61},
	{"write's middle of nothing", {END}, IN(WRITE_MIDDLE, P, .len = 256), 0x61},
	{"write's last of nothing", {END}, IN(WRITE_LAST_IMM, P, .len = 1), 0x61},
	{"first twice", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(WRITE_FIRST, P + 1, .len = 256, .rlen = 600), 0x61},
	{"only in a message", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(WRITE_ONLY, P + 1, .len = 1, .rlen = 1), 0x61},
	{"send in a write", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(SEND_LAST, P + 1, .len = 1), 0x61},
	{"read in a write", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(READ_REQUEST, P + 1, .rlen = 1), 0x61},
	{"atomic in a write", IN(WRITE_FIRST, P, .len = 256, .rlen = 600), IN(FETCH_ADD, P + 1),
	 0x61},
	{"first shorter than the MTU", {END}, IN(WRITE_FIRST, P, .len = 252, .rlen = 600), 0x61},
	{"first longer than the MTU", {END}, IN(WRITE_FIRST, P, .len = 260, .rlen = 600), 0x61},
	{"send's first shorter", {END}, IN(SEND_FIRST, P, .len = 255), 0x61},
	{"middle shorter", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(WRITE_MIDDLE, P + 1, .len = 8), 0x61},
	{"last of nothing in it", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(WRITE_LAST, P + 1), 0x61},
	{"last longer than the MTU", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(WRITE_LAST, P + 1, .len = 344), 0x61},
	{"only longer than the MTU", {END}, IN(WRITE_ONLY, P, .len = 257, .rlen = 257), 0x61},
	{"send's only longer than the MTU", {END}, IN(SEND_ONLY, P, .len = 300), 0x61},
	{"only, not all of its length", {END}, IN(WRITE_ONLY, P, .len = 8, .rlen = 9), 0x61},
	{"only, more than its length", {END}, IN(WRITE_ONLY, P, .len = 8, .rlen = 7), 0x61},
	{"only of nothing with a length", {END}, IN(WRITE_ONLY, P, .rlen = 4), 0x61},
	{"only with bytes and no length", {END}, IN(WRITE_ONLY, P, .len = 4), 0x61},
	{"first with all of its length", {END}, IN(WRITE_FIRST, P, .len = 256, .rlen = 256), 0x61},
	{"middle with all of its length", IN(WRITE_FIRST, P, .len = 256, .rlen = 512),
	 IN(WRITE_MIDDLE, P + 1, .len = 256), 0x61},
	{"last too early", IN(WRITE_FIRST, P, .len = 256, .rlen = 600),
	 IN(WRITE_LAST, P + 1, .len = 256), 0x61},
	{"last one byte short", IN(WRITE_FIRST, P, .len = 256, .rlen = 300),
	 IN(WRITE_LAST, P + 1, .len = 43), 0x61},
	{"last one byte long", IN(WRITE_FIRST, P, .len = 256, .rlen = 300),
	 IN(WRITE_LAST, P + 1, .len = 45), 0x61},
	{"write longer than 2^31", {END}, IN(WRITE_FIRST, P, .len = 256, .rlen = 0x80000001), 0x61},
	{"read longer than 2^31", {END}, IN(READ_REQUEST, P, .rlen = 0x80000001), 0x61},
	{"QP without write", ALLOW(SOFT_ACCESS_REMOTE_READ), IN(WRITE_ONLY, P, .len = 4, .rlen = 4),
	 0x61},
	{"QP without read", ALLOW(SOFT_ACCESS_REMOTE_WRITE), IN(READ_REQUEST, P, .rlen = 4), 0x61},
	{"QP without atomics", ALLOW(SOFT_ACCESS_REMOTE_WRITE), IN(COMPARE_SWAP, P), 0x61},
	{"write by no key", {END}, IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .key = KEY_GONE), 0x62},
	{"write by a read key",
	 {END},
	 IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .key = KEY_READ),
	 0x62},
	{"write by a local key",
	 {END},
	 IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .key = KEY_LOCAL),
	 0x62},
	{"write into another domain",
	 {END},
	 IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .key = KEY_FOREIGN),
	 0x62},
	{"write over the end",
	 {END},
	 IN(WRITE_ONLY, P, .va = STAGE_BYTES - 3, .len = 4, .rlen = 4),
	 0x62},
	{"write before the start",
	 {END},
	 IN(WRITE_ONLY, P, .va = (uint64_t)-1, .len = 4, .rlen = 4),
	 0x62},
	{"write around the address space",
	 {END},
	 IN(WRITE_ONLY, P, .va = -STAGE_VA - 2, .len = 4, .rlen = 4),
	 0x62},
	{"write whose end alone is outside",
	 {END},
	 IN(WRITE_FIRST, P, .va = 256, .len = 256, .rlen = STAGE_BYTES - 255),
	 0x62},
	{"read by a local key", {END}, IN(READ_REQUEST, P, .rlen = 4, .key = KEY_LOCAL), 0x62},
	{"read by no key", {END}, IN(READ_REQUEST, P, .rlen = 4, .key = KEY_GONE), 0x62},
	{"read from another domain",
	 {END},
	 IN(READ_REQUEST, P, .rlen = 4, .key = KEY_FOREIGN),
	 0x62},
	{"read over the end", {END}, IN(READ_REQUEST, P, .rlen = STAGE_BYTES + 1), 0x62},
	{"read of 2^31", {END}, IN(READ_REQUEST, P, .rlen = 0x80000000), 0x62},
	{"atomic by a read key", {END}, IN(FETCH_ADD, P, .key = KEY_READ), 0x62},
	{"atomic by no key", {END}, IN(COMPARE_SWAP, P, .key = KEY_GONE), 0x62},
	{"atomic that the memory refuses", {END}, IN(FETCH_ADD, P, .key = KEY_BROKEN), 0x63},
};

static void refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		struct stage *s = stage_open(SOFT_RC);
		struct step nak = NAK(r->syndrome, r->packet.psn, 0);
		static const enum soft_qp_event events[] = {
			SOFT_QP_EVENT_REQUEST, SOFT_QP_EVENT_ACCESS, SOFT_QP_EVENT_FATAL};
		struct stage_memory before;

		rule = r->rule;
		step_number = 0;
		play(s, &r->before);
		before = s->remote;
		play(s, &r->packet);
		(void)soft_qp_pump(&s->qp, 1 << 20, 1);
		expect_out(s, &nak);
		MUST(s->qp.state == SOFT_QP_ERR);
		MUST(s->num_events == 1 && s->events[0] == events[r->syndrome - 0x61]);
		s->seen_events = 1;
		MUST(s->counters.resp_remote_access_errors == (r->syndrome == 0x62));
		MUST(memcmp(&before, &s->remote, sizeof(before)) == 0);
		nothing_else(s);
		stage_close(s);
	}
}

/* The memory of a key may lie so that either address is even and the other is not. */
static void atomic_on_odd_memory(void **state)
{
	(void)state;
	for (unsigned int va = 0; va < 8; va += 4) {
		struct stage *s = stage_open(SOFT_RC);
		struct step in = IN(FETCH_ADD, P, .va = va, .add = 1), nak = NAK(0x61, P, 0);

		rule = "atomic on odd memory";
		s->region[KEY_ALL].base += 4;
		s->region[KEY_ALL].length -= 4;
		give(s, &in);
		expect_out(s, &nak);
		s->seen_events = 1;
		nothing_else(s);
		stage_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(atomic_on_odd_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
