/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCE facts: DCB attributes as linux/dcbnl.h lays them out, ethtool's names of mlx5, what the
 * kernel itself answers for the loopback interface, and drivers that answer nothing.
 */
#include "rdma_tree.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>

#include "node/dcb.h"
#include "node/ethtool.h"

enum { MESSAGE_BYTES = 4096, APP_TRUST_TABLE = 11, SELECTOR_PCP = 255 };

struct message {
	union {
		struct nlmsghdr header;
		char bytes[MESSAGE_BYTES];
	};
};

/* A message with the attributes that a driver answers to DCB_CMD_IEEE_GET. */
static void build(struct message *m, bool trust)
{
	struct ieee_ets ets = {.prio_tc = {0, 0, 0, 3, 0, 0, 6, 7}};
	struct ieee_pfc pfc = {.pfc_cap = 8, .pfc_en = 1 << 3};
	struct dcb_app app = {.selector = IEEE_8021QAZ_APP_SEL_DSCP, .priority = 3, .protocol = 26};
	struct nlattr *ieee, *table;

	memset(m, 0, sizeof(*m));
	mnl_nlmsg_put_header(m);
	mnl_attr_put_strz(&m->header, DCB_ATTR_IFNAME, "eth0");
	ieee = mnl_attr_nest_start(&m->header, DCB_ATTR_IEEE);
	mnl_attr_put(&m->header, DCB_ATTR_IEEE_ETS, sizeof(ets), &ets);
	mnl_attr_put(&m->header, DCB_ATTR_IEEE_PFC, sizeof(pfc), &pfc);
	table = mnl_attr_nest_start(&m->header, DCB_ATTR_IEEE_APP_TABLE);
	mnl_attr_put(&m->header, DCB_ATTR_IEEE_APP, sizeof(app), &app);
	app.selector = IEEE_8021QAZ_APP_SEL_ETHERTYPE;
	mnl_attr_put(&m->header, DCB_ATTR_IEEE_APP, sizeof(app), &app);
	mnl_attr_nest_end(&m->header, table);
	if (trust) {
		table = mnl_attr_nest_start(&m->header, APP_TRUST_TABLE);
		mnl_attr_put_u8(&m->header, DCB_ATTR_IEEE_APP, IEEE_8021QAZ_APP_SEL_DSCP);
		mnl_attr_put_u8(&m->header, DCB_ATTR_IEEE_APP + 1, SELECTOR_PCP);
		mnl_attr_nest_end(&m->header, table);
	}
	mnl_attr_nest_end(&m->header, ieee);
}

static void test_dcb(void **state)
{
	static const uint8_t prio_tc[] = {0, 0, 0, 3, 0, 0, 6, 7};
	struct message m;
	struct pp_dcb dcb;

	(void)state;
	build(&m, true);
	assert_int_equal(pp_dcb_parse(mnl_nlmsg_get_payload(&m.header),
				      mnl_nlmsg_get_payload_len(&m.header), &dcb),
			 0);
	assert_true(dcb.has_ets && dcb.has_pfc && dcb.has_apps && dcb.has_trust);
	assert_memory_equal(dcb.prio_tc, prio_tc, sizeof(prio_tc));
	assert_int_equal(dcb.pfc_enabled, 8);
	assert_int_equal(dcb.dscp_apps, 1);
	assert_int_equal(dcb.n_trust, 2);
	assert_int_equal(dcb.trust[0], IEEE_8021QAZ_APP_SEL_DSCP);
	assert_int_equal(dcb.trust[1], SELECTOR_PCP);
	build(&m, false);
	assert_int_equal(pp_dcb_parse(mnl_nlmsg_get_payload(&m.header),
				      mnl_nlmsg_get_payload_len(&m.header), &dcb),
			 0);
	assert_false(dcb.has_trust);
}

/* Cut anywhere: refused, or nothing made up; never read beyond the end (sanitizers watch). */
static void test_dcb_cut(void **state)
{
	struct message m;
	struct pp_dcb dcb;
	uint8_t *bytes;
	size_t len;

	(void)state;
	build(&m, true);
	len = mnl_nlmsg_get_payload_len(&m.header);
	for (size_t cut = 0; cut < len; cut++) {
		bytes = malloc(cut ? cut : 1);
		assert_non_null(bytes);
		memcpy(bytes, mnl_nlmsg_get_payload(&m.header), cut);
		dcb = (struct pp_dcb){0};
		if (pp_dcb_parse(bytes, cut, &dcb) == 0)
			assert_false(dcb.has_pfc || dcb.has_ets || dcb.has_apps);
		free(bytes);
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_true(pp_ethtool_match("rx_prio#_pause", "rx_prio3_pause"));
	assert_true(pp_ethtool_match("rx_prio#_pause", "rx_prio12_pause"));
	assert_false(pp_ethtool_match("rx_prio#_pause", "rx_prio3_pause_duration"));
	assert_false(pp_ethtool_match("rx_prio#_pause", "rx_prio_pause"));
	assert_false(pp_ethtool_match("rx_prio#_pause", "rx_prio3"));
	assert_true(pp_ethtool_wanted("rx_discards_phy"));
	assert_true(pp_ethtool_wanted("outbound_pci_stalled_wr"));
	assert_false(pp_ethtool_wanted("outbound_pci_stalled_wr_events"));
	assert_false(pp_ethtool_wanted("rx_packets"));
}

static void test_facts(void **state)
{
	struct pp_node *n = rt_collect(rt_roce());

	(void)state;
	assert_string_equal(rt_port(n, PP_F_PORT_PFC), "8");
	assert_string_equal(rt_port(n, PP_F_PORT_PRIO_MAP),
			    "0:0, 1:1, 2:2, 3:3, 4:4, 5:5, 6:6, 7:7");
	assert_string_equal(rt_port(n, PP_F_PORT_TRUST), "dscp");
	assert_string_equal(rt_port(n, PP_F_PORT_PAUSE_RX), "yes");
	assert_string_equal(rt_port(n, PP_F_PORT_PAUSE_TX), "no");
	assert_string_equal(rt_port(n, PP_F_C_RX_DISCARDS), "5");
	assert_string_equal(rt_port(n, PP_F_C_RX_PAUSE), "3");
	assert_string_equal(rt_port(n, PP_F_C_TX_PAUSE), "9");
	assert_string_equal(rt_port(n, PP_F_C_RX_PRIO_DISCARDS), "4");
	assert_unknown(rt_port(n, PP_F_C_OUT_PCI_STALL_RD));
	/* The inbox driver shows neither. */
	assert_unknown(rt_port(n, PP_F_PORT_ECN_NP));
	assert_unknown(rt_port(n, PP_F_PORT_TC_DEFAULT));
	rt_done(n);
}

static void test_ofed_files(void **state)
{
	struct pp_record *r = rt_roce();
	char path[256];
	struct pp_node *n;

	(void)state;
	for (int i = 0; i < 8; i++) {
		(void)snprintf(path, sizeof(path), RT_NET "/ecn/roce_np/enable/%d", i);
		rt_file(r, path, i == 3 || i == 5 ? "1\n" : "0\n");
		(void)snprintf(path, sizeof(path), RT_NET "/ecn/roce_rp/enable/%d", i);
		rt_file(r, path, i == 6 ? "garbage\n" : "1\n");
	}
	rt_file(r, RT_DEV "/tc/1/traffic_class", "Global tclass=106\n");
	rt_file(r, RT_NET "/qos/trust_state", "PCP\n");
	n = rt_collect(r);
	assert_string_equal(rt_port(n, PP_F_PORT_ECN_NP), "3, 5");
	assert_unknown(rt_port(n, PP_F_PORT_ECN_RP));
	assert_string_equal(rt_port(n, PP_F_PORT_TC_DEFAULT), "106");
	assert_string_equal(rt_port(n, PP_F_PORT_TRUST), "pcp");
	rt_done(n);
	r = rt_roce();
	rt_file(r, RT_DEV "/tc/1/traffic_class", "");
	n = rt_collect(r);
	assert_string_equal(rt_port(n, PP_F_PORT_TC_DEFAULT), "-1");
	rt_done(n);
}

/* A driver without DCB, hostile answers, and InfiniBand, which has none of this. */
static void test_unsupported(void **state)
{
	static const char *const answers[] = {
		"{\"eth0\":{\"errno\":95}}",
		"{\"eth0\":{\"errno\":-1,\"pfc_mask\":8}}",
		"{\"eth0\":{\"errno\":0,\"pfc_mask\":256,\"priority_tc\":[0,1,2,3,4,5,6,8]}}",
		"{\"eth0\":{\"errno\":0,\"pfc_mask\":\"8\",\"priority_tc\":[0,1,2]}}",
		"{\"eth0\":7}",
		"{\"eth1\":{\"errno\":0,\"pfc_mask\":8}}",
	};
	struct pp_record *r;
	struct pp_node *n;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(answers); i++) {
		r = rt_roce();
		rt_answer(r, "dcb", answers[i]);
		n = rt_collect(r);
		assert_unknown(rt_port(n, PP_F_PORT_PFC));
		assert_unknown(rt_port(n, PP_F_PORT_PRIO_MAP));
		assert_unknown(rt_port(n, PP_F_PORT_TRUST));
		if (i == 0)
			assert_contains(rt_port(n, PP_F_PORT_PFC),
					"not supported by the driver of eth0");
		rt_done(n);
	}
	r = rt_roce();
	rt_answer(r, "ethtool",
		  "{\"eth0\":{\"pause_errno\":0,\"pause_rx\":3,\"stats_errno\":0,\"stats\":"
		  "{\"rx_prio0_pause\":9223372036854775807,\"rx_prio1_pause\":1,"
		  "\"rx_discards_phy\":-1}}}");
	n = rt_collect(r);
	assert_unknown(rt_port(n, PP_F_PORT_PAUSE_RX));
	assert_unknown(rt_port(n, PP_F_C_RX_PAUSE));
	assert_unknown(rt_port(n, PP_F_C_RX_DISCARDS));
	rt_done(n);
	r = rt_roce();
	rt_file(r, RT_PORT "/link_layer", "InfiniBand\n");
	n = rt_collect(r);
	assert_string_equal(rt_port(n, PP_F_PORT_PFC), "unknown: not observed");
	assert_string_equal(rt_port(n, PP_F_PORT_GID_V2), "unknown: not observed");
	rt_done(n);
}

/* DCB belongs to the physical interface below a bond. */
static void test_bond(void **state)
{
	struct pp_record *r = rt_roce();
	struct pp_node *n;
	char path[256];

	(void)state;
	for (int i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), RT_PORT "/gid_attrs/ndevs/%d", i);
		rt_file(r, path, "bond0\n");
	}
	rt_file(r, "/sys/devices/virtual/net/bond0/bonding/mode", "802.3ad 4\n");
	rt_file(r, "/sys/devices/virtual/net/bond0/mtu", "4200\n");
	rt_link(r, "/sys/class/net/bond0", "/sys/devices/virtual/net/bond0");
	n = rt_collect(r);
	assert_string_equal(rt_port(n, PP_F_PORT_NETDEV), "bond0");
	assert_string_equal(rt_port(n, PP_F_PORT_MTU), "4200");
	assert_string_equal(rt_hca(n, PP_F_HCA_BOND), "yes");
	assert_string_equal(rt_port(n, PP_F_PORT_PFC), "8");
	rt_done(n);
}

/* This kernel's word on an interface that has neither DCB nor pause. */
static void test_loopback(void **state)
{
	const char *name = "lo";
	const struct pp_netdevs netdevs = {.name = &name, .n = 1};
	struct pp_source *live;
	struct pp_answer a;
	struct pp_error err;
	int64_t error = 0;

	(void)state;
	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_ask_dcb(live, &netdevs, &a), 0);
	assert_true(a.answered);
	assert_int_equal(pp_answer_i64(json_object_get(a.data, "lo"), "errno", &error), 0);
	assert_int_equal(error, EOPNOTSUPP);
	pp_answer_done(&a);
	assert_int_equal(pp_ask_ethtool(live, &netdevs, &a), 0);
	assert_true(a.answered);
	assert_int_equal(pp_answer_i64(json_object_get(a.data, "lo"), "pause_errno", &error), 0);
	assert_int_equal(error, EOPNOTSUPP);
	pp_answer_done(&a);
	name = "no-such-interface-here";
	assert_int_equal(pp_ask_dcb(live, &netdevs, &a), 0);
	assert_int_equal(pp_answer_i64(json_object_get(a.data, name), "errno", &error), 0);
	assert_int_equal(error, ENODEV);
	pp_answer_done(&a);
	pp_source_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dcb),	   cmocka_unit_test(test_dcb_cut),
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_facts),
		cmocka_unit_test(test_ofed_files), cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_bond),	   cmocka_unit_test(test_loopback),
	};

	return cmocka_run_group_tests_name("roce", tests, NULL, NULL);
}
