/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made machine in memory for the RDMA collectors: one root port, ConnectX-7 functions behind it.
 */
#ifndef PP_TESTS_RDMA_TREE_H
#define PP_TESTS_RDMA_TREE_H

#include "unit.h"

#include <stdbool.h>

#include "node/node.h"

#define RT_BDF	"0000:01:00.0"
#define RT_ROOT "/sys/devices/pci0000:00/0000:00:01.0"
#define RT_PCI	RT_ROOT "/" RT_BDF
#define RT_DEV	RT_PCI "/infiniband/mlx5_0"
#define RT_PORT RT_DEV "/ports/1"
#define RT_NET	RT_PCI "/net/eth0"

static inline struct pp_record *rt_new(void)
{
	struct pp_record *r;

	assert_int_equal(pp_record_new((size_t)64 << 20, &r), 0);
	return r;
}

static inline void rt_file(struct pp_record *r, const char *path, const char *text)
{
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, path, text, strlen(text), 0), 0);
}

/* dir/name, for rows of a table. */
static inline void rt_at(struct pp_record *r, const char *dir, const char *name, const char *text)
{
	char path[PP_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	rt_file(r, path, text);
}

static inline void rt_link(struct pp_record *r, const char *path, const char *target)
{
	assert_int_equal(pp_record_put(r, PP_ENTRY_LINK, path, target, strlen(target), 0), 0);
}

static inline void rt_dir(struct pp_record *r, const char *path)
{
	assert_int_equal(pp_record_put(r, PP_ENTRY_DIR, path, NULL, 0, 0), 0);
}

/* Data of an answered question. */
static inline void rt_answer(struct pp_record *r, const char *name, const char *data)
{
	char text[8192];

	(void)snprintf(text, sizeof(text),
		       "{\"name\":\"%s\",\"outcome\":\"answered\",\"detail\":\"\",\"data\":%s}",
		       name, data);
	assert_int_equal(pp_record_put(r, PP_ENTRY_ANSWER, name, text, strlen(text), 0), 0);
}

/* A PCI function of ConnectX-7, bound to @driver. */
static inline void rt_function(struct pp_record *r, const char *dir, const char *driver)
{
	const char *bdf = strrchr(dir, '/') + 1;
	char path[PP_PATH_MAX], target[PP_PATH_MAX];

	rt_at(r, dir, "class", "0x020000\n");
	rt_at(r, dir, "vendor", "0x15b3\n");
	rt_at(r, dir, "device", "0x1021\n");
	rt_at(r, dir, "numa_node", "0\n");
	rt_at(r, dir, "local_cpulist", "0-7\n");
	(void)snprintf(path, sizeof(path), "%s/driver", dir);
	(void)snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", driver);
	rt_link(r, path, target);
	(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", bdf);
	rt_link(r, path, dir);
}

/* mlx5_0 on RT_PCI with one RoCE port on eth0, everything well. */
static inline struct pp_record *rt_roce(void)
{
	static const char *const rows[][2] = {
		{RT_DEV "/fw_ver", "28.41.1000\n"},
		{RT_DEV "/node_guid", "0200:00ff:fe00:0000\n"},
		{RT_DEV "/sys_image_guid", "0200:00ff:fe00:0000\n"},
		{RT_DEV "/board_id", "MT_0000000838\n"},
		{RT_DEV "/hca_type", "MT4129\n"},
		{RT_PORT "/state", "4: ACTIVE\n"},
		{RT_PORT "/phys_state", "5: LinkUp\n"},
		{RT_PORT "/rate", "400 Gb/sec (4X NDR)\n"},
		{RT_PORT "/link_layer", "Ethernet\n"},
		{RT_PORT "/lid", "0x0\n"},
		{RT_PORT "/sm_lid", "0x0\n"},
		{RT_PORT "/pkeys/0", "0xffff\n"},
		{RT_PORT "/gids/0", "fe80:0000:0000:0000:0200:00ff:fe00:0000\n"},
		{RT_PORT "/gids/1", "fe80:0000:0000:0000:0200:00ff:fe00:0000\n"},
		{RT_PORT "/gids/2", "0000:0000:0000:0000:0000:ffff:0a01:0001\n"},
		{RT_PORT "/gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0001\n"},
		{RT_PORT "/gid_attrs/types/0", "IB/RoCE v1\n"},
		{RT_PORT "/gid_attrs/types/1", "RoCE v2\n"},
		{RT_PORT "/gid_attrs/types/2", "IB/RoCE v1\n"},
		{RT_PORT "/gid_attrs/types/3", "RoCE v2\n"},
		{RT_PORT "/gid_attrs/ndevs/0", "eth0\n"},
		{RT_PORT "/gid_attrs/ndevs/1", "eth0\n"},
		{RT_PORT "/gid_attrs/ndevs/2", "eth0\n"},
		{RT_PORT "/gid_attrs/ndevs/3", "eth0\n"},
		{RT_PORT "/counters/port_xmit_data", "1234567890123\n"},
		{RT_PORT "/hw_counters/out_of_sequence", "7\n"},
		{RT_NET "/mtu", "9000\n"},
		{RT_NET "/operstate", "up\n"},
		{RT_NET "/dev_port", "0\n"},
		{RT_PCI "/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"},
		{"/sys/module/ib_core/initstate", "live\n"},
		{"/sys/module/ib_core/taint", "\n"},
		{"/sys/module/ib_uverbs/initstate", "live\n"},
		{"/sys/module/mlx5_core/initstate", "live\n"},
		{"/etc/libibverbs.d/mlx5.driver", "driver mlx5\n"},
		{"/usr/lib64/libibverbs/libmlx5-rdmav34.so", ""},
	};
	struct pp_record *r = rt_new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		rt_file(r, rows[i][0], rows[i][1]);
	rt_function(r, RT_PCI, "mlx5_core");
	rt_link(r, "/sys/class/infiniband/mlx5_0", RT_DEV);
	rt_link(r, "/sys/class/infiniband_verbs/uverbs0", RT_PCI "/infiniband_verbs/uverbs0");
	rt_link(r, "/sys/class/net/eth0", RT_NET);
	rt_answer(r, "verbs",
		  "{\"path\":\"/lib64/libibverbs.so.1\",\"real\":\"/usr/lib64/"
		  "libibverbs.so.1.14.48.0\",\"reg_dmabuf_mr\":true}");
	rt_answer(r, "verbs-list", "{\"devices\":[\"mlx5_0\"]}");
	rt_answer(r, "verbs-devices",
		  "{\"devices\":[{\"name\":\"mlx5_0\",\"open_errno\":0,\"ports\":[{\"port\":1,"
		  "\"active_mtu\":4096}]}]}");
	rt_answer(r, "devices",
		  "{\"infiniband_errno\":0,\"nodes\":{\"/dev/infiniband/uverbs0\":0}}");
	rt_answer(r, "rdma-netlink", "{\"netns_mode\":\"shared\"}");
	rt_answer(r, "dcb",
		  "{\"eth0\":{\"errno\":0,\"pfc_mask\":8,\"priority_tc\":[0,1,2,3,4,5,6,7],"
		  "\"dscp_apps\":64}}");
	rt_answer(r, "ethtool",
		  "{\"eth0\":{\"pause_errno\":0,\"pause_rx\":true,\"pause_tx\":false,"
		  "\"stats_errno\":0,\"stats\":{\"rx_discards_phy\":5,\"rx_prio0_pause\":1,"
		  "\"rx_prio3_pause\":2,\"tx_prio3_pause\":9,\"rx_prio3_discards\":4}}}");
	return r;
}

/* Runs the PCI and RDMA collectors only. Takes @r. */
static inline struct pp_node *rt_collect_source(struct pp_source *src)
{
	struct pp_node *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	n->src = src;
	n->arena = PP_ARENA((size_t)64 << 20);
	n->facts.arena = &n->arena;
	n->self = pp_object_add(&n->facts, PP_NODE, "node");
	pp_fact_str(&n->facts, n->self, PP_F_KERNEL_RELEASE, "6.8.0-60-generic", NULL);
	pp_collect_pci(n);
	pp_collect_rdma(n);
	pp_collect_hca(n);
	pp_collect_roce(n);
	assert_false(n->arena.failed);
	return n;
}

static inline struct pp_node *rt_collect(struct pp_record *r)
{
	struct pp_source *src;
	struct pp_error err;

	assert_int_equal(pp_source_replay_record(r, &src, &err), 0);
	return rt_collect_source(src);
}

static inline void rt_done(struct pp_node *n)
{
	pp_source_free(n->src);
	pp_node_free(n);
}

/* The fact as people read it; static buffer. */
static inline const char *rt_text(const struct pp_node *n, enum pp_kind kind, const char *id,
				  enum pp_fact_id fact)
{
	static char text[4096];
	const struct pp_object *o = pp_object_find(&n->facts, kind, id);

	assert_non_null(o);
	return pp_fact_text(pp_fact_get(o, fact), text, sizeof(text));
}

#define rt_hca(n, fact)	 rt_text((n), PP_HCA, RT_BDF, (fact))
#define rt_port(n, fact) rt_text((n), PP_PORT, RT_BDF "/1", (fact))
#define rt_self(n, fact) rt_text((n), PP_NODE, "node", (fact))

#define assert_unknown(text)  assert_int_equal(strncmp((text), "unknown: ", 9), 0)
#define assert_contains(a, b) assert_non_null(strstr((a), (b)))

#endif
