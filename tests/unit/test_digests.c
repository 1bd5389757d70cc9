/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology class: equal for the same wiring under other bus numbers and another order, unlike
 * for another wiring, unknown when a part of it could not be read.
 */
#include "unit.h"

#include "node/node.h"

enum { DEVICES = 8 };

/* Two sockets; on each a switch port pair with one GPU and one hca below. */
struct machine {
	struct pp_node n;
	struct pp_pci_dev dev[DEVICES];
	const char *bridges[2];
	int package[2];
	int16_t nvlinks[4];
};

static void function(struct machine *m, int i, int bus, int parent, int bridge, uint32_t class,
		     uint16_t vendor, uint16_t device)
{
	m->dev[i] = (struct pp_pci_dev){.bdf = {0, (uint8_t)bus, 0, 0},
					.parent = parent,
					.host_bridge = bridge,
					.depth = parent < 0 ? 0 : m->dev[parent].depth + 1,
					.class_code = class,
					.vendor = vendor,
					.device = device,
					.numa = bridge,
					.physfn = -1,
					.max_speed_mts = 16000,
					.max_width = 16};
}

/* @base: first bus number; @swap: the second half hangs on the first host bridge. */
static void make(struct machine *m, int base, bool swap, int nvlinks)
{
	memset(m, 0, sizeof(*m));
	m->n.arena = PP_ARENA((size_t)1 << 20);
	m->n.facts.arena = &m->n.arena;
	m->n.self = pp_object_add(&m->n.facts, PP_NODE, "node");
	pp_fact_str(&m->n.facts, m->n.self, PP_F_KERNEL_RELEASE, "6.8.0", NULL);
	for (int half = 0; half < 2; half++) {
		int first = half * 4, bus = base + half * 16, bridge = half ^ swap;

		function(m, first, bus, -1, bridge, 0x060400, 0x1000, 0xc030);
		function(m, first + 1, bus + 1, first, bridge, 0x060400, 0x1000, 0xc030);
		function(m, first + 2, bus + 2, first + 1, bridge, 0x030200, 0x10de, 0x2330);
		function(m, first + 3, bus + 3, first + 1, bridge, 0x020700, 0x15b3, 0x1021);
		(void)pp_object_add(&m->n.facts, PP_GPU, half ? "gpu1" : "gpu0");
	}
	m->n.pci = (struct pp_pci){.dev = m->dev,
				   .n = DEVICES,
				   .bridges = m->bridges,
				   .n_bridges = 2,
				   .online_nodes = 2,
				   .node_package = m->package,
				   .n_node_package = 2};
	m->package[1] = 1;
	m->nvlinks[1] = m->nvlinks[2] = (int16_t)nvlinks;
	m->n.nvlinks = m->nvlinks;
	m->n.n_gpus = 2;
}

static const char *class_of(struct machine *m)
{
	pp_collect_digests(&m->n);
	return pp_fact_str_or(m->n.self, PP_F_TOPOLOGY_CLASS, NULL);
}

static void test_alike(void **state)
{
	struct machine a, b;

	(void)state;
	make(&a, 0x10, false, 18);
	make(&b, 0x80, true, 18);
	assert_string_equal(class_of(&a), class_of(&b));
	pp_arena_done(&a.n.arena);
	pp_arena_done(&b.n.arena);
}

static void test_unlike(void **state)
{
	struct machine a, b;

	(void)state;
	make(&a, 0x10, false, 18);
	make(&b, 0x10, false, 12);
	assert_string_not_equal(class_of(&a), class_of(&b));
	pp_arena_done(&b.n.arena);
	/* The second hca one bridge higher. */
	make(&b, 0x10, false, 18);
	b.dev[7].parent = 4;
	b.dev[7].depth = 1;
	assert_string_not_equal(class_of(&a), class_of(&b));
	pp_arena_done(&b.n.arena);
	/* Both halves on one socket. */
	make(&b, 0x10, false, 18);
	b.package[1] = 0;
	assert_string_not_equal(class_of(&a), class_of(&b));
	pp_arena_done(&b.n.arena);
	/* Another GPU. */
	make(&b, 0x10, false, 18);
	b.dev[6].device = 0x2335;
	assert_string_not_equal(class_of(&a), class_of(&b));
	pp_arena_done(&b.n.arena);
	pp_arena_done(&a.n.arena);
}

static void test_state_is_no_wiring(void **state)
{
	struct machine a, b;

	(void)state;
	make(&a, 0x10, false, 18);
	make(&b, 0x10, false, 18);
	b.dev[2].max_width = -1;
	b.dev[2].speed_mts = 2500;
	assert_string_equal(class_of(&a), class_of(&b));
	pp_arena_done(&a.n.arena);
	pp_arena_done(&b.n.arena);
}

static void test_unknown(void **state)
{
	struct machine m;

	(void)state;
	make(&m, 0x10, false, 18);
	m.dev[3].vendor = 0;
	assert_null(class_of(&m));
	pp_arena_done(&m.n.arena);
	make(&m, 0x10, false, -1);
	assert_null(class_of(&m));
	pp_arena_done(&m.n.arena);
	make(&m, 0x10, false, 18);
	m.package[1] = -1;
	assert_null(class_of(&m));
	pp_arena_done(&m.n.arena);
	make(&m, 0x10, false, 18);
	m.n.pci.n = 0; /* nothing is wired: no class, rather than the class of nothing */
	assert_null(class_of(&m));
	pp_arena_done(&m.n.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_unlike),
		cmocka_unit_test(test_state_is_no_wiring),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests_name("digests", tests, NULL, NULL);
}
