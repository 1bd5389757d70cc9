/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCI tree: words as the kernel writes them (drivers/pci/pci-sysfs.c), config space by the
 * PCI Express specification and by bytes of a real guest, and trees that lie.
 */
#include "made_tree.h"

#include <errno.h>

#include "node/numa.h"
#include "node/pci_attributes.h"
#include "node/pci_config.h"

static void test_words(void **state)
{
	char text[24];

	(void)state;
	assert_int_equal(pp_pci_speed_parse("2.5 GT/s PCIe"), 2500);
	assert_int_equal(pp_pci_speed_parse("5 GT/s"), 5000); /* kernels up to 5.6 */
	assert_int_equal(pp_pci_speed_parse("32.0 GT/s PCIe"), 32000);
	assert_int_equal(pp_pci_speed_parse("64.0 GT/s PCIe"), 64000);
	assert_int_equal(pp_pci_speed_parse("Unknown"), -1);
	assert_int_equal(pp_pci_speed_parse("Unknown speed"), -1);
	assert_int_equal(pp_pci_speed_parse(""), -1);
	assert_int_equal(pp_pci_speed_parse("99999999999999999999 GT/s"), -1);
	assert_int_equal(pp_pci_speed_parse("16.0"), -1);
	assert_int_equal(pp_pci_width_parse("16"), 16);
	assert_int_equal(pp_pci_width_parse("32"), 32);
	assert_int_equal(pp_pci_width_parse("0"), -1);
	assert_int_equal(pp_pci_width_parse("63"), -1);
	assert_int_equal(pp_pci_width_parse("255"), -1);
	assert_int_equal(pp_pci_width_parse("x16"), -1);
	assert_string_equal(pp_acs_bits(0x1d, text, sizeof(text)), "SV+RR+CR+UF");
	assert_string_equal(pp_acs_bits(0x7f, text, sizeof(text)), "SV+TB+RR+CR+UF+EC+DT");
	assert_string_equal(pp_acs_bits(0, text, sizeof(text)), "0");
}

/* The specification's line rates after coding; x16 Gen4 is what bandwidth tests are held against.
 */
static void test_bandwidth(void **state)
{
	(void)state;
	assert_true(pp_pci_bandwidth(2500, 1) == 0.25);
	assert_true(pp_pci_bandwidth(5000, 4) == 2.0);
	assert_int_equal((int)(pp_pci_bandwidth(8000, 16) * 1000), 15753);
	assert_int_equal((int)(pp_pci_bandwidth(16000, 16) * 1000), 31507);
	assert_int_equal((int)(pp_pci_bandwidth(32000, 16) * 1000), 63015);
	assert_int_equal((int)(pp_pci_bandwidth(64000, 16) * 1000), 118000);
	assert_true(pp_pci_bandwidth(-1, 16) == 0);
	assert_true(pp_pci_bandwidth(16000, -1) == 0);
}

/* Root port of an emulated machine (pcie-root-port under intel_iommu=on), as lspci -xxxx showed it.
 */
static const struct {
	unsigned int at;
	uint8_t bytes[16];
} root_port[] = {
	{0x00, {0x36, 0x1b, 0x0c, 0x00, 0x07, 0x05, 0x10, 0x00, 0, 0, 0x04, 0x06, 0, 0, 0x01, 0}},
	{0x30, {0, 0, 0, 0, 0x54, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x01, 0x02, 0}},
	{0x40, {0x0d, 0, 0, 0, 0x36, 0x1b, 0, 0, 0x11, 0x40, 0, 0x80, 0, 0, 0, 0}},
	{0x50, {0, 0x08, 0, 0, 0x10, 0x48, 0x42, 0x01, 0, 0x80, 0, 0, 0x0f, 0, 0, 0}},
	{0x60, {0x04, 0x06, 0x30, 0, 0, 0, 0x11, 0, 0x7b, 0, 0x2a, 0, 0xc0, 0x01, 0, 0}},
	{0x80, {0x1e, 0, 0, 0, 0x04}},
	{0x100, {0x01, 0, 0x82, 0x14}},
	{0x140, {0, 0, 0, 0, 0, 0, 0, 0, 0x0d, 0, 0x01, 0, 0x5f, 0, 0x1d, 0}},
};

static void test_config(void **state)
{
	uint8_t config[PP_CONFIG_BYTES] = {0};
	struct pp_pci_dev d = {.port_type = -1};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(root_port); i++)
		memcpy(config + root_port[i].at, root_port[i].bytes, 16);
	pp_pci_decode(&d, config, sizeof(config));
	assert_int_equal(d.vendor, 0x1b36);
	assert_int_equal(d.device, 0x000c);
	assert_int_equal(d.class_code, 0x060400);
	assert_int_equal(d.subsystem_vendor, 0x1b36);
	assert_int_equal(d.port_type, PP_PORT_ROOT);
	assert_int_equal(d.acs_state, PP_ACS_KNOWN);
	assert_int_equal(d.acs_cap, 0x5f);
	assert_int_equal(d.acs_ctl, 0x1d);
	/* The guest's own files said: current 2.5 GT/s x1, max 16.0 GT/s x32. */
	assert_int_equal(d.speed_mts, 2500);
	assert_int_equal(d.width, 1);
	assert_int_equal(d.max_speed_mts, 16000);
	assert_int_equal(d.max_width, 32);
}

/* Short is unreadable, never "off": the first bytes are all that an unprivileged reader gets. */
static void test_config_short(void **state)
{
	static const size_t lengths[] = {0, 1, 63, 64, 255, 256, 4095};
	uint8_t config[PP_CONFIG_BYTES] = {0};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(root_port); i++)
		memcpy(config + root_port[i].at, root_port[i].bytes, 16);
	for (size_t i = 0; i < PP_ARRAY_LEN(lengths); i++) {
		struct pp_pci_dev d = {.port_type = -1, .ats = -1};

		pp_pci_decode(&d, config, lengths[i]);
		assert_int_equal(d.acs_state, PP_ACS_UNREADABLE);
		assert_int_equal(pp_pci_ext_cap(config, lengths[i], 0x0d), -1);
		assert_int_equal(d.vendor, lengths[i] < 64 ? 0 : 0x1b36);
		assert_int_equal(d.port_type, lengths[i] < 256 - 1 ? -1 : PP_PORT_ROOT);
	}
}

static void test_config_hostile(void **state)
{
	uint8_t c[PP_CONFIG_BYTES];
	struct pp_pci_dev d = {.port_type = -1, .ats = -1, .is_virtual = -1};

	(void)state;
	memset(c, 0xff, sizeof(c)); /* a function that fell off the bus */
	pp_pci_decode(&d, c, sizeof(c));
	assert_int_equal(d.ats, -1);
	assert_int_equal(d.is_virtual, -1);
	c[0x100] = c[0x101] = c[0x102] = c[0x103] = 0; /* no list that such a function has */
	pp_pci_decode(&d, c, sizeof(c));
	assert_int_equal(d.ats, -1);
	assert_int_equal(d.acs_state, PP_ACS_UNREADABLE);
	assert_int_equal(d.vendor, 0);
	assert_int_equal(d.port_type, -1);
	memset(c, 0, sizeof(c));
	c[6] = 0x10;
	c[0x34] = 0x40;
	c[0x41] = 0x40; /* a list that bites its tail */
	assert_int_equal(pp_pci_cap(c, sizeof(c), 0x10), -1);
	c[0x100] = 0x01;
	c[0x103] = 0x10; /* next: 0x100 */
	assert_int_equal(pp_pci_ext_cap(c, sizeof(c), 0x0d), -1);
	c[0x103] = 0xff;
	c[0x102] = 0xc0; /* next: 0xffc, the last four bytes */
	c[0xffc] = 0x0d;
	assert_int_equal(pp_pci_ext_cap(c, sizeof(c), 0x0d), 0xffc);
	d = (struct pp_pci_dev){0};
	pp_pci_decode(&d, c, sizeof(c)); /* the capability itself would lie outside */
	assert_int_equal(d.acs_state, PP_ACS_UNREADABLE);
	c[6] = 0;
	assert_int_equal(pp_pci_cap(c, sizeof(c), 0x10), 0);
}

/* Lines of a resource file: start, end, flags (include/linux/ioport.h). */
static void test_resource(void **state)
{
	static const char gpu[] = "0x00000000f8000000 0x00000000f8ffffff 0x0000000000040200\n"
				  "0x000003f000000000 0x000003ffffffffff 0x000000000014220c\n"
				  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
				  "0x0000040000000000 0x0000040001ffffff 0x000000000014220c\n";

	(void)state;
	assert_true(pp_pci_largest_bar(gpu) == (uint64_t)64 << 30);
	assert_true(pp_pci_largest_bar("") == 0);
	assert_true(pp_pci_largest_bar("0x0 0xffffffffffffffff 0x2200\n") == 0);
	assert_true(pp_pci_largest_bar("garbage\n") == 0);
}

static void test_ranges(void **state)
{
	struct pp_range r[4];

	(void)state;
	assert_int_equal(pp_range_parse("0-31,64-95", r, 4), 2);
	assert_int_equal(r[1].first, 64);
	assert_int_equal(r[1].last, 95);
	assert_int_equal(pp_range_parse("", r, 4), 0);
	assert_int_equal(pp_range_parse("3-1", r, 4), -EINVAL);
	assert_int_equal(pp_range_parse("1,2,3,4,5", r, 4), -EINVAL);
	assert_int_equal(pp_range_parse("0-", r, 4), -EINVAL);
	assert_int_equal(pp_range_parse("x", r, 4), -EINVAL);
}

/* Names that real machines have: 32-bit domains (VMD), host bridges below platform devices. */
static void test_odd_machines(void **state)
{
	struct made m = made_new(1, 1);
	const struct pp_pci *pci;

	(void)state;
	made_function(&m, "pci0000:d7/0000:d7:05.5", "0x010400 0x8086 0x28c0", 0);
	made_function(&m, "pci0000:d7/0000:d7:05.5/pci10000:00/10000:00:02.0", MADE_BRIDGE, 0);
	made_function(&m, "pci0000:d7/0000:d7:05.5/pci10000:00/10000:00:02.0/10000:01:00.0",
		      "0x010802 0x8086 0x0a54", 0);
	made_function(&m, "platform/soc/2600000.pcie/pci0001:00/0001:00:00.0", MADE_BRIDGE, 0);
	pci = made_collect(&m);
	assert_int_equal(pci->n, 4);
	assert_int_equal(pci->unreadable, 0);
	assert_int_equal(pci->n_bridges, 3);
	assert_string_equal(pci->bridges[pci->dev[made_at(&m, "0001:00:00.0")].host_bridge],
			    "platform/soc/2600000.pcie/pci0001:00");
	assert_int_equal(pci->dev[made_at(&m, "10000:01:00.0")].parent,
			 made_at(&m, "10000:00:02.0"));
	assert_int_equal(pci->dev[made_at(&m, "10000:01:00.0")].depth, 1);
	made_done(&m);
}

/* Trees that contradict themselves: functions stay listed, without a place, and are counted. */
static void test_lying_trees(void **state)
{
	struct made m = made_new(1, 1);
	char deep[PP_PATH_MAX] = "pci0000:00", name[32];
	const struct pp_pci *pci;
	const struct pp_fact *odd;

	(void)state;
	/* each is the other's bridge */
	made_function(&m, "pci0000:00/0000:02:00.0/0000:03:00.0", MADE_GPU, 0);
	made_function(&m, "pci0000:00/0000:03:00.0/0000:02:00.0", MADE_BRIDGE, 0);
	/* an address twice in one path */
	made_function(&m, "pci0000:00/0000:04:00.0/0000:05:00.0/0000:04:00.0", MADE_NIC, 0);
	/* a link that leads nowhere, one to another function, and no address at all */
	made_link(&m, "/sys/bus/pci/devices/0000:06:00.0", "../../../devices/nowhere");
	made_link(&m, "/sys/bus/pci/devices/0000:07:00.0",
		  "../../../devices/pci0000:00/0000:08:00.0");
	made_link(&m, "/sys/bus/pci/devices/uevent", "uevent");
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "/0000:%02x:00.0", 0x40 + i);
		assert_true(strlen(deep) + strlen(name) < sizeof(deep));
		memcpy(deep + strlen(deep), name, strlen(name) + 1);
	}
	made_function(&m, deep, MADE_NIC, 0);
	pci = made_collect(&m);
	assert_true(made_at(&m, "0000:03:00.0") >= 0);
	assert_true(made_at(&m, "0000:06:00.0") >= 0);
	assert_int_equal(pci->dev[made_at(&m, "0000:03:00.0")].host_bridge, -1);
	assert_int_equal(pci->dev[made_at(&m, "0000:04:00.0")].host_bridge, -1);
	assert_int_equal(pci->dev[made_at(&m, "0000:67:00.0")].host_bridge, -1);
	assert_true(pci->unreadable >= 5);
	odd = pp_fact_get(m.node->self, PP_F_PCI_ODD);
	assert_true(odd && odd->known && odd->list[0]);
	made_done(&m);
}

/* The bus does not list the bridge, but the path names it: the tree is whole all the same. */
static void test_missing_bridge(void **state)
{
	struct made m = made_new(1, 1);
	const struct pp_pci *pci;
	int gpu;

	(void)state;
	made_function(&m, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
		      MADE_GPU, 0);
	pci = made_collect(&m);
	assert_int_equal(pci->n, 4);
	gpu = made_at(&m, "0000:03:00.0");
	assert_int_equal(pci->dev[gpu].depth, 3);
	assert_int_equal(pci->dev[gpu].parent, made_at(&m, "0000:02:00.0"));
	assert_true(pci->dev[gpu].host_bridge >= 0);
	assert_int_equal(pci->unreadable, 3);
	made_done(&m);
}

/* No bus directory at all: the device tree is walked. A bus of real directories has no places. */
static void test_without_bus(void **state)
{
	struct made m = {0};
	const struct pp_pci *pci;

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &m.record), 0);
	made_text(&m, "/sys/devices/pci0000:00/0000:00:01.0/class", "0x060400");
	made_text(&m, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/class", "0x030200");
	made_text(&m, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/vendor", "0x10de");
	made_text(&m, "/sys/devices/platform/a.pcie/pci0001:00/0001:00:00.0/class", "0x060400");
	pci = made_collect(&m);
	assert_int_equal(pci->n, 3);
	assert_null(pci->why);
	assert_int_equal(m.node->facts.count[PP_GPU], 1);
	made_done(&m);

	assert_int_equal(pp_record_new((size_t)1 << 20, &m.record), 0);
	m.node = NULL;
	m.src = NULL;
	made_text(&m, "/sys/bus/pci/devices/0006:00:00.0/class", "0x030200");
	made_text(&m, "/sys/bus/pci/devices/0006:00:00.0/vendor", "0x10de");
	pci = made_collect(&m);
	assert_int_equal(pci->n, 1);
	assert_int_equal(pci->dev[0].host_bridge, -1);
	assert_int_equal(m.node->facts.count[PP_GPU], 1);
	made_done(&m);

	assert_int_equal(pp_record_new((size_t)1 << 20, &m.record), 0);
	m.node = NULL;
	m.src = NULL;
	made_text(&m, "/proc/version", "Linux");
	pci = made_collect(&m);
	assert_non_null(pci->why);
	assert_false(pp_fact_get(m.node->self, PP_F_N_GPUS)->known);
	made_done(&m);
}

/* A VF's ids read ffff in config space (SR-IOV 9.3.4.1.1); sysfs has them, and the PF. */
static void test_virtual_function(void **state)
{
	struct made m = made_new(1, 1);
	uint8_t config[PP_CONFIG_BYTES] = {0xff, 0xff, 0xff, 0xff};
	const struct pp_pci_dev *d;

	(void)state;
	made_function(&m, "pci0000:00/0000:00:01.0", MADE_BRIDGE, 0);
	made_function(&m, "pci0000:00/0000:00:01.0/0000:01:00.0", MADE_NIC, 0);
	made_function(&m, "pci0000:00/0000:00:01.0/0000:01:00.1", "0x020000 0x15b3 0x101e", 0);
	made_put(&m, made_path("pci0000:00/0000:00:01.0/0000:01:00.1", "config"), config,
		 sizeof(config));
	made_link(&m, made_path("pci0000:00/0000:00:01.0/0000:01:00.1", "physfn"),
		  "../0000:01:00.0");
	/* the link to the PF is gone: the ids still tell */
	made_function(&m, "pci0000:00/0000:00:01.0/0000:01:00.2", "0x020000 0x15b3 0x101e", 0);
	made_put(&m, made_path("pci0000:00/0000:00:01.0/0000:01:00.2", "config"), config,
		 sizeof(config));
	d = &made_collect(&m)->dev[made_at(&m, "0000:01:00.2")];
	assert_true(d->is_virtual);
	assert_int_equal(d->physfn, -1);
	d = &m.node->pci.dev[made_at(&m, "0000:01:00.1")];
	assert_int_equal(d->vendor, 0x15b3);
	assert_int_equal(d->device, 0x101e);
	assert_true(d->is_virtual);
	assert_int_equal(d->physfn, made_at(&m, "0000:01:00.0"));
	assert_int_equal(m.node->facts.count[PP_HCA], 3);
	made_done(&m);
}

/* Groups: the link is taken away, the group still lists the function. No groups is not unreadable.
 */
static void test_groups(void **state)
{
	struct made m = made_new(1, 1);
	const struct pp_pci *pci;
	const struct pp_pci_dev *d;

	(void)state;
	made_function(&m, "pci0000:00/0000:00:01.0", MADE_GPU, 0);
	made_function(&m, "pci0000:00/0000:00:02.0", MADE_NIC, 0);
	made_text(&m, "/sys/kernel/iommu_groups/7/type", "DMA-FQ");
	made_link(&m, "/sys/kernel/iommu_groups/7/devices/0000:00:01.0", "x");
	pci = made_collect(&m);
	d = &pci->dev[made_at(&m, "0000:00:01.0")];
	assert_int_equal(d->iommu_group, 7);
	assert_string_equal(pp_pci_iommu_type(pci, d), "DMA-FQ");
	assert_string_equal(pp_pci_iommu_type(pci, &pci->dev[made_at(&m, "0000:00:02.0")]), "none");
	assert_true(pp_fact_is(m.node->self, PP_F_IOMMU_ACTIVE));
	made_done(&m);
}

static void test_identity_of_functions(void **state)
{
	static const struct {
		uint32_t class_code;
		uint16_t vendor, device;
		bool gpu, hca, bridge;
	} rows[] = {
		{0x030200, 0x10de, 0x2335, true, false, false},	 /* H200 */
		{0x030000, 0x10de, 0x26b1, true, false, false},	 /* RTX 6000 Ada */
		{0x040300, 0x10de, 0x22ba, false, false, false}, /* its audio */
		{0x068000, 0x10de, 0x22a3, false, false, false}, /* NVSwitch */
		{0x030000, 0x1a03, 0x2000, false, false, false}, /* ASPEED */
		{0x020700, 0x15b3, 0x1021, false, true, false},	 /* ConnectX-7, InfiniBand */
		{0x020000, 0x15b3, 0xa2d6, false, true, false},	 /* BlueField-2 */
		{0x080100, 0x15b3, 0x2100, false, false, false}, /* Data Direct */
		{0x020000, 0x1d0f, 0xefa2, false, true, false},	 /* EFA */
		{0x020000, 0x1d0f, 0xec20, false, false, false}, /* ENA */
		{0x020700, 0x1077, 0x7322, false, true, false},	 /* another vendor's InfiniBand */
		{0x060400, 0x15b3, 0x1979, false, false, true},	 /* ConnectX-7 bridge */
		{0x060000, 0x1022, 0x14a4, false, false, false}, /* host bridge */
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		const struct pp_pci_dev d = {.class_code = rows[i].class_code,
					     .vendor = rows[i].vendor,
					     .device = rows[i].device};

		assert_int_equal(pp_pci_is_gpu(&d), rows[i].gpu);
		assert_int_equal(pp_pci_is_hca(&d), rows[i].hca);
		assert_int_equal(pp_pci_is_bridge(&d), rows[i].bridge);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	       cmocka_unit_test(test_bandwidth),
		cmocka_unit_test(test_config),	       cmocka_unit_test(test_config_short),
		cmocka_unit_test(test_config_hostile), cmocka_unit_test(test_resource),
		cmocka_unit_test(test_ranges),	       cmocka_unit_test(test_odd_machines),
		cmocka_unit_test(test_lying_trees),    cmocka_unit_test(test_missing_bridge),
		cmocka_unit_test(test_without_bus),    cmocka_unit_test(test_virtual_function),
		cmocka_unit_test(test_groups),	       cmocka_unit_test(test_identity_of_functions),
	};

	return cmocka_run_group_tests_name("pci", tests, NULL, NULL);
}
