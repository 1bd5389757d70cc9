/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hca is whose rail. The wirings are those of public machines: HGX boards with one NIC or
 * two GPUs and two NICs to a switch, storage NICs on a GPU's switch, guests on a flat bus.
 */
#include "made_tree.h"

#include "node/path.h"
#include "node/rail.h"

/* One switch below root port @s: function "0000:SS:00.0", ports on bus SS+1. */
static void put_switch(struct made *m, unsigned int s, int numa)
{
	char path[PP_PATH_MAX];

	(void)snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:01.0", s, s);
	made_port(m, path, MADE_BRIDGE, numa, PP_PORT_ROOT, 5, 16, 0);
	(void)snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0", s, s,
		       s + 1);
	made_port(m, path, MADE_BRIDGE, numa, PP_PORT_UPSTREAM, 5, 16, -1);
}

/* "0000:BB:00.0" on port @port of the switch. */
static void put_below(struct made *m, unsigned int s, unsigned int port, const char *ids, int numa,
		      unsigned int lanes)
{
	char path[PP_PATH_MAX], end[64];

	(void)snprintf(path, sizeof(path),
		       "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0", s, s, s + 1,
		       s + 2, port);
	made_port(m, path, MADE_BRIDGE, numa, PP_PORT_DOWNSTREAM, 5, 16, 0);
	(void)snprintf(end, sizeof(end), "/0000:%02x:00.0", s + 3 + port);
	memcpy(path + strlen(path), end, strlen(end) + 1);
	made_port(m, path, ids, numa, PP_PORT_ENDPOINT, 5, lanes, -1);
}

struct nic_says {
	const char *hca;
	int64_t active_ports, rate_mbps;
	const char *layer;
};

/* What the collector of RDMA devices would add. */
static void say(struct made *m, const struct nic_says *says)
{
	struct pp_facts *f = &m->node->facts;
	struct pp_object *o = pp_object_find(f, PP_HCA, says->hca), *port;

	assert_non_null(o);
	pp_fact_bool(f, o, PP_F_HCA_HAS_DEVICE, true, NULL);
	pp_fact_bool(f, o, PP_F_HCA_UVERBS_ACCESS, true, NULL);
	pp_fact_int(f, o, PP_F_HCA_ACTIVE_PORTS, says->active_ports, NULL);
	port = pp_object_add(f, PP_PORT, says->hca);
	port->parent = o;
	pp_fact_str(f, port, PP_F_PORT_STATE, says->active_ports ? "ACTIVE" : "DOWN", NULL);
	pp_fact_int(f, port, PP_F_PORT_RATE, says->rate_mbps, NULL);
	pp_fact_str(f, port, PP_F_PORT_LINK, says->layer, NULL);
}

static struct pp_rails choose(struct made *m)
{
	static const struct pp_path_hints hints = {0};
	struct pp_rails r;
	struct pp_path p;

	assert_int_equal(pp_rails_list(m->node, &r), 0);
	for (unsigned int g = 0; g < r.n_gpus; g++) {
		for (unsigned int i = 0; i < r.n_nics; i++) {
			pp_path_find(&m->node->pci, r.gpu[g]->pci, r.nic[i].pci, &hints, &p);
			r.rank[g * r.n_nics + i] =
				pp_rail_rank_of(&m->node->pci, r.gpu[g]->pci, &r.nic[i], p.distance,
						p.ceiling_mbytes);
		}
	}
	assert_int_equal(pp_rails_choose(&r), 0);
	return r;
}

static const char *rail_of(const struct pp_rails *r, unsigned int gpu)
{
	return r->choice[gpu] < 0 ? "none" : r->nic[r->choice[gpu]].o->id;
}

/* Two GPUs and two NICs to a switch (DGX A100): each GPU has one of its own, in bus order. */
static void test_two_by_two(void **state)
{
	struct made m = made_new(2, 1);
	struct pp_rails r;
	char why[256];

	(void)state;
	for (unsigned int s = 0x10; s <= 0x20; s += 0x10) {
		put_switch(&m, s, s == 0x20);
		put_below(&m, s, 0, MADE_GPU, s == 0x20, 16);
		put_below(&m, s, 1, MADE_GPU, s == 0x20, 16);
		put_below(&m, s, 2, MADE_NIC, s == 0x20, 16);
		put_below(&m, s, 3, MADE_NIC, s == 0x20, 16);
	}
	made_collect(&m);
	r = choose(&m);
	assert_string_equal(rail_of(&r, 0), "0000:15:00.0");
	assert_string_equal(rail_of(&r, 1), "0000:16:00.0");
	assert_string_equal(rail_of(&r, 2), "0000:25:00.0");
	assert_string_equal(rail_of(&r, 3), "0000:26:00.0");
	pp_rail_why(&r, 0, 0, why, sizeof(why));
	assert_non_null(strstr(why, "0000:16:00.0 (another gpu's rail)"));
	assert_non_null(strstr(why, "not known"));
	pp_rail_why(&r, 0, 2, why, sizeof(why));
	assert_string_equal(why, "farther: SYS, the rail is PIX");
	/* The collector came to the same choice. */
	assert_true(pp_fact_is(pp_object_find(&m.node->facts, PP_PAIR, "0000:13:00.0/0000:15:00.0"),
			       PP_F_PAIR_RAIL));
	assert_int_equal(pp_fact_int_or(m.node->self, PP_F_NODE_CLOSE_PAIRS, -1), 4);
	pp_rails_done(&r);
	made_done(&m);
}

/* Eight GPUs and eight NICs on a guest's flat bus are all PHB: one each, none shared. */
static void test_flat_guest(void **state)
{
	struct made m = made_new(1, 1);
	struct pp_rails r;
	char path[PP_PATH_MAX];

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		(void)snprintf(path, sizeof(path), "pci0000:00/0000:00:%02x.0", i + 1);
		made_function(&m, path, MADE_BRIDGE, -1);
		(void)snprintf(path, sizeof(path), "pci0000:00/0000:00:%02x.0/0000:%02x:00.0",
			       i + 1, i + 1);
		made_function(&m, path, i < 8 ? MADE_GPU : MADE_NIC, -1);
	}
	made_collect(&m);
	r = choose(&m);
	for (unsigned int g = 0; g < 8; g++)
		assert_int_equal(r.choice[g], (int)g);
	pp_rails_done(&r);
	made_done(&m);
}

/* More GPUs than NICs: shared evenly, and said. */
static void test_shared(void **state)
{
	struct made m = made_new(1, 1);
	struct pp_rails r;
	char why[256];

	(void)state;
	put_switch(&m, 0x10, 0);
	for (unsigned int port = 0; port < 4; port++)
		put_below(&m, 0x10, port, MADE_GPU, 0, 16);
	put_below(&m, 0x10, 4, MADE_NIC, 0, 16);
	put_below(&m, 0x10, 5, MADE_NIC, 0, 16);
	made_collect(&m);
	r = choose(&m);
	assert_int_equal(r.nic[0].gpus, 2);
	assert_int_equal(r.nic[1].gpus, 2);
	pp_rail_why(&r, 0, (unsigned int)r.choice[0], why, sizeof(why));
	assert_non_null(strstr(why, "shared by 2 gpus"));
	pp_rails_done(&r);
	made_done(&m);
}

/*
 * A storage NIC on the GPU's switch (DGX H100): nearer than the rail's equal by nothing but bus
 * order, but of another rate; and a front-end NIC of another link layer.
 */
static void test_majority(void **state)
{
	static const struct nic_says says[] = {
		{"0000:14:00.0", 1, 100000, "Ethernet"},
		{"0000:15:00.0", 1, 400000, "InfiniBand"},
		{"0000:24:00.0", 1, 400000, "InfiniBand"},
		{"0000:25:00.0", 1, 25000, "Ethernet"},
		{"0000:26:00.0", 1, 25000, "Ethernet"},
	};
	struct made m = made_new(1, 1);
	struct pp_rails r;

	(void)state;
	for (unsigned int s = 0x10; s <= 0x20; s += 0x10) {
		put_switch(&m, s, 0);
		put_below(&m, s, 0, MADE_GPU, 0, 16);
	}
	put_below(&m, 0x10, 1, MADE_NIC, 0, 16);
	put_below(&m, 0x10, 2, MADE_NIC, 0, 16);
	put_below(&m, 0x20, 1, MADE_NIC, 0, 16);
	put_below(&m, 0x20, 2, MADE_NIC, 0, 16);
	put_below(&m, 0x20, 3, MADE_NIC, 0, 16);
	made_collect(&m);
	for (size_t i = 0; i < PP_ARRAY_LEN(says); i++)
		say(&m, &says[i]);
	r = choose(&m);
	assert_string_equal(rail_of(&r, 0), "0000:15:00.0");
	assert_string_equal(rail_of(&r, 1), "0000:24:00.0");
	assert_string_equal(r.majority_layer, "InfiniBand");
	assert_int_equal(r.majority_mbps, 400000);
	pp_rails_done(&r);
	made_done(&m);
}

/* The near NIC's port is down: the far one is the rail, and the near one says why it is not. */
static void test_port_down(void **state)
{
	static const struct nic_says says[] = {{"0000:14:00.0", 0, 400000, "InfiniBand"},
					       {"0000:23:00.0", 1, 400000, "InfiniBand"}};
	struct made m = made_new(1, 1);
	struct pp_rails r;
	char why[256];

	(void)state;
	put_switch(&m, 0x10, 0);
	put_switch(&m, 0x20, 0);
	put_below(&m, 0x10, 0, MADE_GPU, 0, 16);
	put_below(&m, 0x10, 1, MADE_NIC, 0, 16);
	put_below(&m, 0x20, 0, MADE_NIC, 0, 16);
	made_collect(&m);
	say(&m, &says[0]);
	say(&m, &says[1]);
	r = choose(&m);
	assert_string_equal(rail_of(&r, 0), "0000:23:00.0");
	assert_string_equal(pp_rail_why(&r, 0, 0, why, sizeof(why)), "no port is ACTIVE");
	pp_rail_why(&r, 0, 1, why, sizeof(why));
	assert_null(strstr(why, "not known"));
	pp_rails_done(&r);
	made_done(&m);
}

/* What is nearer than the rail and out is said with the rail; a bond's function is out by design.
 */
static void test_nearer_is_said(void **state)
{
	static const struct nic_says says[] = {{"0000:14:00.0", 0, 400000, "InfiniBand"},
					       {"0000:23:00.0", 1, 400000, "InfiniBand"}};
	static const char *const words[] = {"near hca 0000:14:00.0 (PIX) has no ACTIVE port",
					    "near hca 0000:14:00.0 (PIX) carries no RDMA device",
					    "none"};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++) {
		struct made m = made_new(1, 1);
		const struct pp_object *pair = NULL, *o = NULL;
		struct pp_object *near;
		char text[256];

		put_switch(&m, 0x10, 0);
		put_switch(&m, 0x20, 0);
		put_below(&m, 0x10, 0, MADE_GPU, 0, 16);
		put_below(&m, 0x10, 1, MADE_NIC, 0, 16);
		put_below(&m, 0x20, 0, MADE_NIC, 0, 16);
		made_collect(&m);
		say(&m, &says[0]);
		say(&m, &says[1]);
		near = pp_object_find(&m.node->facts, PP_HCA, says[0].hca);
		if (i > 0)
			pp_fact_bool(&m.node->facts, near, PP_F_HCA_HAS_DEVICE, false, NULL);
		if (i > 1)
			pp_fact_str(&m.node->facts, near, PP_F_HCA_BOND_DEVICE, "mlx5_9", NULL);
		pp_collect_paths(m.node);
		/* again, on top of the pairs of the bare tree: the last ones count */
		while ((o = pp_object_next(&m.node->facts, PP_PAIR, o)))
			if (!strcmp(o->id, "0000:13:00.0/0000:23:00.0"))
				pair = o;
		assert_true(pp_fact_is(pair, PP_F_PAIR_RAIL));
		assert_string_equal(pp_fact_text(pp_fact_get(pair, PP_F_PAIR_NEARER_UNUSABLE), text,
						 sizeof(text)),
				    words[i]);
		made_done(&m);
	}
}

/* A matching exists although bus order alone would take the only NIC of the second GPU. */
static void test_matching(void **state)
{
	static const enum pp_distance cells[2][2] = {{PP_DISTANCE_PIX, PP_DISTANCE_PIX},
						     {PP_DISTANCE_PIX, PP_DISTANCE_SYS}};
	struct made m = made_new(1, 1);
	struct pp_rails r;

	(void)state;
	put_switch(&m, 0x10, 0);
	for (unsigned int port = 0; port < 4; port++)
		put_below(&m, 0x10, port, port < 2 ? MADE_GPU : MADE_NIC, 0, 16);
	made_collect(&m);
	r = choose(&m);
	for (unsigned int g = 0; g < 2; g++) {
		for (unsigned int i = 0; i < 2; i++) {
			r.rank[g * 2 + i].distance = cells[g][i];
			r.nic[i].gpus = 0;
		}
	}
	assert_int_equal(pp_rails_choose(&r), 0);
	assert_int_equal(r.choice[0], 1);
	assert_int_equal(r.choice[1], 0);
	pp_rails_done(&r);
	made_done(&m);
}

/* Equal otherwise: fewer functions on the way, a PF before a VF, then bandwidth. */
static void test_order(void **state)
{
	const struct pp_rail_rank base = {PP_DISTANCE_PIX, 3, false, 50000};
	struct pp_rail_rank other = base;

	(void)state;
	assert_int_equal(pp_rail_compare(&base, &other), 0);
	other.usable_mbytes = 31507;
	assert_true(pp_rail_compare(&base, &other) < 0);
	other = base;
	other.is_virtual = true;
	other.usable_mbytes = 60000;
	assert_true(pp_rail_compare(&base, &other) < 0);
	other = base;
	other.functions = 2;
	other.is_virtual = true;
	assert_true(pp_rail_compare(&base, &other) > 0);
	other.distance = PP_DISTANCE_PXB;
	assert_true(pp_rail_compare(&base, &other) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_by_two), cmocka_unit_test(test_flat_guest),
		cmocka_unit_test(test_shared),	   cmocka_unit_test(test_majority),
		cmocka_unit_test(test_port_down),  cmocka_unit_test(test_nearer_is_said),
		cmocka_unit_test(test_matching),   cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests_name("rail", tests, NULL, NULL);
}
