/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint on a device of memory: what it asks of verbs, what it refuses, and that nothing is
 * left when any of its calls fails. Sizes of fields and values are those of the InfiniBand
 * specification and of <infiniband/verbs.h>.
 */
#include "unit.h"

#include <errno.h>

#include "../fake/null.h"
#include "rdma/cm.h"
#include "rdma/endpoint.h"
#include "rdma/gid_table.h"

static int reset(void **state)
{
	(void)state;
	null_reset();
	return 0;
}

static struct pp_endpoint_options plain(void)
{
	return (struct pp_endpoint_options){.device = "null0", .gid_index = -1};
}

static int open_error(const struct pp_endpoint_options *o, const char *says)
{
	struct pp_endpoint e;
	struct pp_error err = {0};
	int r = pp_endpoint_open(null_verbs(), o, &e, &err);

	assert_true(r < 0);
	assert_int_equal(err.code, r);
	if (!strstr(err.text, says))
		fail_msg("'%s' is not in '%s'", says, err.text);
	assert_int_equal(null.live, 0);
	return r;
}

static struct pp_endpoint opened(struct pp_endpoint_options o)
{
	struct pp_endpoint e;
	struct pp_error err;

	if (pp_endpoint_open(null_verbs(), &o, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static void test_defaults(void **state)
{
	struct pp_endpoint e = opened(plain());

	(void)state;
	assert_int_equal(e.options.port, 1);
	assert_int_equal(e.options.qps, 1);
	assert_int_equal(e.options.depth, 128);
	assert_int_equal(e.options.mtu, 4096);
	assert_int_equal(e.options.timeout, 14);
	assert_int_equal(e.options.retries, 7);
	assert_string_equal(e.gid_type, "RoCE v2");
	assert_int_equal(e.max_inline, 220);
	assert_int_equal(null.cap[0].max_send_wr, 128);
	assert_int_equal(null.cap[0].max_recv_wr, 256);
	assert_int_equal(null.attr[0].qp_state, IBV_QPS_INIT);
	/* pd, cq, qp, context; the list is given back */
	assert_int_equal(null.live, 4);
	pp_endpoint_close(&e);
	assert_int_equal(null.live, 0);
	pp_endpoint_close(&e);
	assert_int_equal(null.live, 0);
}

static void test_inline_is_what_the_device_gives(void **state)
{
	struct pp_endpoint e;

	(void)state;
	null.max_inline = 100;
	e = opened(plain());
	assert_int_equal(e.max_inline, 64);
	pp_endpoint_close(&e);
	null.max_inline = 0;
	e = opened(plain());
	assert_int_equal(e.max_inline, 0);
	pp_endpoint_close(&e);
}

static void test_refusals(void **state)
{
	struct pp_endpoint_options o = plain();

	(void)state;
	o.device = "mlx5_9";
	assert_int_equal(open_error(&o, "null0"), -ENODEV);
	o = plain();
	o.port = 2;
	assert_int_equal(open_error(&o, "has no port 2: it has 1"), -EINVAL);
	o = plain();
	o.mtu = 1500;
	assert_int_equal(open_error(&o, "1500"), -EINVAL);
	o.mtu = 4096;
	null.port.active_mtu = IBV_MTU_1024;
	assert_int_equal(open_error(&o, "which is 1024"), -EINVAL);
	o = plain();
	o.qps = 65;
	assert_int_equal(open_error(&o, "65"), -EINVAL);
	o.qps = 64;
	o.depth = 4096;
	assert_int_equal(open_error(&o, "64 queue pairs of depth 4096 need 786432"), -EINVAL);
	o.qps = 1;
	null.device.max_qp_wr = 1000;
	assert_int_equal(open_error(&o, "1000 at most"), -EINVAL);
	o = plain();
	o.sl = 16;
	assert_int_equal(open_error(&o, "service level"), -EINVAL);
	o = plain();
	null.port.state = IBV_PORT_DOWN;
	assert_int_equal(open_error(&o, "null0 port 1 is DOWN"), -ENETDOWN);
	null.port.state = IBV_PORT_INIT;
	assert_int_equal(open_error(&o, "subnet manager"), -ENETDOWN);
}

static const struct ibv_gid_entry table[NULL_GIDS] = {
	{.gid.raw = {0xfe, 0x80, [15] = 1}, .gid_type = IBV_GID_TYPE_ROCE_V1},
	{.gid.raw = {0xfe, 0x80, [15] = 1}, .gid_type = IBV_GID_TYPE_ROCE_V2},
	{.gid.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}, .gid_type = IBV_GID_TYPE_ROCE_V1},
	{.gid.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}, .gid_type = IBV_GID_TYPE_ROCE_V2},
};

static int chosen(struct pp_endpoint_options o)
{
	struct pp_endpoint e = opened(o);
	int index = e.options.gid_index;

	pp_endpoint_close(&e);
	return index;
}

/* The table of a mlx5 port: link-local and IPv4, each as v1 and v2, as the kernel writes it. */
static void test_gid_choice(void **state)
{
	struct pp_endpoint_options o = plain();

	(void)state;
	memcpy(null.gid, table, sizeof(table));
	assert_int_equal(chosen(o), 3);
	/* An older library does not tell v1 from v2: the later of two is v2. */
	null.old_library = true;
	assert_int_equal(chosen(o), 3);
	null.old_library = false;
	/* No IPv4: a routable IPv6 address before a link-local one. */
	memset(&null.gid[2], 0, 2 * sizeof(null.gid[2]));
	null.gid[3] = (struct ibv_gid_entry){.gid.raw = {0xfd, [15] = 9},
					     .gid_type = IBV_GID_TYPE_ROCE_V2};
	assert_int_equal(chosen(o), 3);
	memset(&null.gid[3], 0, sizeof(null.gid[3]));
	assert_int_equal(chosen(o), 0);
	o.gid_index = 1;
	assert_int_equal(chosen(o), 1);
	o.gid_index = 2;
	assert_int_equal(open_error(&o, "has no GID 2; it has 0 (fe80::1, RoCE v1), 1 (fe80::1, "
					"RoCE v2)"),
			 -ENOENT);
	o.gid_index = -1;
	memset(null.gid, 0, sizeof(null.gid));
	assert_int_equal(open_error(&o, "give its netdev an address"), -EADDRNOTAVAIL);
}

static void test_long_table_text(void **state)
{
	struct pp_gid_table t = {.n = 100};
	char text[60];

	(void)state;
	for (unsigned int i = 0; i < t.n; i++)
		t.row[i] = (struct pp_gid_row){.index = i, .type = PP_GID_ROCE_V2};
	for (size_t size = 4; size <= sizeof(text); size++) {
		memset(text, 'x', sizeof(text));
		pp_gid_table_text(&t, text, size);
		assert_true(strlen(text) < size);
		assert_string_equal(text + strlen(text) - 3, "...");
	}
}

static const struct pp_address peer = {.qpn = 0x4321,
				       .psn = 77,
				       .gid = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2},
				       .mtu = 1024,
				       .rd_atomic = 3,
				       .ethernet = true};

static void test_connect_roce(void **state)
{
	struct pp_endpoint_options o = plain();
	struct pp_error err;
	struct pp_endpoint e;
	struct pp_address a;

	(void)state;
	o.traffic_class = 106;
	o.qps = 2;
	e = opened(o);
	assert_int_equal(pp_endpoint_connect(&e, 1, &peer, &err), 0);
	assert_int_equal(null.attr[1].qp_state, IBV_QPS_RTS);
	assert_int_equal(null.attr[0].qp_state, IBV_QPS_INIT);
	assert_int_equal(null.attr[1].path_mtu, IBV_MTU_1024);
	assert_int_equal(null.attr[1].dest_qp_num, 0x4321);
	assert_int_equal(null.attr[1].rq_psn, 77);
	assert_int_equal(null.attr[1].max_rd_atomic, 3);
	assert_int_equal(null.attr[1].max_dest_rd_atomic, 16);
	assert_int_equal(null.attr[1].timeout, 14);
	assert_true(null.attr[1].ah_attr.is_global);
	assert_int_equal(null.attr[1].ah_attr.grh.traffic_class, 106);
	assert_memory_equal(null.attr[1].ah_attr.grh.dgid.raw, peer.gid, 16);
	assert_int_equal(e.rd_atomic, 3);
	pp_endpoint_address(&e, 1, &a);
	assert_int_equal(a.qpn, 0x101);
	assert_int_equal(a.psn, null.attr[1].sq_psn);
	assert_int_equal(a.rd_atomic, 16);
	assert_int_equal(pp_endpoint_connect(&e, 2, &peer, &err), -EINVAL);
	pp_endpoint_close(&e);
}

static void test_connect_infiniband(void **state)
{
	struct pp_address other = peer;
	struct pp_error err;
	struct pp_endpoint e;

	(void)state;
	null.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	null.port.lid = 5;
	null.gid[0] = (struct ibv_gid_entry){.gid.raw = {0xfe, 0x80, [15] = 1}};
	e = opened((struct pp_endpoint_options){
		.device = "null0", .gid_index = -1, .sl = 3, .pkey_index = 2});
	assert_int_equal(null.attr[0].pkey_index, 2);
	assert_string_equal(e.gid_type, "IB");
	assert_int_equal(pp_endpoint_connect(&e, 0, &other, &err), -EPROTO);
	other.ethernet = false;
	memcpy(other.gid, (uint8_t[16]){0xfe, 0x80, [15] = 2}, 16);
	assert_int_equal(pp_endpoint_connect(&e, 0, &other, &err), -EPROTO);
	assert_non_null(strstr(err.text, "no LID"));
	other.lid = 9;
	assert_int_equal(pp_endpoint_connect(&e, 0, &other, &err), 0);
	assert_int_equal(null.attr[0].ah_attr.dlid, 9);
	assert_int_equal(null.attr[0].ah_attr.sl, 3);
	assert_false(null.attr[0].ah_attr.is_global);
	/* Another subnet: by a router, with a GRH. */
	other.gid[7] = 1;
	assert_int_equal(pp_endpoint_connect(&e, 0, &other, &err), 0);
	assert_true(null.attr[0].ah_attr.is_global);
	pp_endpoint_close(&e);
	/* Or when asked for. */
	e = opened((struct pp_endpoint_options){.device = "null0"});
	other.gid[7] = 0;
	assert_int_equal(pp_endpoint_connect(&e, 0, &other, &err), 0);
	assert_true(null.attr[0].ah_attr.is_global);
	pp_endpoint_close(&e);
}

static void test_reset(void **state)
{
	struct pp_endpoint e = opened(plain());
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_endpoint_connect(&e, 0, &peer, &err), 0);
	assert_int_equal(pp_endpoint_reset(&e, 0, &err), 0);
	assert_int_equal(null.attr[0].qp_state, IBV_QPS_INIT);
	assert_int_equal(pp_endpoint_reset(&e, 1, &err), -EINVAL);
	pp_endpoint_close(&e);
}

/* The n-th call fails, for every n: an error with a line, and nothing is left. */
static void test_torture(void **state)
{
	unsigned int n = 0;
	bool whole = false;

	(void)state;
	while (!whole && ++n < 100) {
		struct pp_endpoint_options o = plain();
		struct pp_error err = {0};
		struct pp_endpoint e;
		int r;

		o.qps = 3;
		null_reset();
		null.fail_nth = n;
		r = pp_endpoint_open(null_verbs(), &o, &e, &err);
		if (!r) {
			r = pp_endpoint_connect(&e, 2, &peer, &err);
			if (!r)
				r = pp_endpoint_reset(&e, 2, &err);
			pp_endpoint_close(&e);
		}
		/* A queue pair that is refused is asked for with less inline. */
		whole = null.calls < n;
		if (r) {
			assert_int_equal(r, -ENOMEM);
			assert_non_null(strstr(err.text, "ENOMEM"));
			assert_non_null(strstr(err.text, "null0"));
		}
		assert_int_equal(null.live, 0);
	}
	assert_true(whole && n > 15);
}

/* -R: of InfiniBand the address of IPoIB, of RoCE the GID, whatever else is there. */
static void test_cm_address(void **state)
{
	static const struct {
		bool infiniband;
		uint8_t gid[16];
		const char *ipoib, *want; /* NULL: refused */
	} rows[] = {
		{true, {0xfe, 0x80, [15] = 1}, "10.1.0.7", "10.1.0.7"},
		{true, {0xfe, 0x80, [15] = 1}, "fd00::7", "fd00::7"},
		{true, {0xfe, 0x80, [15] = 1}, "fe80::7", NULL},
		{true, {0xfe, 0x80, [15] = 1}, "fe80::7%ib0", NULL},
		{true, {0xfe, 0x80, [15] = 1}, "", NULL},
		{true, {0xfe, 0x80, [15] = 1}, NULL, NULL},
		{false, {[10] = 0xff, 0xff, 192, 0, 2, 9}, "10.1.0.7", "192.0.2.9"},
		{false, {0xfd, [15] = 9}, NULL, "fd00::9"},
		{false, {0xfe, 0x80, [15] = 9}, "10.1.0.7", NULL},
	};
	struct pp_error err;
	char text[PP_CM_ADDRESS];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pp_endpoint e = {.options = {.device = "hca", .port = 1}};
		int r;

		e.port.link_layer =
			rows[i].infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
		memcpy(e.gid.raw, rows[i].gid, sizeof(e.gid.raw));
		r = pp_cm_address(&e, rows[i].ipoib, text, &err);
		assert_int_equal(r, rows[i].want ? 0 : -EADDRNOTAVAIL);
		if (!r)
			assert_string_equal(text, rows[i].want);
		else
			assert_non_null(strstr(err.text, "hca port 1"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults, reset),
		cmocka_unit_test_setup(test_inline_is_what_the_device_gives, reset),
		cmocka_unit_test_setup(test_refusals, reset),
		cmocka_unit_test_setup(test_gid_choice, reset),
		cmocka_unit_test_setup(test_long_table_text, reset),
		cmocka_unit_test_setup(test_connect_roce, reset),
		cmocka_unit_test_setup(test_connect_infiniband, reset),
		cmocka_unit_test_setup(test_reset, reset),
		cmocka_unit_test_setup(test_torture, reset),
		cmocka_unit_test(test_cm_address),
	};

	return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}
