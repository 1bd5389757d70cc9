/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule against what nvidia-smi printed or a vendor published, one small tree each, so that
 * distances are tested where no recorded machine is at hand.
 */
#include "made_tree.h"

#include "node/distance.h"

static void assert_cell(const struct made *m, const char *a, const char *b, const char *cell)
{
	int ia = made_at(m, a), ib = made_at(m, b);

	assert_true(ia >= 0 && ib >= 0);
	assert_string_equal(pp_distance_name(pp_distance(&m->node->pci, ia, ib)), cell);
	assert_string_equal(pp_distance_name(pp_distance(&m->node->pci, ib, ia)), cell);
}

/* ASUS ESC8000A-E12 (two EPYC 9004): cells of the public matrix. */
static void test_epyc(void **state)
{
	struct made m = made_new(2, 1);

	(void)state;
	made_function(&m, "pci0000:00/0000:00:01.1", MADE_BRIDGE, 0);
	made_function(&m, "pci0000:00/0000:00:01.1/0000:01:00.0", MADE_GPU, 0);
	made_function(&m, "pci0000:20/0000:20:03.1", MADE_BRIDGE, 0);
	made_function(&m, "pci0000:20/0000:20:03.1/0000:21:00.0", MADE_NIC, 0);
	made_function(&m, "pci0000:20/0000:20:03.1/0000:21:00.1", MADE_NIC, 0);
	made_function(&m, "pci0000:c0/0000:c0:01.1", MADE_BRIDGE, 1);
	made_function(&m, "pci0000:c0/0000:c0:01.1/0000:c1:00.0", MADE_GPU, 1);
	made_collect(&m);
	assert_cell(&m, "0000:01:00.0", "0000:21:00.0", "NODE");
	assert_cell(&m, "0000:01:00.0", "0000:c1:00.0", "SYS");
	assert_cell(&m, "0000:21:00.0", "0000:21:00.1", "PIX");
	assert_cell(&m, "0000:21:00.0", "0000:21:00.0", "X");
	made_done(&m);
}

/* One NUMA node: the kernel says -1, nvidia-smi NODE (Puget WRX90). Two nodes and -1: SYS. */
static void test_no_node(void **state)
{
	(void)state;
	for (unsigned int nodes = 1; nodes <= 2; nodes++) {
		struct made m = made_new(nodes, 1);

		made_function(&m, "pci0000:00/0000:00:01.0", MADE_GPU, -1);
		made_function(&m, "pci0000:80/0000:80:01.0", MADE_NIC, -1);
		made_collect(&m);
		assert_cell(&m, "0000:00:01.0", "0000:80:01.0", nodes == 1 ? "NODE" : "SYS");
		made_done(&m);
	}
}

/* A guest on a flat root bus is all PHB; with replicated switches own pairs are PIX. */
static void test_guest(void **state)
{
	struct made m = made_new(1, 1);

	(void)state;
	made_function(&m, "pci0000:00/0000:00:04.0", MADE_BRIDGE, -1);
	made_function(&m, "pci0000:00/0000:00:04.0/0000:01:00.0", MADE_BRIDGE, -1);
	made_function(&m, "pci0000:00/0000:00:04.0/0000:01:00.0/0000:02:00.0", MADE_BRIDGE, -1);
	made_function(&m, "pci0000:00/0000:00:04.0/0000:01:00.0/0000:02:01.0", MADE_BRIDGE, -1);
	made_function(&m, "pci0000:00/0000:00:04.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
		      MADE_GPU, -1);
	made_function(&m, "pci0000:00/0000:00:04.0/0000:01:00.0/0000:02:01.0/0000:04:00.0",
		      MADE_NIC, -1);
	made_function(&m, "pci0000:00/0000:00:05.0", MADE_BRIDGE, -1);
	made_function(&m, "pci0000:00/0000:00:05.0/0000:05:00.0", MADE_NIC, -1);
	made_collect(&m);
	assert_cell(&m, "0000:03:00.0", "0000:04:00.0", "PIX");
	assert_cell(&m, "0000:03:00.0", "0000:05:00.0", "PHB");
	made_done(&m);
}

/* OCI BM.GPU.H100.8: cascaded switches, own pair PXB as nvidia-smi prints it. */
static void test_cascade(void **state)
{
	static const char top[] = "pci0000:0f/0000:0f:01.0/0000:10:00.0";
	struct made m = made_new(2, 1);
	char path[PP_PATH_MAX];

	(void)state;
	made_function(&m, "pci0000:0f/0000:0f:01.0", MADE_BRIDGE, 0);
	made_function(&m, top, MADE_BRIDGE, 0);
	for (int side = 0; side < 2; side++) {
		(void)snprintf(path, sizeof(path), "%s/0000:11:0%d.0", top, side);
		made_function(&m, path, MADE_BRIDGE, 0);
		(void)snprintf(path, sizeof(path), "%s/0000:11:0%d.0/0000:%d2:00.0", top, side,
			       side + 1);
		made_function(&m, path, MADE_BRIDGE, 0);
		(void)snprintf(path, sizeof(path), "%s/0000:11:0%d.0/0000:%d2:00.0/0000:%d3:00.0",
			       top, side, side + 1, side + 1);
		made_function(&m, path, MADE_BRIDGE, 0);
		(void)snprintf(path, sizeof(path),
			       "%s/0000:11:0%d.0/0000:%d2:00.0/0000:%d3:00.0/0000:%d4:00.0", top,
			       side, side + 1, side + 1, side + 1);
		made_function(&m, path, side ? MADE_NIC : MADE_GPU, 0);
	}
	made_collect(&m);
	assert_cell(&m, "0000:14:00.0", "0000:24:00.0", "PXB");
	made_done(&m);
}

/* What could not be read is unknown, and says so; it is never a class. */
static void test_unknown(void **state)
{
	struct made m = {0};
	const struct pp_pci *pci;

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &m.record), 0);
	made_dir(&m, "/sys/bus/pci/devices");
	made_function(&m, "pci0000:00/0000:00:01.0", MADE_GPU, -1);
	made_function(&m, "pci0000:80/0000:80:01.0", MADE_NIC, -1);
	made_function(&m, "pci0000:90/0000:90:01.0", MADE_NIC, 1);
	made_text(&m, made_path("pci0000:90/0000:90:01.0", "numa_node"), "garbage");
	made_link(&m, "/sys/bus/pci/devices/0000:a0:00.0", "../../../devices/nowhere");
	pci = made_collect(&m);
	assert_int_equal(pci->online_nodes, -1);
	assert_cell(&m, "0000:00:01.0", "0000:80:01.0", "unknown");
	assert_cell(&m, "0000:00:01.0", "0000:90:01.0", "unknown");
	assert_cell(&m, "0000:00:01.0", "0000:a0:00.0", "unknown");
	assert_string_not_equal(
		pp_distance_why(pci, made_at(&m, "0000:00:01.0"), made_at(&m, "0000:a0:00.0")), "");
	assert_int_equal(pp_distance(pci, -1, -1), PP_DISTANCE_UNKNOWN);
	made_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epyc),	cmocka_unit_test(test_no_node),
		cmocka_unit_test(test_guest),	cmocka_unit_test(test_cascade),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests_name("distance", tests, NULL, NULL);
}
