/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where messages lie, and who meets whom. What must hold comes from the issue: no slot crosses a
 * key's part, every part is used by both ways, both ends find the same places; and from the theory
 * of round-robin tournaments: n - 1 rounds of n / 2 pairs for an even n, n rounds for an odd one,
 * every two meet once.
 */
#include "unit.h"

#include <errno.h>

#include "bench/pattern.h"
#include "bench/slots.h"
#include "bench/witness.h"

enum { MIB = 1 << 20 };

static struct pp_part part(uint64_t start, uint64_t length)
{
	return (struct pp_part){.start = start, .length = length};
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool within(const struct pp_part *p, unsigned int n, uint64_t offset, uint64_t size)
{
	unsigned int holding = 0;

	for (unsigned int i = 0; i < n; i++)
		holding += offset >= p[i].start && offset + size <= p[i].start + p[i].length;
	return holding == 1;
}

static bool used(const struct pp_slots *s, unsigned int way, const struct pp_part *p)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->offset[way][i] >= p->start && s->offset[way][i] < p->start + p->length)
			return true;
	return false;
}

static void holds(const struct pp_slots *s, const struct pp_part *a, unsigned int n_a,
		  const struct pp_part *b, unsigned int n_b)
{
	uint64_t all[2 * PP_SLOTS_MOST];
	unsigned int n = 0;

	assert_true(s->n >= 1 && s->n <= PP_SLOTS_MOST);
	for (unsigned int w = 0; w < 2; w++) {
		for (unsigned int i = 0; i < s->n; i++) {
			assert_true(within(a, n_a, s->offset[w][i], s->size));
			assert_true(within(b, n_b, s->offset[w][i], s->size));
			all[n++] = s->offset[w][i];
		}
		for (unsigned int i = 0; i < n_a; i++)
			assert_true(used(s, w, &a[i]));
		for (unsigned int i = 0; i < n_b; i++)
			assert_true(used(s, w, &b[i]));
	}
	qsort(all, n, sizeof(all[0]), ascending);
	for (unsigned int i = 1; i < n; i++)
		assert_true(all[i - 1] + s->size <= all[i]);
	/* the first and the last byte are met */
	assert_int_equal(all[0], 0);
	assert_int_equal(all[n - 1] + s->size, a[n_a - 1].start + a[n_a - 1].length);
}

static void same(const struct pp_slots *a, const struct pp_slots *b)
{
	assert_int_equal(a->n, b->n);
	for (unsigned int w = 0; w < 2; w++)
		assert_memory_equal(a->offset[w], b->offset[w], a->n * sizeof(uint64_t));
}

static void one_part_of_every_size(void **state)
{
	static const uint64_t odd[] = {1,    2,	   7,	  63,  64,	    65,	      4095,
				       4096, 4097, 65536, MIB, 5 * MIB + 1, 16 * MIB, 1024UL * MIB};
	struct pp_error err;
	struct pp_slots s;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		const struct pp_part p = part(0, pp_slots_memory(odd[i], 1));

		assert_int_equal(pp_slots_lay(&p, 1, &p, 1, odd[i], &s, &err), 0);
		holds(&s, &p, 1, &p, 1);
	}
}

static void parts_of_both_ends(void **state)
{
	/* two segments there, three keys here: five edges, four spans */
	const struct pp_part a[] = {part(0, 4 * MIB), part(4 * MIB, 4 * MIB)};
	const struct pp_part b[] = {part(0, 3 * MIB), part(3 * MIB, 3 * MIB),
				    part(6 * MIB, 2 * MIB)};
	static const uint64_t sizes[] = {8, 4096, 100001, MIB / 2};
	struct pp_slots here, there;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(pp_slots_lay(a, 2, b, 3, sizes[i], &here, &err), 0);
		assert_int_equal(pp_slots_lay(b, 3, a, 2, sizes[i], &there, &err), 0);
		holds(&here, a, 2, b, 3);
		same(&here, &there);
	}
	/* what is larger than a part's half would leave it out: refused, not left out */
	assert_int_equal(pp_slots_lay(a, 2, b, 3, MIB + 1, &here, &err), -EINVAL);
	assert_non_null(strstr(err.text, "fits twice"));
}

static void hostile_parts(void **state)
{
	const struct pp_part good = part(0, MIB);
	const struct pp_part overlap[] = {part(0, MIB), part(MIB - 1, MIB)};
	const struct pp_part wraps = part(UINT64_MAX - 10, 100), empty = part(0, 0);
	struct pp_part many[PP_SLOTS_PARTS + 1];
	struct pp_slots s;
	struct pp_error err;

	(void)state;
	for (unsigned int i = 0; i <= PP_SLOTS_PARTS; i++)
		many[i] = part((uint64_t)i * MIB, MIB);
	assert_int_equal(pp_slots_lay(overlap, 2, &good, 1, 8, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_lay(&good, 1, &wraps, 1, 8, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_lay(&good, 1, &empty, 1, 8, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_lay(&good, 1, many, PP_SLOTS_PARTS + 1, 8, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_lay(&good, 1, &good, 0, 8, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_lay(&good, 1, &good, 1, 0, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_lay(&good, 1, &good, 1, UINT64_MAX, &s, &err), -EINVAL);
	assert_int_equal(pp_slots_memory(UINT64_MAX, 1), 0);
	assert_int_equal(pp_slots_memory(0, 1), 0);
}

struct seen {
	uint64_t at, in_slots;
	int last;
};

static int visit(void *arg, uint64_t offset, uint64_t len, int in_slot)
{
	struct seen *s = arg;

	assert_int_equal(offset, s->at);
	assert_true(len > 0);
	/* neighbours without a gap are one piece */
	assert_int_not_equal(in_slot, s->last);
	s->at += len;
	s->in_slots += in_slot ? len : 0;
	s->last = in_slot;
	return 0;
}

static void a_walk_meets_every_byte_once(void **state)
{
	static const uint64_t sizes[] = {1, 64, 100, 65536, MIB};
	struct pp_error err;
	struct pp_slots s;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct pp_part p = part(0, pp_slots_memory(sizes[i], 1));

		assert_int_equal(pp_slots_lay(&p, 1, &p, 1, sizes[i], &s, &err), 0);
		for (unsigned int way = 0; way < 2; way++) {
			struct seen seen = {.last = -1};

			assert_int_equal(pp_slots_walk(&s, way, p.length, visit, &seen), 0);
			assert_int_equal(seen.at, p.length);
			assert_int_equal(seen.in_slots, s.n * sizes[i]);
		}
		assert_int_equal(
			pp_slots_walk(&s, 1, p.length - 1, visit, &(struct seen){.last = -1}),
			-ERANGE);
	}
}

static void a_tournament(void **state)
{
	struct pp_meeting *m;
	struct pp_error err;
	unsigned int n, rounds, met[16][16], busy[16][16];

	(void)state;
	for (unsigned int nodes = 2; nodes <= 15; nodes++) {
		memset(met, 0, sizeof(met));
		memset(busy, 0, sizeof(busy));
		rounds = 0;
		assert_int_equal(pp_pattern_meet(PP_PAIRS, nodes, &m, &n, &err), 0);
		assert_int_equal(n, nodes * (nodes - 1) / 2);
		for (unsigned int i = 0; i < n; i++) {
			assert_true(m[i].from < m[i].to && m[i].to < nodes);
			assert_int_equal(met[m[i].from][m[i].to]++, 0);
			assert_int_equal(busy[m[i].round][m[i].from]++, 0);
			assert_int_equal(busy[m[i].round][m[i].to]++, 0);
			/* a round is one piece of the list */
			assert_true(!i || m[i].round == m[i - 1].round ||
				    m[i].round == m[i - 1].round + 1);
			rounds = m[i].round + 1;
		}
		assert_int_equal(rounds, nodes % 2 ? nodes : nodes - 1);
		free(m);
	}
}

static void other_patterns(void **state)
{
	struct pp_meeting *m;
	struct pp_error err;
	unsigned int n;

	(void)state;
	assert_int_equal(pp_pattern_meet(PP_RING, 3, &m, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_true(m[2].from == 2 && m[2].to == 0 && !m[2].round);
	free(m);
	assert_int_equal(pp_pattern_meet(PP_INCAST, 4, &m, &n, &err), 0);
	assert_int_equal(n, 3);
	for (unsigned int i = 0; i < n; i++)
		assert_true(m[i].to == 0 && m[i].from == i + 1);
	free(m);
	assert_int_equal(pp_pattern_meet(PP_ALL_TO_ALL, 5, &m, &n, &err), 0);
	assert_int_equal(n, 10);
	free(m);
	assert_int_equal(pp_pattern_meet(PP_RING, 1, &m, &n, &err), 0);
	assert_true(n == 1 && m[0].from == 0 && m[0].to == 0);
	free(m);
	assert_int_equal(pp_pattern_meet(PP_PAIRS, 1024, &m, &n, &err), -EFBIG);
	assert_int_equal(pp_pattern_meet(PP_PAIRS, 0, &m, &n, &err), -EINVAL);
}

/* ib_write_bw 6.06 on the software device, as it printed it. */
static const char perftest[] =
	" Mtu             : 4096[B]\n"
	" GID: 00:00:00:00:00:00:00:00:00:00:255:255:127:00:00:01\n"
	"----------------------------------------------------------------------------\n"
	" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
	" 65536      29765            0.00               1859.55\t\t   0.029753\n"
	"----------------------------------------------------------------------------\n";

static void perftest_counts_mebibytes(void **state)
{
	double mbytes = 0;

	(void)state;
	assert_int_equal(pp_witness_parse(perftest, 65536, &mbytes), 0);
	/* its own rate of messages times their size */
	assert_float_equal(mbytes, 0.029753 * 65536, 0.1);
	assert_int_equal(pp_witness_parse(perftest, 4096, &mbytes), -ENOENT);
	assert_int_equal(pp_witness_parse("", 8, &mbytes), -ENOENT);
	assert_int_equal(pp_witness_parse(" 8 1 0.00 nan 1\n 8 1 0 -3 1\n 8 1 0\n", 8, &mbytes),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_part_of_every_size),
		cmocka_unit_test(parts_of_both_ends),
		cmocka_unit_test(hostile_parts),
		cmocka_unit_test(a_walk_meets_every_byte_once),
		cmocka_unit_test(a_tournament),
		cmocka_unit_test(other_patterns),
		cmocka_unit_test(perftest_counts_mebibytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
