/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcas and ports from sysfs. Values come from what the kernel documents: state, rate and LID texts
 * in Documentation/ABI/stable/sysfs-class-infiniband, the first releases with
 * reg_user_mr_dmabuf in its history. A recorded node is compared in tests/replay/infiniband.py.
 */
#include "rdma_tree.h"

#include <errno.h>

#include "node/gid.h"
#include "node/hca_driver.h"
#include "node/port_text.h"

static void test_port_text(void **state)
{
	static const struct {
		const char *text;
		int64_t mbps;
	} rates[] = {{"400 Gb/sec (4X NDR)", 400000}, {"200 Gb/sec (2X NDR)", 200000},
		     {"2.5 Gb/sec (1X SDR)", 2500},   {"56 Gb/sec (4X FDR)", 56000},
		     {"800 Gb/sec (4X XDR)", 800000}, {"25 Gb/sec (1X EDR)", 25000}};
	static const char *const bad_rates[] = {"",
						"fast",
						"400",
						"400 Gb/second",
						"-1 Gb/sec (4X)",
						"400Gb/sec",
						"4. Gb/sec",
						"99999999999999999999 Gb/sec"};
	static const char *const bad_states[] = {"",	     "ACTIVE", "4:ACTIVE",
						 ": ACTIVE", "4: ",    "4: A\x1b[2J"};
	char word[16];
	int64_t mbps;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rates); i++) {
		assert_int_equal(pp_port_rate_parse(rates[i].text, &mbps), 0);
		assert_int_equal(mbps, rates[i].mbps);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(bad_rates); i++)
		assert_true(pp_port_rate_parse(bad_rates[i], &mbps) < 0);
	assert_int_equal(pp_port_state_parse("4: ACTIVE", word, sizeof(word)), 0);
	assert_string_equal(word, "ACTIVE");
	assert_int_equal(pp_port_state_parse("5: LinkUp", word, sizeof(word)), 0);
	assert_string_equal(word, "LinkUp");
	assert_int_equal(pp_port_state_parse("7: Phy Test", word, sizeof(word)), 0);
	assert_string_equal(word, "Phy Test");
	for (size_t i = 0; i < PP_ARRAY_LEN(bad_states); i++)
		assert_true(pp_port_state_parse(bad_states[i], word, sizeof(word)) < 0);
	assert_int_equal(pp_port_state_parse("1: PortConfigurationTraining", word, sizeof(word)),
			 -EFBIG);
}

static void test_gid(void **state)
{
	char text[PP_GID_TEXT];
	struct pp_gid gid;

	(void)state;
	assert_int_equal(pp_gid_parse("fe80:0000:0000:0000:0200:00ff:fe00:0100", &gid), 0);
	assert_true(pp_gid_is_link_local(&gid));
	assert_string_equal(pp_gid_format(&gid, text), "fe80::200:ff:fe00:100");
	assert_int_equal(pp_gid_parse("0000:0000:0000:0000:0000:ffff:c0a8:0107", &gid), 0);
	assert_true(pp_gid_is_ipv4(&gid));
	assert_false(pp_gid_is_link_local(&gid));
	assert_string_equal(pp_gid_format(&gid, text), "::ffff:192.168.1.7");
	assert_int_equal(pp_gid_parse("0000:0000:0000:0000:0000:0000:0000:0000", &gid), 0);
	assert_true(pp_gid_is_zero(&gid));
	assert_int_equal(pp_gid_parse("fe80:0000:0000:0000:0200:00ff:fe00", &gid), -EINVAL);
	assert_int_equal(pp_gid_parse("", &gid), -EINVAL);
}

static void test_dmabuf_by_version(void **state)
{
	static const struct {
		const char *driver, *release, *word;
	} rows[] = {
		{"mlx5_core", "5.12.0", "yes"},
		{"mlx5_core", "5.11.22", "backport-only"},
		{"mlx5_core", "4.18.0-553.el8_10.x86_64", "backport-only"},
		{"efa", "5.15.0-1019-aws", "backport-only"},
		{"efa", "5.16.0", "yes"},
		{"ice", "6.1.0-44-amd64", "backport-only"},
		{"ice", "6.3.0", "yes"},
		{"bnxt_en", "6.5.0", "backport-only"},
		{"bnxt_en", "6.6.1", "yes"},
		{"mana", "6.15.0", "yes"},
		{"ionic", "6.17.0", "backport-only"},
		{"rdma_rxe", "6.18.0", "no"},
		{"mlx4_core", "6.18.0", "no"},
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		const struct pp_hca_driver *d = pp_hca_driver_find(rows[i].driver);

		assert_non_null(d);
		assert_string_equal(pp_hca_driver_dmabuf(d, rows[i].release), rows[i].word);
	}
	assert_null(pp_hca_driver_find("e1000e"));
	assert_null(pp_hca_driver_dmabuf(pp_hca_driver_find("efa"), "unknown"));
}

static void test_roce_port(void **state)
{
	struct pp_node *n = rt_collect(rt_roce());

	(void)state;
	assert_string_equal(rt_hca(n, PP_F_HCA_NAME), "mlx5_0");
	assert_string_equal(rt_hca(n, PP_F_HCA_HAS_DEVICE), "yes");
	assert_string_equal(rt_hca(n, PP_F_HCA_VENDOR), "15b3:1021");
	assert_string_equal(rt_hca(n, PP_F_HCA_DRIVER), "mlx5_core");
	assert_string_equal(rt_hca(n, PP_F_HCA_FW), "28.41.1000");
	assert_string_equal(rt_hca(n, PP_F_HCA_UVERBS), "uverbs0");
	assert_string_equal(rt_hca(n, PP_F_HCA_UVERBS_ACCESS), "yes");
	assert_string_equal(rt_hca(n, PP_F_HCA_ACTIVE_PORTS), "1");
	assert_string_equal(rt_hca(n, PP_F_HCA_BOND), "no");
	assert_string_equal(rt_hca(n, PP_F_HCA_PROVIDER), "yes");
	assert_string_equal(rt_hca(n, PP_F_HCA_KERNEL_DMABUF), "yes");
	assert_string_equal(rt_port(n, PP_F_PORT_STATE), "ACTIVE");
	assert_string_equal(rt_port(n, PP_F_PORT_RATE), "400000");
	assert_string_equal(rt_port(n, PP_F_PORT_PKEYS), "0xffff");
	assert_string_equal(rt_port(n, PP_F_PORT_NETDEV), "eth0");
	assert_string_equal(rt_port(n, PP_F_PORT_MTU), "9000");
	assert_string_equal(rt_port(n, PP_F_PORT_ACTIVE_MTU), "4096");
	assert_string_equal(rt_port(n, PP_F_PORT_GID_V2), "3");
	assert_string_equal(rt_port(n, PP_F_PORT_GID_V2_IPV4), "3");
	assert_string_equal(rt_port(n, PP_F_PORT_GIDS),
			    "0: fe80::200:ff:fe00:0 IB/RoCE v1 eth0, "
			    "1: fe80::200:ff:fe00:0 RoCE v2 eth0, "
			    "2: ::ffff:10.1.0.1 IB/RoCE v1 eth0, 3: ::ffff:10.1.0.1 RoCE v2 eth0");
	assert_string_equal(rt_port(n, PP_F_C_XMIT_DATA), "1234567890123");
	assert_string_equal(rt_port(n, PP_F_C_OOS), "7");
	assert_unknown(rt_port(n, PP_F_C_RNR));
	assert_string_equal(rt_self(n, PP_F_RDMA_DEVICES), "1");
	assert_string_equal(rt_self(n, PP_F_N_ACTIVE_PORTS), "1");
	assert_string_equal(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT), "none");
	assert_string_equal(rt_self(n, PP_F_RDMA_STACK), "inbox");
	assert_string_equal(rt_self(n, PP_F_IBVERBS_RDMA_CORE), "48");
	assert_string_equal(rt_self(n, PP_F_IBVERBS_PROVIDERS), "mlx5");
	assert_string_equal(rt_self(n, PP_F_RDMA_NETNS_MODE), "shared");
	rt_done(n);
}

/* One bad file is one unknown fact; its neighbours stay. */
static void test_bad_files(void **state)
{
	static const struct {
		const char *path, *text;
		size_t len;
		enum pp_fact_id fact;
	} cases[] = {
		{RT_PORT "/state", "4: AC\0TIVE\n", 11, PP_F_PORT_STATE},
		{RT_PORT "/state", "", 0, PP_F_PORT_STATE},
		{RT_PORT "/rate", "400 Gb/s", 8, PP_F_PORT_RATE},
		{RT_PORT "/rate", NULL, 1 << 20, PP_F_PORT_RATE},
		{RT_PORT "/lid", "0xfffffffff\n", 12, PP_F_PORT_LID},
		{RT_PORT "/link_layer", "Token Ring\n", 11, PP_F_PORT_LINK},
		{RT_PORT "/pkeys/0", "zz\n", 3, PP_F_PORT_PKEYS},
		{RT_PORT "/counters/port_xmit_data", "-5\n", 3, PP_F_C_XMIT_DATA},
		{RT_PORT "/counters/port_xmit_data", "99999999999999999999\n", 21,
		 PP_F_C_XMIT_DATA},
		{RT_NET "/mtu",
		 "\x7f"
		 "ELF",
		 4, PP_F_PORT_MTU},
	};
	char *huge = calloc(1, 1 << 20);
	struct pp_record *r;
	struct pp_node *n;

	(void)state;
	memset(huge, '4', 1 << 20);
	for (size_t i = 0; i < PP_ARRAY_LEN(cases); i++) {
		r = rt_roce();
		assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, cases[i].path,
					       cases[i].text ? cases[i].text : huge, cases[i].len,
					       0),
				 0);
		n = rt_collect(r);
		assert_unknown(rt_port(n, cases[i].fact));
		assert_string_equal(rt_port(n, PP_F_PORT_PHYS), "LinkUp");
		rt_done(n);
	}
	free(huge);
}

/* An entry that cannot be understood leaves "none" unsaid. */
static void test_gid_tables(void **state)
{
	struct pp_record *r = rt_roce();
	struct pp_node *n;

	(void)state;
	/* Link-local only: none, and known to be none. */
	rt_file(r, RT_PORT "/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	rt_file(r, RT_PORT "/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	n = rt_collect(r);
	assert_string_equal(rt_port(n, PP_F_PORT_GID_V2), "-1");
	assert_string_equal(rt_port(n, PP_F_PORT_GID_V2_IPV4), "-1");
	rt_done(n);
	/* The only good one has no readable type: unknown, not none. */
	r = rt_roce();
	assert_int_equal(
		pp_record_put(r, PP_ENTRY_FILE, RT_PORT "/gid_attrs/types/3", "\x01", 1, 0), 0);
	n = rt_collect(r);
	assert_unknown(rt_port(n, PP_F_PORT_GID_V2));
	assert_contains(rt_port(n, PP_F_PORT_GIDS), "3: ::ffff:10.1.0.1 type unknown eth0");
	rt_done(n);
	/* A hole in the table (a recording that lost a file) is not its end. */
	r = rt_roce();
	rt_file(r, RT_PORT "/gids/5", "2001:0db8:0000:0000:0000:0000:0000:0001\n");
	rt_file(r, RT_PORT "/gid_attrs/types/5", "RoCE v2\n");
	rt_file(r, RT_PORT "/gids/3", "garbage\n");
	n = rt_collect(r);
	assert_string_equal(rt_port(n, PP_F_PORT_GID_V2), "5");
	assert_unknown(rt_port(n, PP_F_PORT_GID_V2_IPV4));
	rt_done(n);
}

/* 256 entries, 4 used: what is read is bounded, and an entry before the gap is found. */
static void test_gid_table_is_short(void **state)
{
	struct pp_record *r = rt_roce(), *seen = rt_new();
	const struct pp_entry *e;
	struct pp_source *src;
	struct pp_error err;
	struct pp_node *n;
	size_t count, reads = 0;
	char path[PP_PATH_MAX];

	(void)state;
	for (int i = 4; i < 256; i++) {
		(void)snprintf(path, sizeof(path), RT_PORT "/gids/%d", i);
		rt_file(r, path, "0000:0000:0000:0000:0000:0000:0000:0000\n");
	}
	rt_file(r, RT_PORT "/gids/17", "2001:0db8:0000:0000:0000:0000:0000:0001\n");
	rt_file(r, RT_PORT "/gid_attrs/types/17", "RoCE v2\n");
	assert_int_equal(pp_source_replay_record(r, &src, &err), 0);
	pp_source_set_record(src, seen);
	n = rt_collect_source(src);
	assert_contains(rt_port(n, PP_F_PORT_GIDS), "17: 2001:db8::1 RoCE v2");
	e = pp_record_entries(seen, &count);
	for (size_t i = 0; i < count; i++)
		reads += strstr(e[i].path, "/gids/") != NULL;
	assert_int_equal(reads, 18 + 16);
	pp_source_set_record(src, NULL);
	pp_record_free(seen);
	rt_done(n);
}

#define RT_SECOND RT_ROOT "/0000:01:00.1"

/* A function of an hca with no RDMA device is named, unless it needs none. */
static void test_missing_device(void **state)
{
	struct pp_record *r = rt_roce();
	struct pp_node *n;

	(void)state;
	rt_function(r, RT_SECOND, "mlx5_core");
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT), "0000:01:00.1");
	assert_string_equal(rt_text(n, PP_HCA, "0000:01:00.1", PP_F_HCA_HAS_DEVICE), "no");
	rt_done(n);

	/* Given to a guest. */
	r = rt_roce();
	rt_function(r, RT_SECOND, "vfio-pci");
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT), "none");
	assert_string_equal(rt_text(n, PP_HCA, "0000:01:00.1", PP_F_HCA_HAS_DEVICE), "no");
	rt_done(n);

	/* Its interface and the device's are slaves of one bond. */
	r = rt_roce();
	rt_function(r, RT_SECOND, "mlx5_core");
	rt_file(r, RT_SECOND "/net/eth1/mtu", "9000\n");
	rt_link(r, RT_SECOND "/net/eth1/master", "/sys/devices/virtual/net/bond0");
	rt_link(r, RT_NET "/master", "/sys/devices/virtual/net/bond0");
	rt_file(r, "/sys/devices/virtual/net/bond0/bonding/mode", "802.3ad 4\n");
	n = rt_collect(r);
	assert_string_equal(rt_hca(n, PP_F_HCA_BOND), "yes");
	assert_string_equal(rt_text(n, PP_HCA, "0000:01:00.1", PP_F_HCA_BOND_DEVICE), RT_BDF);
	assert_string_equal(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT), "none");
	rt_done(n);
}

/* What nobody can say what it is may be an hca without a device, or a GPU. */
static void test_nameless(void **state)
{
	static const char *const files[] = {"class", "vendor"};
	struct pp_record *r;
	char path[PP_PATH_MAX];
	struct pp_node *n;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++) {
		r = rt_roce();
		rt_function(r, RT_SECOND, "vfio-pci");
		(void)snprintf(path, sizeof(path), RT_SECOND "/%s", files[i]);
		rt_file(r, path, "\n");
		n = rt_collect(r);
		assert_unknown(rt_self(n, PP_F_N_GPUS));
		assert_contains(rt_self(n, PP_F_N_GPUS), "0000:01:00.1");
		assert_unknown(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT));
		assert_contains(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT), "0000:01:00.1");
		rt_done(n);
	}
}

/* Config space of all ones says nothing; a link that could not be read is no absent link. */
static void test_function_facts(void **state)
{
	struct pp_record *r = rt_roce();
	unsigned char config[4096] = {0xb3, 0x15, 0x21, 0x10, [10] = 0x00, [11] = 0x02};
	struct pp_node *n;

	(void)state;
	assert_int_equal(
		pp_record_put(r, PP_ENTRY_FILE, RT_PCI "/config", config, sizeof(config), 0), 0);
	n = rt_collect(r);
	assert_string_equal(rt_hca(n, PP_F_HCA_ATS), "no");
	assert_string_equal(rt_hca(n, PP_F_HCA_FUNCTION), "PF");
	rt_done(n);
	r = rt_roce();
	memset(config, 0xff, sizeof(config));
	assert_int_equal(
		pp_record_put(r, PP_ENTRY_FILE, RT_PCI "/config", config, sizeof(config), 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_ERROR, RT_PCI "/physfn", NULL, 0, -EACCES), 0);
	n = rt_collect(r);
	assert_unknown(rt_hca(n, PP_F_HCA_ATS));
	assert_unknown(rt_hca(n, PP_F_HCA_FUNCTION));
	rt_done(n);
}

/* No class directory: none, where its parent could be listed; else unknown. */
static void test_no_class(void **state)
{
	struct pp_record *r = rt_new();
	struct pp_node *n;

	(void)state;
	rt_function(r, RT_PCI, "mlx5_core");
	rt_dir(r, "/sys/class/net");
	rt_dir(r, "/sys/module/kernel");
	rt_file(r, "/proc/modules", "kvm 1 0 - Live 0x0\n");
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_RDMA_DEVICES), "0");
	assert_string_equal(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT), RT_BDF);
	assert_string_equal(rt_self(n, PP_F_IB_CORE_LOADED), "no");
	/* Asking would load the module: so it is not asked, recording or not. */
	assert_contains(rt_self(n, PP_F_IBVERBS_DEVICES), "not asked");
	rt_done(n);

	r = rt_new();
	rt_function(r, RT_PCI, "mlx5_core");
	n = rt_collect(r);
	assert_unknown(rt_self(n, PP_F_RDMA_DEVICES));
	assert_unknown(rt_self(n, PP_F_RDMA_FUNCTIONS_WITHOUT));
	assert_unknown(rt_hca(n, PP_F_HCA_HAS_DEVICE));
	assert_unknown(rt_self(n, PP_F_IB_CORE_LOADED));
	rt_done(n);

	r = rt_roce();
	assert_int_equal(pp_record_put(r, PP_ENTRY_ERROR, "/sys/class/infiniband_verbs/uverbs0",
				       NULL, 0, -EACCES),
			 0);
	rt_done(rt_collect(r));
}

static void test_access(void **state)
{
	static const struct {
		const char *question, *data, *expected;
	} cases[] = {
		{"devices", "{\"infiniband_errno\":0,\"nodes\":{\"/dev/infiniband/uverbs0\":13}}",
		 "no"},
		/* A container without the node, and one without the directory. */
		{"devices", "{\"infiniband_errno\":0,\"nodes\":{}}", "no"},
		{"devices", "{\"infiniband_errno\":2,\"nodes\":{}}", "no"},
		{"devices", "{\"infiniband_errno\":13,\"nodes\":{}}", "unknown"},
		{"devices", "{}", "unknown"},
		/* Permission bits allow it, the device cgroup does not. */
		{"verbs-devices", "{\"devices\":[{\"name\":\"mlx5_0\",\"open_errno\":1}]}", "no"},
		{"verbs-devices", "{\"devices\":[{\"name\":\"mlx5_0\",\"open_errno\":13}]}", "no"},
		/* Whatever else became of the open, it did not work. */
		{"verbs-devices", "{\"devices\":[{\"name\":\"mlx5_0\",\"open_errno\":5}]}",
		 "unknown: ibv_open_device"},
		{"verbs-devices", "{\"devices\":[{\"name\":\"mlx5_0\"}]}", "unknown"},
		{"verbs-devices", "{\"devices\":[]}", "unknown"},
		{"verbs-list", "{\"devices\":[\"mlx5_7\"]}", "unknown"},
		{"verbs-list", "{}", "unknown"},
	};
	struct pp_record *r;
	struct pp_node *n;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(cases); i++) {
		r = rt_roce();
		rt_answer(r, cases[i].question, cases[i].data);
		n = rt_collect(r);
		assert_int_equal(strncmp(rt_hca(n, PP_F_HCA_UVERBS_ACCESS), cases[i].expected,
					 strlen(cases[i].expected)),
				 0);
		rt_done(n);
	}
}

/* The call hung: permission bits alone say nothing. */
static void test_open_without_answer(void **state)
{
	static const char hung[] = "{\"name\":\"verbs-devices\",\"outcome\":\"timeout\",\"detail\":"
				   "\"ibv_open_device did not return in 5 s\",\"data\":null}";
	struct pp_record *r = rt_roce();
	struct pp_node *n;

	(void)state;
	assert_int_equal(pp_record_put(r, PP_ENTRY_ANSWER, "verbs-devices", hung, strlen(hung), 0),
			 0);
	n = rt_collect(r);
	assert_unknown(rt_hca(n, PP_F_HCA_UVERBS_ACCESS));
	assert_contains(rt_hca(n, PP_F_HCA_UVERBS_ACCESS), "did not return");
	rt_done(n);
}

static void test_software_and_second_device(void **state)
{
	static const char rxe[] = "/sys/devices/virtual/infiniband/rxe0";
	static const char sf[] = RT_PCI "/mlx5_core.sf.4/infiniband/mlx5_1";
	struct pp_record *r = rt_roce();
	struct pp_node *n;

	(void)state;
	rt_at(r, rxe, "parent", "eth1\n");
	rt_at(r, rxe, "ports/1/state", "4: ACTIVE\n");
	rt_at(r, rxe, "ports/1/link_layer", "Ethernet\n");
	rt_link(r, "/sys/class/infiniband/rxe0", rxe);
	rt_at(r, sf, "fw_ver", "28.41.1000\n");
	rt_at(r, sf, "ports/1/state", "1: DOWN\n");
	rt_link(r, "/sys/class/infiniband/mlx5_1", sf);
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_RDMA_DEVICES), "3");
	assert_string_equal(rt_self(n, PP_F_N_ACTIVE_PORTS), "2");
	assert_string_equal(rt_text(n, PP_HCA, "virtual/rxe0", PP_F_HCA_DRIVER), "rdma_rxe");
	assert_string_equal(rt_text(n, PP_HCA, "virtual/rxe0", PP_F_HCA_KERNEL_DMABUF), "no");
	assert_string_equal(rt_text(n, PP_PORT, "virtual/rxe0/1", PP_F_PORT_STATE), "ACTIVE");
	assert_string_equal(rt_text(n, PP_HCA, RT_BDF "/mlx5_core.sf.4", PP_F_HCA_ACTIVE_PORTS),
			    "0");
	assert_string_equal(rt_hca(n, PP_F_HCA_NAME), "mlx5_0");
	rt_done(n);
}

/* Less all entries whose path starts with @prefix. Takes @r. */
static struct pp_record *without(struct pp_record *r, const char *prefix)
{
	struct pp_record *less = rt_new();
	size_t n;
	const struct pp_entry *e = pp_record_entries(r, &n);

	for (size_t i = 0; i < n; i++)
		if (strncmp(e[i].path, prefix, strlen(prefix)) != 0)
			assert_int_equal(pp_record_put(less, e[i].kind, e[i].path, e[i].content,
						       e[i].len, 0),
					 0);
	pp_record_free(r);
	return less;
}

static void test_stack(void **state)
{
	struct pp_record *r = rt_roce();
	struct pp_node *n;

	(void)state;
	rt_file(r, "/sys/module/ib_core/taint", "OE\n");
	rt_file(r, "/sys/module/mlx5_core/version", "24.10-0.7.0\n");
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_RDMA_STACK), "out-of-tree");
	assert_string_equal(rt_self(n, PP_F_RDMA_STACK_VERSION), "24.10-0.7.0");
	rt_done(n);

	r = rt_roce();
	rt_file(r, "/sys/module/mlx_compat/initstate", "live\n");
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_RDMA_STACK), "out-of-tree");
	assert_unknown(rt_self(n, PP_F_RDMA_STACK_VERSION));
	rt_done(n);

	/* Drivers of a distribution that did not install libibverbs' driver file. */
	r = rt_roce();
	rt_answer(
		r, "verbs",
		"{\"path\":\"/l\",\"real\":\"/opt/lib/libibverbs.so.1\",\"reg_dmabuf_mr\":false}");
	n = rt_collect(r);
	assert_unknown(rt_self(n, PP_F_IBVERBS_VERSION));
	assert_string_equal(rt_self(n, PP_F_IBVERBS_DMABUF), "no");
	assert_unknown(rt_self(n, PP_F_IBVERBS_PROVIDERS));
	assert_string_equal(rt_hca(n, PP_F_HCA_PROVIDER), "yes"); /* the device is listed */
	rt_done(n);
}

/* Whether a provider took the device is what the list of libibverbs says, not a file's name. */
static void test_provider(void **state)
{
	static const struct {
		const char *file, *list, *expected;
	} cases[] = {
		{"mlx5.driver", "{\"devices\":[\"mlx5_0\"]}", "yes"},
		{"vendor.driver", "{\"devices\":[\"mlx5_0\"]}", "yes"},
		{"vendor.driver", "{\"devices\":[]}", "no"},
		{"mlx5.driver", "{\"devices\":[]}", "unknown"},
		{"mlx5.driver", "{}", "unknown"},
		{"vendor.driver", "{}", "unknown"},
	};
	char many[8000] = "{\"devices\":[";
	struct pp_record *r;
	struct pp_node *n;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(cases); i++) {
		r = rt_roce();
		rt_answer(r, "verbs-list", cases[i].list);
		if (strcmp(cases[i].file, "mlx5.driver") != 0) {
			r = without(r, "/etc/libibverbs.d/");
			rt_at(r, "/etc/libibverbs.d", cases[i].file, "driver vendor\n");
		}
		n = rt_collect(r);
		assert_int_equal(strncmp(rt_hca(n, PP_F_HCA_PROVIDER), cases[i].expected,
					 strlen(cases[i].expected)),
				 0);
		rt_done(n);
	}
	/* The device behind hundreds of others. */
	for (int i = 1; i <= 300; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "\"mlx5_%d\",", i);
	(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "\"mlx5_0\"]}");
	r = rt_roce();
	rt_answer(r, "verbs-list", many);
	n = rt_collect(r);
	assert_string_equal(rt_hca(n, PP_F_HCA_PROVIDER), "yes");
	rt_done(n);
}

/* A module that is not in sight is there when its devices are, and unknown otherwise. */
static void test_modules(void **state)
{
	struct pp_record *r = rt_roce();
	struct pp_node *n = rt_collect(without(r, "/sys/module/"));

	(void)state;
	assert_string_equal(rt_self(n, PP_F_IB_CORE_LOADED), "yes");
	assert_string_equal(rt_self(n, PP_F_IB_UVERBS_LOADED), "yes");
	assert_string_equal(rt_self(n, PP_F_MLX5_CORE_LOADED), "yes");
	assert_string_equal(rt_self(n, PP_F_MLX5_IB_LOADED), "yes");
	rt_done(n);
	/* /sys/module lacks it, and nothing says that /sys/module is all there is. */
	r = without(without(rt_roce(), "/sys/class/infiniband"), "/sys/module/ib_uverbs/");
	n = rt_collect(r);
	assert_unknown(rt_self(n, PP_F_IB_UVERBS_LOADED));
	assert_unknown(rt_self(n, PP_F_MLX5_IB_LOADED));
	rt_done(n);
	r = without(without(rt_roce(), "/sys/class/infiniband"), "/sys/module/ib_uverbs/");
	rt_dir(r, "/sys/module/kernel");
	rt_file(r, "/proc/modules", "mlx5_core 1 0 - Live 0x0\n");
	n = rt_collect(r);
	assert_string_equal(rt_self(n, PP_F_IB_UVERBS_LOADED), "no");
	assert_string_equal(rt_self(n, PP_F_MLX5_IB_LOADED), "no");
	rt_done(n);
}

/*
 * Facts that a missing file may change to another known value: they count or list what is there, or
 * absence of the file is how their value looks (no driver link: no driver is bound).
 */
static bool absence_is_a_value(enum pp_fact_id id)
{
	static const enum pp_fact_id ids[] = {PP_F_PORT_GIDS,	     PP_F_PORT_PKEYS,
					      PP_F_PORT_GID_V2,	     PP_F_PORT_GID_V2_IPV4,
					      PP_F_RDMA_DEVICES,     PP_F_N_HCAS,
					      PP_F_N_ACTIVE_PORTS,   PP_F_HCA_PORTS,
					      PP_F_HCA_NAME,	     PP_F_HCA_HAS_DEVICE,
					      PP_F_HCA_ACTIVE_PORTS, PP_F_IBVERBS_PROVIDERS,
					      PP_F_IBVERBS_DEVICES,  PP_F_RDMA_FUNCTIONS_WITHOUT,
					      PP_F_HCA_DRIVER};

	for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
		if (ids[i] == id)
			return true;
	return false;
}

static void compare(const struct pp_node *good, const struct pp_node *less, const char *removed)
{
	const struct pp_object *o, *was;
	char a[4096], b[4096];

	pp_objects_foreach (&less->facts, o) {
		was = pp_object_find(&good->facts, o->kind, o->id);
		for (unsigned int i = 0; i < o->n; i++) {
			if (!o->facts[i].known || absence_is_a_value(o->facts[i].id) ||
			    !strncmp(pp_fact_table[o->facts[i].id].key, "pci.", 4))
				continue;
			(void)pp_fact_text(&o->facts[i], a, sizeof(a));
			(void)pp_fact_text(pp_fact_get(was, o->facts[i].id), b, sizeof(b));
			if (was && strcmp(a, b) != 0)
				fail_msg("without %s, %s of %s is %s, was %s", removed,
					 pp_fact_table[o->facts[i].id].key, o->id, a, b);
		}
	}
}

/* Taking a file or an answer away invents no value. */
static void test_removal(void **state)
{
	struct pp_record *whole = rt_roce(), *r;
	struct pp_node *good, *less;
	const struct pp_entry *e;
	size_t n;

	(void)state;
	good = rt_collect(rt_roce());
	e = pp_record_entries(whole, &n);
	assert_true(n > 50);
	for (size_t i = 0; i < n; i++) {
		if (e[i].kind == PP_ENTRY_DIR)
			continue;
		r = rt_new();
		for (size_t j = 0; j < n; j++)
			if (j != i)
				assert_int_equal(pp_record_put(r, e[j].kind, e[j].path,
							       e[j].content, e[j].len, 0),
						 0);
		less = rt_collect(r);
		compare(good, less, e[i].path);
		rt_done(less);
	}
	rt_done(good);
	pp_record_free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_text),
		cmocka_unit_test(test_gid),
		cmocka_unit_test(test_dmabuf_by_version),
		cmocka_unit_test(test_roce_port),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_gid_tables),
		cmocka_unit_test(test_gid_table_is_short),
		cmocka_unit_test(test_missing_device),
		cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_function_facts),
		cmocka_unit_test(test_no_class),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_open_without_answer),
		cmocka_unit_test(test_software_and_second_device),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_provider),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_removal),
	};

	return cmocka_run_group_tests_name("hca", tests, NULL, NULL);
}
