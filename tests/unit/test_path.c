/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes, ACS, translation, links and ceilings. What a set bit means is the PCI Express
 * specification's (6.12.1); which bits redirect is what Linux's p2pdma tests (RR, CR, EC); which
 * group types translate is the kernel's ABI documentation.
 */
#include "made_tree.h"

#include "node/path.h"

enum { GEN3 = 3, GEN4 = 4, GEN5 = 5, NO_ACS = -1 };

#define ROOT "pci0000:00/0000:00:01.0"
#define UP   ROOT "/0000:01:00.0"
#define DOWN UP "/0000:02:00.0"
#define NEXT UP "/0000:02:01.0"

static const struct pp_path_hints bare_metal = {0};

/* A switch with a GPU and a NIC: ACS control of the two downstream ports and of the root port. */
static struct made made_switch(int acs_down, int acs_next, int acs_root)
{
	struct made m = made_new(2, 1);

	made_port(&m, ROOT, MADE_BRIDGE, 0, PP_PORT_ROOT, GEN5, 16, acs_root);
	made_port(&m, UP, MADE_BRIDGE, 0, PP_PORT_UPSTREAM, GEN5, 16, NO_ACS);
	made_port(&m, DOWN, MADE_BRIDGE, 0, PP_PORT_DOWNSTREAM, GEN5, 16, acs_down);
	made_port(&m, NEXT, MADE_BRIDGE, 0, PP_PORT_DOWNSTREAM, GEN5, 16, acs_next);
	made_port(&m, DOWN "/0000:03:00.0", MADE_GPU, 0, PP_PORT_ENDPOINT, GEN5, 16, NO_ACS);
	made_port(&m, NEXT "/0000:04:00.0", MADE_NIC, 0, PP_PORT_ENDPOINT, GEN5, 16, NO_ACS);
	return m;
}

static struct pp_path find(const struct made *m, const char *a, const char *b)
{
	struct pp_path p;

	pp_path_find(&m->node->pci, made_at(m, a), made_at(m, b), &bare_metal, &p);
	return p;
}

static void test_acs(void **state)
{
	static const struct {
		int down, next, root;
		int8_t redirect, dt;
		enum pp_route route;
		unsigned int ports;
	} rows[] = {
		{0, 0, 0, 0, 1, PP_ROUTE_SWITCH, 0},
		/* the root port is above the common bridge: its bits do not matter here */
		{0, 0, 0x1d, 0, 1, PP_ROUTE_SWITCH, 0},
		/* blocked requester ids and upstream forwarding redirect nothing */
		{PP_ACS_SV | PP_ACS_TB | PP_ACS_UF, 0, 0, 0, 1, PP_ROUTE_SWITCH, 0},
		{PP_ACS_RR, 0, 0, 1, 0, PP_ROUTE_ROOT_COMPLEX, 1},
		{0, PP_ACS_CR, 0, 1, 0, PP_ROUTE_ROOT_COMPLEX, 1},
		{PP_ACS_EC, 0x1d, 0, 1, 0, PP_ROUTE_ROOT_COMPLEX, 2},
		{PP_ACS_RR | PP_ACS_DT, PP_ACS_RR | PP_ACS_DT, 0, 1, 1, PP_ROUTE_ROOT_COMPLEX, 2},
		{PP_ACS_RR | PP_ACS_DT, PP_ACS_RR, 0, 1, 0, PP_ROUTE_ROOT_COMPLEX, 2},
		{NO_ACS, NO_ACS, NO_ACS, 0, 1, PP_ROUTE_SWITCH, 0},
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct made m = made_switch(rows[i].down, rows[i].next, rows[i].root);
		struct pp_path p;

		made_collect(&m);
		p = find(&m, "03:00.0", "04:00.0");
		assert_int_equal(p.distance, PP_DISTANCE_PIX);
		assert_int_equal(p.acs_redirect, rows[i].redirect);
		assert_int_equal(p.acs_dt, rows[i].dt);
		assert_int_equal(p.route, rows[i].route);
		assert_int_equal(p.n_redirect, rows[i].ports);
		made_done(&m);
	}
}

/* 64 bytes, as without privilege: unknown, unless a port that could be read redirects anyway. */
static void test_acs_unreadable(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		struct made m = made_switch(0, other ? PP_ACS_RR : 0, 0);
		uint8_t config[64] = {0xb5, 0x10, 0x97, 0x97, [10] = 0x04, [11] = 0x06};
		struct pp_path p;

		made_put(&m, made_path(DOWN, "config"), config, sizeof(config));
		made_collect(&m);
		p = find(&m, "03:00.0", "04:00.0");
		assert_int_equal(p.acs_redirect, other ? 1 : -1);
		assert_int_equal(p.acs_dt, other ? 0 : -1);
		assert_int_equal(p.route, other ? PP_ROUTE_ROOT_COMPLEX : PP_ROUTE_UNKNOWN);
		assert_true(other || strstr(p.route_why, "0000:02:00.0"));
		made_done(&m);
	}
}

/* Sockets, not NUMA nodes: two nodes of one socket are SYS and yet one root complex. */
static void test_sockets(void **state)
{
	(void)state;
	for (unsigned int nodes_per_socket = 1; nodes_per_socket <= 2; nodes_per_socket++) {
		struct made m = made_new(2, nodes_per_socket);
		struct pp_path p;

		made_port(&m, "pci0000:00/0000:00:01.0", MADE_BRIDGE, 0, PP_PORT_ROOT, GEN5, 16,
			  0x1d);
		made_port(&m, "pci0000:00/0000:00:01.0/0000:01:00.0", MADE_GPU, 0, PP_PORT_ENDPOINT,
			  GEN5, 16, NO_ACS);
		made_port(&m, "pci0000:80/0000:80:01.0", MADE_BRIDGE, 1, PP_PORT_ROOT, GEN5, 16, 0);
		made_port(&m, "pci0000:80/0000:80:01.0/0000:81:00.0", MADE_NIC, 1, PP_PORT_ENDPOINT,
			  GEN5, 16, NO_ACS);
		made_collect(&m);
		p = find(&m, "01:00.0", "81:00.0");
		assert_int_equal(p.distance, PP_DISTANCE_SYS);
		assert_int_equal(p.route, nodes_per_socket == 1 ? PP_ROUTE_CROSS_SOCKET
								: PP_ROUTE_ROOT_COMPLEX);
		assert_int_equal(p.acs_redirect, 1);
		assert_int_equal(p.redirect[0], made_at(&m, "00:01.0"));
		pp_path_find(&m.node->pci, made_at(&m, "01:00.0"), made_at(&m, "81:00.0"),
			     &(struct pp_path_hints){.c2c = true}, &p);
		assert_int_equal(p.route,
				 nodes_per_socket == 1 ? PP_ROUTE_CROSS_SOCKET : PP_ROUTE_C2C);
		made_done(&m);
	}
}

/* A guest whose hypervisor shows no bridge: that none redirects is not seen, on metal it is. */
static void test_flat_guest(void **state)
{
	static const struct {
		int guest, redirect;
	} rows[] = {{0, 0}, {1, -1}, {-1, -1}};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct made m = made_new(1, 1);
		struct pp_path p;

		made_function(&m, "pci0000:00/0000:00:05.0", MADE_GPU, -1);
		made_function(&m, "pci0000:00/0000:00:06.0", MADE_NIC, -1);
		made_collect(&m);
		pp_path_find(&m.node->pci, made_at(&m, "00:05.0"), made_at(&m, "00:06.0"),
			     &(struct pp_path_hints){.guest = (int8_t)rows[i].guest}, &p);
		assert_int_equal(p.distance, PP_DISTANCE_PHB);
		assert_int_equal(p.acs_redirect, rows[i].redirect);
		assert_int_equal(p.acs_why[0] != 0, rows[i].guest != 0);
		made_done(&m);
	}
}

/* A NUMA node that spans sockets (node interleaving) has none: the route is not known. */
static void test_interleaved(void **state)
{
	struct made m = made_new(1, 1);
	struct pp_path p;

	(void)state;
	made_text(&m, "/sys/devices/system/cpu/cpu1/topology/physical_package_id", "1");
	made_function(&m, "pci0000:00/0000:00:01.0", MADE_GPU, -1);
	made_function(&m, "pci0000:80/0000:80:01.0", MADE_NIC, -1);
	made_collect(&m);
	p = find(&m, "00:01.0", "80:01.0");
	assert_int_equal(p.distance, PP_DISTANCE_NODE);
	assert_int_equal(p.route, PP_ROUTE_UNKNOWN);
	made_done(&m);
}

static void put_group(struct made *m, const char *path, int group, const char *type)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "../../../kernel/iommu_groups/%d", group);
	made_link(m, made_path(path, "iommu_group"), text);
	(void)snprintf(text, sizeof(text), "/sys/kernel/iommu_groups/%d/type", group);
	if (type)
		made_text(m, text, type);
}

static void test_translation(void **state)
{
	static const struct {
		const char *gpu, *nic; /* NULL: the type cannot be read */
		int8_t guest, translated;
	} rows[] = {
		{"identity", "identity", 0, 0},	 {"DMA-FQ", "DMA-FQ", 0, 1},
		{"DMA", "identity", 0, 1},	 {"identity", "DMA", 0, 1},
		{"identity", NULL, 0, -1},	 {NULL, "DMA", 0, 1},
		{"identity", "new-word", 0, -1}, {"identity", "identity", 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct made m = made_switch(0, 0, 0);
		struct pp_path_hints hints = {.guest = rows[i].guest};
		struct pp_path p;

		put_group(&m, DOWN "/0000:03:00.0", 1, rows[i].gpu);
		put_group(&m, NEXT "/0000:04:00.0", 2, rows[i].nic);
		made_collect(&m);
		pp_path_find(&m.node->pci, made_at(&m, "03:00.0"), made_at(&m, "04:00.0"), &hints,
			     &p);
		assert_int_equal(p.translated, rows[i].translated);
		assert_int_equal(*p.translated_why != '\0', rows[i].translated < 0);
		made_done(&m);
	}
}

/* No groups: nothing translates on bare metal; in a guest, or perhaps one, nobody can say. */
static void test_no_groups(void **state)
{
	struct made m = made_switch(0, 0, 0);
	struct pp_path p;

	(void)state;
	made_collect(&m);
	for (int8_t guest = -1; guest <= 1; guest++) {
		pp_path_find(&m.node->pci, made_at(&m, "03:00.0"), made_at(&m, "04:00.0"),
			     &(struct pp_path_hints){.guest = guest}, &p);
		assert_int_equal(p.translated, guest ? -1 : 0);
	}
	made_done(&m);
}

/* A Gen3 hop between two Gen5 switches shows on neither end, and bounds the pair. */
static void test_ceiling(void **state)
{
	struct made m = made_switch(0, 0, 0);
	struct pp_path p;

	(void)state;
	made_port(&m, NEXT, MADE_BRIDGE, 0, PP_PORT_DOWNSTREAM, GEN3, 16, 0);
	made_port(&m, NEXT "/0000:04:00.0", MADE_BRIDGE, 0, PP_PORT_UPSTREAM, GEN5, 16, NO_ACS);
	made_port(&m, NEXT "/0000:04:00.0/0000:05:00.0", MADE_BRIDGE, 0, PP_PORT_DOWNSTREAM, GEN5,
		  16, 0);
	made_port(&m, NEXT "/0000:04:00.0/0000:05:00.0/0000:06:00.0", MADE_NIC, 0, PP_PORT_ENDPOINT,
		  GEN5, 16, NO_ACS);
	made_collect(&m);
	p = find(&m, "03:00.0", "06:00.0");
	assert_int_equal(p.distance, PP_DISTANCE_PXB);
	assert_int_equal(p.n_hops, 3);
	assert_int_equal(p.ceiling_mbytes, 15753); /* 8 GT/s x16 */
	assert_string_equal(p.ceiling_at, "0000:04:00.0, 8 GT/s x16");
	made_done(&m);
}

/* Redirected bytes also cross the switch's own uplink, up and down. */
static void test_ceiling_of_redirect(void **state)
{
	struct made m = made_switch(PP_ACS_RR, 0, 0);
	struct pp_path p;

	(void)state;
	made_port(&m, ROOT, MADE_BRIDGE, 0, PP_PORT_ROOT, GEN5, 8, 0);
	made_collect(&m);
	p = find(&m, "03:00.0", "04:00.0");
	assert_int_equal(p.route, PP_ROUTE_ROOT_COMPLEX);
	assert_int_equal(p.ceiling_mbytes, 31507); /* 32 GT/s x8 */
	assert_string_equal(p.ceiling_at, "0000:01:00.0, 32 GT/s x8");
	made_done(&m);
}

static struct pp_link link_of(const struct made *m, const char *lower)
{
	int i = made_at(m, lower);

	assert_true(pp_link_above(&m->node->pci, i));
	return pp_link_of(&m->node->pci, i);
}

/* The link files win over config space, and say what other tools print. */
static void test_links(void **state)
{
	struct made m = made_switch(0, 0, 0);
	struct pp_path p;
	struct pp_link l;

	(void)state;
	/* an idle GPU: public captures show 2.5 GT/s x16 on every one of them */
	made_text(&m, made_path(DOWN "/0000:03:00.0", "current_link_speed"), "2.5 GT/s PCIe");
	/* a NIC that trained x8 at 16 GT/s */
	made_text(&m, made_path(NEXT "/0000:04:00.0", "current_link_width"), "8");
	made_text(&m, made_path(NEXT "/0000:04:00.0", "current_link_speed"), "16.0 GT/s PCIe");
	/* an upstream port in a slot of eight lanes */
	made_text(&m, made_path(ROOT, "max_link_width"), "8");
	made_text(&m, made_path(UP, "current_link_width"), "8");
	made_collect(&m);
	l = link_of(&m, "03:00.0");
	assert_int_equal(l.narrow, 0);
	assert_int_equal(l.slow, -1);
	assert_int_equal(l.slot_limited, 0);
	assert_int_equal((int)(l.gb_per_s * 1000), 63015); /* awake it does 32 GT/s */
	l = link_of(&m, "04:00.0");
	assert_int_equal(l.narrow, 1);
	assert_int_equal(l.slow, 1);
	assert_int_equal((int)(l.gb_per_s * 1000), 15753); /* 16 GT/s x8, not what it can do */
	p = find(&m, "03:00.0", "04:00.0");
	assert_int_equal(p.ceiling_mbytes, 15753);
	assert_string_equal(p.ceiling_at, "0000:04:00.0, 16 GT/s x8");
	l = link_of(&m, "01:00.0");
	assert_int_equal(l.narrow, 0);
	assert_int_equal(l.slow, 0);
	assert_int_equal(l.slot_limited, 1);
	assert_false(pp_link_above(&m.node->pci, made_at(&m, "02:00.0"))); /* inside the switch */
	assert_false(pp_link_above(&m.node->pci, made_at(&m, "00:01.0")));
	assert_int_equal(m.node->facts.count[PP_LINK], 3);
	assert_true(pp_fact_is(pp_object_find(&m.node->facts, PP_LINK, "0000:04:00.0"),
			       PP_F_LINK_NARROW));
	made_done(&m);
}

/* 400 Gb/s are 50 GB/s: less than 32 GT/s x16 (63 GB/s), more than an idle GPU's speed now. */
static void test_ceiling_of_port(void **state)
{
	struct made m = made_switch(0, 0, 0);
	struct pp_path_hints hints = {0};
	struct pp_object *port;
	struct pp_path p;

	(void)state;
	made_text(&m, made_path(DOWN "/0000:03:00.0", "current_link_speed"), "2.5 GT/s PCIe");
	made_collect(&m);
	p = find(&m, "03:00.0", "04:00.0");
	assert_int_equal(p.ceiling_mbytes, 63015);
	assert_string_equal(p.ceiling_at, "0000:03:00.0, possible 32 GT/s x16");
	port = pp_object_add(&m.node->facts, PP_PORT, "0000:04:00.0/1");
	hints.port = port;
	pp_path_find(&m.node->pci, made_at(&m, "03:00.0"), made_at(&m, "04:00.0"), &hints, &p);
	assert_int_equal(p.ceiling_mbytes, 63015); /* a rate that is not known bounds nothing */
	pp_fact_int(&m.node->facts, port, PP_F_PORT_RATE, 400000, NULL);
	pp_path_find(&m.node->pci, made_at(&m, "03:00.0"), made_at(&m, "04:00.0"), &hints, &p);
	assert_int_equal(p.ceiling_mbytes, 50000);
	assert_string_equal(p.ceiling_at, "port 0000:04:00.0/1, 400 Gb/s");
	made_done(&m);
}

/* Emulated ports (x1 at 2.5 GT/s, or "Unknown" and 0) neither accuse nor bound anything. */
static void test_emulated(void **state)
{
	struct made m = made_switch(0, 0, 0);
	struct pp_link l;
	struct pp_path p;

	(void)state;
	made_port(&m, NEXT, "0x060400 0x104c 0x8233", 0, PP_PORT_DOWNSTREAM, 1, 1, NO_ACS);
	made_text(&m, made_path(NEXT, "max_link_speed"), "Unknown");
	made_text(&m, made_path(NEXT, "max_link_width"), "0");
	made_collect(&m);
	l = link_of(&m, "04:00.0");
	assert_int_equal(l.narrow, -1);
	assert_int_equal(l.slow, -1);
	assert_true(l.gb_per_s == 0);
	p = find(&m, "03:00.0", "04:00.0");
	assert_int_equal(p.ceiling_mbytes, -1);
	assert_non_null(strstr(p.ceiling_why, "hypervisor"));
	made_done(&m);
}

/* Without config space the kinds of ports follow from their places. */
static void test_kinds(void **state)
{
	struct made m = made_new(1, 1);
	const struct pp_pci *pci;

	(void)state;
	made_function(&m, ROOT, MADE_BRIDGE, 0);
	made_function(&m, UP, MADE_BRIDGE, 0);
	made_function(&m, DOWN, MADE_BRIDGE, 0);
	made_function(&m, DOWN "/0000:03:00.0", MADE_GPU, 0);
	pci = made_collect(&m);
	assert_int_equal(pp_pci_port_kind(pci, made_at(&m, "00:01.0")), PP_PORT_ROOT);
	assert_int_equal(pp_pci_port_kind(pci, made_at(&m, "01:00.0")), PP_PORT_UPSTREAM);
	assert_int_equal(pp_pci_port_kind(pci, made_at(&m, "02:00.0")), PP_PORT_DOWNSTREAM);
	assert_true(pp_link_above(pci, made_at(&m, "03:00.0")));
	made_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flat_guest),
		cmocka_unit_test(test_acs),
		cmocka_unit_test(test_acs_unreadable),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_translation),
		cmocka_unit_test(test_no_groups),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ceiling_of_redirect),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_ceiling_of_port),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
