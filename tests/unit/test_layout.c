/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planned layout against a machine made of facts set by hand: equal, different, missing, extra,
 * and unknown are five different answers.
 */
#include "unit.h"

#include <errno.h>

#include "node/layout.h"

static void refuse(const char *text, const char *expected)
{
	struct pp_layout *l = NULL;
	struct pp_error err = {0};

	assert_int_equal(pp_layout_parse("f", text, strlen(text), &l, &err), -EINVAL);
	assert_null(l);
	if (!strstr(err.text, expected))
		fail_msg("'%s' is not in '%s'", expected, err.text);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("", "expects nothing");
	refuse("[nodes]\ngpus=1\n", "did you mean 'node'?");
	refuse("[node]\ngpu=1\n", "did you mean 'gpus'?");
	refuse("[node]\ngpus=-1\n", "no count");
	refuse("[node]\ngpus=\n", "no value");
	refuse("[node x]\ngpus=1\n", "takes no name");
	refuse("[rail]\ngpu=0\n", "needs a name");
	refuse("[rail a]\ngpu=0\n", "f:1: rail 'a' needs gpu and hca");
	refuse("[rail a]\ngpu=0\nhca=mlx5_0\n[rail a]\n", "twice");
	refuse("[rail a]\ngpu=0\nhca=x\ndistance=PXI\n", "did you mean");
	refuse("[rail a]\ngpu=0\nhca=x\ndistance=<=near\n", "unknown distance");
	refuse("[link 19:00]\nwidth=16\n", "no PCI address");
	refuse("[link 19:00.0]\nwidth=sixteen\n", "width: 'sixteen'");
	refuse("[link 19:00.0]\nspeed=fast\n", "speed: 'fast'");
	refuse("[iommu]\ntype=passthrough\n", "unknown type");
	refuse("[acs]\nredirect=maybe\n", "neither yes nor no");
}

/* GPU 0000:02:00.0 and hca 0000:03:00.0 below one switch. */
enum { ROOT, UP, DOWN0, DOWN1, GPU, HCA, N_DEV };

struct machine {
	struct pp_node n;
	struct pp_pci_dev dev[N_DEV];
	const char *bridges[1];
	struct pp_object *gpu, *hca, *pair;
};

static struct machine *machine_new(void)
{
	static const int parent[N_DEV] = {-1, ROOT, UP, UP, DOWN0, DOWN1};
	static const char *const path[N_DEV] = {
		"/sys/devices/pci0000:00/0000:00:01.0",
		"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0",
		"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0",
		"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0",
		"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
		"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0",
	};
	static const int depth[N_DEV] = {0, 1, 2, 2, 3, 3};
	struct machine *m = calloc(1, sizeof(*m));
	struct pp_facts *f = &m->n.facts;

	assert_non_null(m);
	m->n.arena = PP_ARENA((size_t)1 << 20);
	f->arena = &m->n.arena;
	m->n.self = pp_object_add(f, PP_NODE, "node");
	for (int i = 0; i < N_DEV; i++) {
		m->dev[i] = (struct pp_pci_dev){
			.parent = parent[i],
			.depth = depth[i],
			.path = path[i],
			.numa = 0,
			.class_code = i == GPU	 ? 0x030200
				      : i == HCA ? 0x020700
						 : 0x060400,
			.vendor = i == GPU   ? 0x10de
				  : i == HCA ? 0x15b3
					     : 0x1000,
			.port_type = i == ROOT ? PP_PORT_ROOT
				     : i == UP ? PP_PORT_UPSTREAM
				     : i < GPU ? PP_PORT_DOWNSTREAM
					       : PP_PORT_ENDPOINT,
			.speed_mts = 32000,
			.max_speed_mts = 32000,
			.width = 16,
			.max_width = 16,
		};
		assert_int_equal(pp_bdf_parse(strrchr(path[i], '/') + 1, &m->dev[i].bdf), 0);
	}
	m->bridges[0] = "pci0000:00";
	m->n.pci = (struct pp_pci){.dev = m->dev,
				   .n = N_DEV,
				   .bridges = m->bridges,
				   .n_bridges = 1,
				   .online_nodes = 1};
	m->gpu = pp_object_add(f, PP_GPU, "0000:03:00.0");
	m->gpu->pci = GPU;
	m->hca = pp_object_add(f, PP_HCA, "0000:04:00.0");
	m->hca->pci = HCA;
	m->hca->name = "mlx5_0";
	m->pair = pp_object_add(f, PP_PAIR, "0000:03:00.0/0000:04:00.0");
	m->pair->parent = m->gpu;
	m->pair->peer = m->hca;
	pp_fact_int(f, m->n.self, PP_F_N_GPUS, 1, NULL);
	pp_fact_int(f, m->n.self, PP_F_N_HCAS, 1, NULL);
	pp_fact_int(f, m->gpu, PP_F_GPU_INDEX, 0, NULL);
	pp_fact_str(f, m->gpu, PP_F_GPU_UUID, "GPU-1", NULL);
	pp_fact_str(f, m->gpu, PP_F_GPU_IOMMU, "identity", NULL);
	pp_fact_str(f, m->hca, PP_F_HCA_IOMMU, "identity", NULL);
	pp_fact_str(f, m->pair, PP_F_PAIR_DISTANCE, "PIX", NULL);
	pp_fact_bool(f, m->pair, PP_F_PAIR_RAIL, true, NULL);
	pp_fact_bool(f, m->pair, PP_F_PAIR_ACS_REDIRECT, false, NULL);
	return m;
}

static void machine_free(struct machine *m)
{
	pp_arena_done(&m->n.arena);
	free(m);
}

/* Worst verdict of the layout; when @what is not NULL, that row must be there and have it. */
static enum pp_verdict judge(const struct machine *m, const char *text, const char *what)
{
	struct pp_arena a = PP_ARENA((size_t)4 << 20);
	enum pp_verdict worst = PP_PASS;
	struct pp_layout_rows rows = {0};
	struct pp_error err = {0};
	struct pp_layout *l;
	bool seen = !what;

	if (pp_layout_parse("f", text, strlen(text), &l, &err))
		fail_msg("%s", err.text);
	assert_int_equal(pp_layout_compare(l, &m->n, &a, &rows), 0);
	assert_true(rows.n > 0);
	for (unsigned int i = 0; i < rows.n; i++) {
		worst = pp_verdict_worst(worst, rows.row[i].verdict);
		seen |= what && !strcmp(rows.row[i].what, what) && rows.row[i].verdict != PP_PASS;
	}
	if (!seen)
		fail_msg("no row '%s'", what);
	pp_layout_free(l);
	pp_arena_done(&a);
	return worst;
}

#define RAIL "[rail r]\ngpu=0\nhca=mlx5_0\ndistance=PIX\n"

static void test_equal(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	assert_int_equal(judge(m,
			       "[node]\ngpus=1\nhcas=1\nnuma_nodes=1\n" RAIL
			       "[link 04:00.0]\nwidth=x16\nspeed=32GT/s\n"
			       "[iommu]\ntype=identity\n[acs]\nredirect=no\n",
			       NULL),
			 PP_PASS);
	assert_int_equal(judge(m, "[rail r]\ngpu=GPU-1\nhca=04:00.0\ndistance=<=PXB\n", NULL),
			 PP_PASS);
	assert_int_equal(judge(m, "[rail r]\ngpu=03:00.0\nhca=mlx5_0\ndistance=nearest\n", NULL),
			 PP_PASS);
	/* An idle GPU lowers its speed by design. */
	m->dev[GPU].speed_mts = 2500;
	assert_int_equal(judge(m, "[link 03:00.0]\nspeed=32GT/s\n", NULL), PP_PASS);
	machine_free(m);
}

static void test_different(void **state)
{
	struct machine *m = machine_new();
	struct pp_facts *f = &m->n.facts;

	(void)state;
	assert_int_equal(judge(m, "[node]\ngpus=2\n", "GPUs"), PP_DEGRADED);
	assert_int_equal(judge(m, "[rail r]\ngpu=0\nhca=mlx5_7\n", "rail r: hca"), PP_DEGRADED);
	assert_int_equal(judge(m, "[rail r]\ngpu=7\nhca=mlx5_0\n", "rail r: GPU"), PP_DEGRADED);
	assert_int_equal(
		judge(m, "[rail r]\ngpu=0\nhca=mlx5_0\ndistance=PXB\n", "rail r: distance"),
		PP_DEGRADED);
	assert_int_equal(judge(m, "[link 09:00.0]\nwidth=16\n", "link 09:00.0"), PP_DEGRADED);
	m->dev[HCA].width = 8;
	assert_int_equal(judge(m, "[link 04:00.0]\nwidth=16\n", "link 04:00.0: lanes"),
			 PP_DEGRADED);
	assert_int_equal(judge(m, "[iommu]\ntype=DMA\n", "IOMMU type of 0000:03:00.0"),
			 PP_DEGRADED);
	pp_fact_bool(f, m->pair, PP_F_PAIR_ACS_REDIRECT, true, NULL);
	assert_int_equal(judge(m, "[acs]\nredirect=no\n", "ACS redirect, GPU 0000:03:00.0"),
			 PP_DEGRADED);
	/* A rail of a GPU that the plan does not name. */
	assert_int_equal(judge(m, "[rail r]\ngpu=7\nhca=mlx5_0\n", "GPU 0000:03:00.0"),
			 PP_DEGRADED);
	pp_fact_bool(f, m->pair, PP_F_PAIR_RAIL, false, NULL);
	assert_int_equal(judge(m, RAIL, "rail r: hca"), PP_DEGRADED);
	machine_free(m);
}

static void test_unknown(void **state)
{
	struct machine *m = machine_new();
	struct pp_facts *f = &m->n.facts;

	(void)state;
	pp_fact_unknown(f, m->n.self, PP_F_N_GPUS, NULL, "permission denied");
	assert_int_equal(judge(m, "[node]\ngpus=1\n", "GPUs"), PP_UNKNOWN);
	pp_fact_unknown(f, m->gpu, PP_F_GPU_INDEX, NULL, "no NVML");
	assert_int_equal(judge(m, RAIL, "rail r: GPU"), PP_UNKNOWN);
	pp_fact_unknown(f, m->pair, PP_F_PAIR_RAIL, NULL, "no tree");
	assert_int_equal(judge(m, "[rail r]\ngpu=03:00.0\nhca=mlx5_0\n", "rail r: hca"),
			 PP_UNKNOWN);
	pp_fact_unknown(f, m->pair, PP_F_PAIR_ACS_REDIRECT, NULL, "short config");
	assert_int_equal(judge(m, "[acs]\nredirect=no\n", NULL), PP_UNKNOWN);
	pp_fact_unknown(f, m->hca, PP_F_HCA_IOMMU, NULL, "absent");
	assert_int_equal(judge(m, "[iommu]\ntype=identity\n", "IOMMU type of 0000:04:00.0"),
			 PP_UNKNOWN);
	m->dev[HCA].width = -1;
	assert_int_equal(judge(m, "[link 04:00.0]\nwidth=16\n", "link 04:00.0: lanes"), PP_UNKNOWN);
	m->dev[HCA].host_bridge = -1;
	m->dev[HCA].parent = -1;
	assert_int_equal(
		judge(m, "[rail r]\ngpu=03:00.0\nhca=mlx5_0\ndistance=PIX\n", "rail r: distance"),
		PP_UNKNOWN);
	m->n.pci.why = "permission denied";
	assert_int_equal(judge(m, "[link 09:00.0]\nwidth=16\n", "link 09:00.0"), PP_UNKNOWN);
	machine_free(m);
}

/* What is written of a machine is met by that machine. */
static void test_written(void **state)
{
	struct machine *m = machine_new();
	struct pp_buf text = PP_BUF(65536);

	(void)state;
	pp_layout_write(&m->n, &text);
	assert_int_equal(text.failed, 0);
	assert_non_null(strstr(text.data, "distance = PIX\n"));
	assert_non_null(strstr(text.data, "speed = 32.0GT/s\n"));
	assert_int_equal(judge(m, text.data, NULL), PP_PASS);
	m->dev[HCA].width = 8;
	assert_int_equal(judge(m, text.data, NULL), PP_DEGRADED);
	pp_buf_done(&text);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_equal),
		cmocka_unit_test(test_different), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_written),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
