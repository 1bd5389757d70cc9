/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses as iproute2 set them in a network namespace of the test's own; path MTUs as
 * iboe_get_mtu() of the kernel's include/rdma/ib_addr.h gives them.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <time.h>

#include "soft/link/host.h"
#include "soft_net.h"

static bool own_net;
static const char *skipped; /* why something was not tried */

static struct soft_gid gid(const char *text)
{
	struct soft_gid ret = {{[10] = 0xff, [11] = 0xff}};

	if (strchr(text, ':'))
		assert_int_equal(inet_pton(AF_INET6, text, ret.raw), 1);
	else
		assert_int_equal(inet_pton(AF_INET, text, ret.raw + 12), 1);
	return ret;
}

static void test_path_mtu(void **state)
{
	assert_int_equal(soft_host_path_mtu(65536), 4096);
	assert_int_equal(soft_host_path_mtu(9000), 4096);
	assert_int_equal(soft_host_path_mtu(4200), 4096);
	assert_int_equal(soft_host_path_mtu(4192), 4096);
	assert_int_equal(soft_host_path_mtu(4191), 2048);
	assert_int_equal(soft_host_path_mtu(1500), 1024);
	assert_int_equal(soft_host_path_mtu(1119), 512);
	assert_int_equal(soft_host_path_mtu(352), 256);
	assert_int_equal(soft_host_path_mtu(351), 0);
	assert_int_equal(soft_host_path_mtu(0), 0);
}

/* Whatever else this machine has, it is consistent. */
static void test_this_machine(void **state)
{
	struct soft_host_address a[64];
	int n = soft_host_addresses(a, 64);

	assert_in_range(n, 0, 64);
	for (int i = 0; i < n; i++) {
		assert_int_equal(if_nametoindex(a[i].netdev), a[i].ifindex);
		assert_true(a[i].netdev_mtu >= 68); /* least of IPv4 */
		assert_false(a[i].gid.raw[0] == 0xfe && (a[i].gid.raw[1] & 0xc0) == 0x80);
	}
	assert_int_equal(soft_host_addresses(a, 0), 0);
	if (n > 1)
		assert_int_equal(soft_host_addresses(a, 1), 1);
}

static bool set_up(void)
{
	static const char *const commands[][16] = {
		{"ip", "link", "add", "here", "address", "02:00:00:00:00:77", "mtu", "4200", "type",
		 "veth", "peer", "name", "there"},
		{"ip", "link", "set", "here", "up"},
		{"ip", "link", "set", "there", "up"},
		{"ip", "addr", "add", "192.0.2.1/24", "dev", "here"},
		{"ip", "addr", "add", "192.0.2.2/24", "dev", "here"}, /* secondary */
		{"ip", "addr", "add", "169.254.9.9/16", "scope", "link", "dev", "here"},
		{"ip", "-6", "addr", "add", "2001:db8::1/64", "dev", "here", "nodad"},
		{"ip", "-6", "addr", "add", "2001:db8::2/64", "dev", "here", "nodad",
		 "preferred_lft", "0"}, /* deprecated */
		{"ip", "addr", "add", "198.51.100.7", "peer", "198.51.100.8", "dev", "there"},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (net_run(commands[i]) != 0)
			return false;
	return true;
}

static void assert_address(const struct soft_host_address *a, const char *netdev, const char *text)
{
	struct soft_gid want = gid(text);

	assert_string_equal(a->netdev, netdev);
	assert_memory_equal(a->gid.raw, want.raw, 16);
	assert_true(a->up);
}

static bool all_up(const struct soft_host_address *a, int n)
{
	for (int i = 0; i < n; i++)
		if (!a[i].up)
			return false;
	return n == 6;
}

static bool here_down(const struct soft_host_address *a, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(a[i].netdev, "here") && a[i].up)
			return false;
	return true;
}

/*
 * The kernel's linkwatch tells a link's carrier, on which an IPv6 address waits, some time after
 * the command that changed it: reads until @reached, or for ten seconds and the caller fails.
 */
static int addresses_once(struct soft_host_address a[16],
			  bool (*reached)(const struct soft_host_address *a, int n))
{
	time_t deadline = time(NULL) + 10;
	int n;

	do
		n = soft_host_addresses(a, 16);
	while (!reached(a, n) && time(NULL) < deadline && poll(NULL, 0, 1) == 0);
	return n;
}

static void test_made_addresses(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x77}, none[6];
	struct soft_host_address a[16];
	int n, first;

	if (!own_net || !set_up()) {
		skipped = "made addresses: no network namespace, no veth, or no iproute2";
		skip();
	}
	n = addresses_once(a, all_up);
	assert_int_equal(n, 6);
	assert_address(&a[0], "lo", "127.0.0.1");
	assert_address(&a[1], "lo", "::1");
	assert_true(a[0].loopback && a[1].loopback);
	assert_int_equal(a[0].netdev_mtu, 65536);
	assert_memory_equal(a[0].mac, none, 6);
	/* The kernel numbers the peer of a veth first. */
	first = strcmp(a[2].netdev, "there") == 0 ? 3 : 2;
	assert_address(&a[first], "here", "192.0.2.1");
	assert_address(&a[first + 1], "here", "192.0.2.2");
	assert_address(&a[first + 2], "here", "2001:db8::1");
	assert_int_equal(a[first].netdev_mtu, 4200);
	assert_false(a[first].loopback);
	assert_memory_equal(a[first].mac, mac, 6);
	/* Our end of a point-to-point address, not the other one. */
	assert_address(&a[first == 3 ? 2 : 5], "there", "198.51.100.7");
	assert_int_equal(NET_RUN("ip", "link", "set", "there", "down"), 0);
	n = addresses_once(a, here_down);
	assert_true(n > first);
	assert_false(a[first].up); /* no carrier */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path_mtu),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_made_addresses),
	};

	int rc;

	own_net = net_own() == 0;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (rc == 0 && skipped) {
		printf("skipped: %s\n", skipped);
		return 77;
	}
	return rc;
}
