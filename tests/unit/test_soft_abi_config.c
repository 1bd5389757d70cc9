/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices by description and by default. The machine's addresses are made up here; what follows
 * from them (order of GIDs, path MTUs) is checked against what NCCL and the kernel's rdma_rxe need:
 * GID 0 IPv4 and no other; 1500 carries 1024, 4200 and above 4096.
 */
#include "unit.h"

#include <errno.h>
#include <unistd.h>

#include "soft/config/config.h"

static struct soft_host_address host(const char *netdev, unsigned int ifindex, unsigned int mtu,
				     const char *ip)
{
	struct soft_host_address h = {.ifindex = ifindex,
				      .netdev_mtu = mtu,
				      .loopback = !strcmp(netdev, "lo"),
				      .up = true};
	struct soft_config_device d = {0};
	struct pp_error err = {0};

	snprintf(h.netdev, sizeof(h.netdev), "%s", netdev);
	assert_int_equal(soft_config_set(&d, "address", ip, &err), 0);
	h.gid = d.gids[0].gid;
	return h;
}

static struct soft_host_address hosts[8];
static unsigned int num_hosts;

static int set_up(void **state)
{
	(void)state;
	num_hosts = 0;
	hosts[num_hosts++] = host("lo", 1, 65536, "127.0.0.1");
	hosts[num_hosts++] = host("lo", 1, 65536, "::1");
	hosts[num_hosts++] = host("eth0", 2, 1500, "10.0.0.1");
	hosts[num_hosts++] = host("eth0", 2, 1500, "10.0.0.2");
	hosts[num_hosts++] = host("eth0", 2, 1500, "fd00::1");
	hosts[num_hosts++] = host("eth1", 3, 9000, "fd00:1::1");
	return 0;
}

static struct soft_config config;
static struct pp_error err;

static int parse(const char *text)
{
	memset(&config, 0, sizeof(config));
	memset(&err, 0, sizeof(err));
	return soft_config_parse(text, hosts, num_hosts, &config, &err);
}

static const char *gid(unsigned int device, unsigned int index)
{
	static char text[64];

	return soft_config_gid_text(&config.devices[device].gids[index].gid, text, sizeof(text));
}

static void test_default(void **state)
{
	(void)state;
	assert_int_equal(parse(NULL), 0);
	assert_int_equal(config.num_devices, 4);
	assert_string_equal(config.devices[0].name, "soft0");
	assert_int_equal(config.devices[0].num_gids, 2);
	assert_string_equal(gid(0, 0), "10.0.0.1");
	assert_string_equal(gid(0, 1), "fd00::1");
	assert_int_equal(config.devices[0].gids[1].ifindex, 2);
	assert_int_equal(config.devices[0].mtu, 1024);
	/* a further IPv4 address: a device of its own, with nothing else */
	assert_string_equal(config.devices[1].name, "soft1");
	assert_int_equal(config.devices[1].num_gids, 1);
	assert_string_equal(gid(1, 0), "10.0.0.2");
	assert_string_equal(config.devices[2].name, "soft2");
	assert_string_equal(gid(2, 0), "fd00:1::1");
	assert_int_equal(config.devices[2].mtu, 4096);
	/* last, whatever the kernel's order */
	assert_string_equal(config.devices[3].name, "soft_lo");
	assert_string_equal(gid(3, 0), "127.0.0.1");
	assert_string_equal(gid(3, 1), "::1");
	assert_int_equal(config.devices[3].mtu, 4096);
	assert_int_equal(config.devices[3].rate_gbps, 100);
	assert_false(config.devices[3].rate_given);
	assert_int_equal(config.devices[3].vendor_part_id, 0);
}

static void test_all_changes_default(void **state)
{
	(void)state;
	assert_int_equal(parse("vendor_part_id=4119,loss_ppm=100,seed=7"), 0);
	assert_int_equal(config.num_devices, 4);
	for (unsigned int i = 0; i < config.num_devices; i++) {
		assert_int_equal(config.devices[i].vendor_part_id, 4119);
		assert_int_equal(config.devices[i].plan.loss_ppm, 100);
		assert_int_equal(config.devices[i].plan.seed, 7);
	}
}

static void test_inline(void **state)
{
	(void)state;
	assert_int_equal(parse("rate=400 ; name=a, address=::1, address=127.0.0.1, mtu=2048;"
			       "name=b,netdev=eth0,rate=25,vendor_id=0x2c9"),
			 0);
	assert_int_equal(config.num_devices, 2);
	/* IPv4 first, whatever the order of the description */
	assert_string_equal(gid(0, 0), "127.0.0.1");
	assert_string_equal(gid(0, 1), "::1");
	assert_int_equal(config.devices[0].mtu, 2048);
	assert_int_equal(config.devices[0].rate_gbps, 400);
	assert_true(config.devices[0].rate_given);
	assert_false(config.devices[0].gpu_staged);
	assert_string_equal(config.devices[0].netdev, "lo");
	assert_string_equal(config.devices[1].name, "b");
	assert_int_equal(config.devices[1].num_gids, 3);
	assert_string_equal(gid(1, 2), "fd00::1");
	assert_int_equal(config.devices[1].rate_gbps, 25);
	assert_int_equal(config.devices[1].vendor_id, 0x2c9);
}

static void test_same_host_gpu(void **state)
{
	(void)state;
	assert_int_equal(parse("same-host-gpu=staged;name=a,address=::1;name=b,address=127.0.0.1,"
			       "same-host-gpu=direct"),
			 0);
	assert_true(config.devices[0].gpu_staged);
	assert_false(config.devices[1].gpu_staged);
	assert_int_equal(parse("same-host-gpu=no"), -EINVAL);
	assert_int_equal(parse("same-host-gpu="), -EINVAL);
	assert_int_equal(parse("rate=0"), -EINVAL);
	assert_int_equal(parse("rate=1601"), -EINVAL);
}

static void test_file(void **state)
{
	static const char text[] =
		"# two\n[all]\nmtu = 512\n[device x]\naddress = 10.0.0.2\n"
		"[device y]\nnetdev = eth1\nmtu = 4096\nmax_qp = 3\ntrains = no\n";
	char path[] = "/tmp/soft-config-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	assert_int_equal(parse(path), 0);
	unlink(path);
	assert_int_equal(config.num_devices, 2);
	assert_string_equal(config.devices[0].name, "x");
	assert_int_equal(config.devices[0].mtu, 512);
	assert_int_equal(config.devices[1].mtu, 4096);
	assert_int_equal(config.devices[1].limits.max_qp, 3);
	assert_false(config.devices[0].singly);
	assert_true(config.devices[1].singly);
	assert_int_equal(parse("/nonexistent/soft.conf"), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/soft.conf"));
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"name=a", "neither address= nor netdev="},
		{"name=a,address=10.9.9.9", "no address 10.9.9.9"},
		{"name=a,address=300.1.1.1", "not an IPv4 or IPv6 address"},
		{"name=a,netdev=eth7", "no netdev eth7"},
		{"name=a,address=127.0.0.1;name=a,address=::1", "twice"},
		{"name=a,address=127.0.0.1,address=127.0.0.1", "twice"},
		{"name=a/b,address=127.0.0.1", "no device name"},
		{"name=,address=127.0.0.1", "no device name"},
		{"name=a,address=127.0.0.1,mtu=1000", "not 256, 512"},
		{"name=a,address=10.0.0.1,mtu=4096", "does not fit eth0"},
		{"name=a,address=127.0.0.1,part=1", "no key \"part\""},
		{"vendor_prat_id=1", "is it vendor_part_id?"},
		{"loss_ppm=1000001", "not a number from 0 to 1000000"},
		{"loss_ppm=1x", "not a number"},
		{"trains=maybe", "neither yes nor no"},
		{"address=127.0.0.1", "belongs to a device"},
		{"name=a,address=127.0.0.1;mtu=256", "begins with name="},
		{"name=a,address=127.0.0.1,name=b", "name= comes first"},
		{"name=a,address", "has no \"=\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse(wrong[i].text), -EINVAL);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].text, err.text);
		assert_int_equal(config.num_devices, 0);
	}
}

static void test_no_addresses(void **state)
{
	(void)state;
	num_hosts = 0;
	assert_int_equal(parse(NULL), 0);
	assert_int_equal(config.num_devices, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_default, set_up),
		cmocka_unit_test_setup(test_all_changes_default, set_up),
		cmocka_unit_test_setup(test_inline, set_up),
		cmocka_unit_test_setup(test_file, set_up),
		cmocka_unit_test_setup(test_same_host_gpu, set_up),
		cmocka_unit_test_setup(test_refused, set_up),
		cmocka_unit_test_setup(test_no_addresses, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
