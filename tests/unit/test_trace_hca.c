/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of hcas beside their names: mlx5's data-direct function (a PCI function of
 * Mellanox's that mlx5_ib itself is bound to: drivers/infiniband/hw/mlx5/data_direct.c), and EFA's
 * line in the kernel log (amzn-drivers, efa_p2p.c), whose absence proves nothing by itself.
 */
#include "rdma_tree.h"

#include "trace/efa.h"

#define DIRECT "/sys/bus/pci/drivers/mlx5_ib/"

static struct pp_source *open_source(struct pp_record *r)
{
	struct pp_source *s;
	struct pp_error err;

	assert_int_equal(pp_source_replay_record(r, &s, &err), 0);
	return s;
}

static void is_direct(struct pp_record *r, const char *wanted)
{
	struct pp_source *s = open_source(r);
	struct pp_trace_hcas h;

	assert_int_equal(pp_trace_hcas_read(s, &h), 0);
	assert_true(h.n >= 1);
	assert_string_equal(h.item[0].name, "mlx5_0");
	assert_string_equal(h.item[0].data_direct, wanted);
	pp_trace_hcas_done(&h);
	pp_source_free(s);
}

static struct pp_record *with_direct(void)
{
	struct pp_record *r = rt_roce();

	rt_link(r, DIRECT "0000:02:00.0", "/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0");
	rt_link(r, RT_DEV "/device", RT_PCI);
	rt_file(r, DIRECT "bind", "");
	rt_link(r, DIRECT "module", "/sys/module/mlx5_ib");
	return r;
}

static void test_data_direct(void **state)
{
	struct pp_record *r;

	(void)state;
	is_direct(rt_roce(), "");
	is_direct(with_direct(), "0000:02:00.0");
	r = with_direct(); /* two functions: which of them is the hca's is not said */
	rt_link(r, DIRECT "0000:03:00.0", "/sys/devices/pci0000:00/0000:00:03.0/0000:03:00.0");
	is_direct(r, "");
	r = with_direct(); /* two hcas: whose the function is is not said */
	rt_link(r, "/sys/class/infiniband/mlx5_1", RT_ROOT "/0000:01:00.1/infiniband/mlx5_1");
	rt_dir(r, RT_ROOT "/0000:01:00.1/infiniband/mlx5_1");
	rt_link(r, RT_ROOT "/0000:01:00.1/infiniband/mlx5_1/device", RT_ROOT "/0000:01:00.1");
	rt_function(r, RT_ROOT "/0000:01:00.1", "mlx5_core");
	is_direct(r, "");
}

static enum pp_tristate logged(const char *driver, const char *kmsg, const char **ret_why)
{
	struct pp_trace_hca hca = {.name = "rdmap16s27", .driver = driver};
	struct pp_trace_hcas hcas = {.item = &hca, .n = 1};
	struct pp_record *r = rt_new();
	enum pp_tristate said;
	struct pp_source *s;

	if (kmsg)
		rt_answer(r, "kmsg", kmsg);
	s = open_source(r);
	assert_int_equal(pp_efa_ask(s, &hcas, &said, ret_why), 0);
	pp_source_free(s);
	return said;
}

#define LOG(first, records)                                                       \
	"{\"first\":" first ",\"last\":900,\"overwritten\":false,\"whole\":true," \
	"\"matched\":1,\"records\":[" records "]}"
#define ACQUIRED "\"6,120,5000000,-;efa: Acquired peer memory using P2P\\n\""

static void test_efa(void **state)
{
	const char *why;

	(void)state;
	assert_int_equal(logged("efa", LOG("0", ACQUIRED), &why), PP_YES);
	assert_null(why);
	assert_int_equal(logged("efa", LOG("17", ACQUIRED), &why), PP_YES);
	assert_int_equal(logged("mlx5_core", LOG("0", ACQUIRED), &why), PP_UNSAID);
	assert_null(why); /* not asked */
	assert_int_equal(logged("efa", LOG("0", "\"6,1,5,-;efa: probe\\n\""), &why), PP_NO);
	assert_string_equal(why, "the kernel log does not say it");
	assert_int_equal(logged("efa", LOG("17", "\"6,18,5,-;efa: probe\\n\""), &why), PP_UNSAID);
	assert_string_equal(why, "older messages were overwritten");
	assert_int_equal(logged("efa", NULL, &why), PP_UNSAID);
	assert_string_equal(why, "the kernel log was not read");
	/* a program may write what it likes to the log: with its own facility */
	assert_int_equal(
		logged("efa",
		       LOG("0", "\"14,120,5000000,-;efa: Acquired peer memory using P2P\\n\""),
		       &why),
		PP_NO);
	assert_int_equal(
		logged("efa", LOG("0", "\"6,120,5,-;NVRM: efa: Acquired peer memory\""), &why),
		PP_NO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_direct),
		cmocka_unit_test(test_efa),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
