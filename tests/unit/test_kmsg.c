/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in the form of the kernel's Documentation/ABI/testing/dev-kmsg; messages as drivers
 * print them. The live log is compared with what dmesg(1) reads of it.
 */
#include "node_replayed.h"

#include <errno.h>

#include "node/kmsg.h"

static void test_documented_records(void **state)
{
	/* The three records of the kernel's own description, DEVICE= of a PCI function added. */
	static const char ACPI[] = "7,160,424069,-;pci_root PNP0A03:00: host bridge window "
				   "[io  0x0000-0x0cf7] (ignored)\n"
				   " SUBSYSTEM=acpi\n"
				   " DEVICE=+acpi:PNP0A03:00\n";
	static const char PCI[] = "4,1201,18446744,-,caller=T77;mlx5_core 0000:3b:00.1: hello\n"
				  " SUBSYSTEM=pci\n"
				  " DEVICE=+pci:0000:3b:00.1\n";
	static const char UDEV[] = "30,340,5690716,-;udevd[80]: starting version 181\n";
	struct pp_kmsg m;

	(void)state;
	assert_int_equal(pp_kmsg_parse(ACPI, strlen(ACPI), &m), 0);
	assert_int_equal(m.sequence, 160);
	assert_int_equal(m.time_us, 424069);
	assert_int_equal(m.level, 7);
	assert_int_equal(m.facility, 0);
	assert_string_equal(m.device, "");
	assert_string_equal(
		m.text, "pci_root PNP0A03:00: host bridge window [io  0x0000-0x0cf7] (ignored)");
	assert_int_equal(pp_kmsg_parse(PCI, strlen(PCI), &m), 0);
	assert_string_equal(m.device, "0000:3b:00.1");
	assert_string_equal(m.text, "mlx5_core 0000:3b:00.1: hello");
	assert_int_equal(pp_kmsg_parse(UDEV, strlen(UDEV), &m), 0);
	assert_int_equal(m.level, 6);
	assert_int_equal(m.facility, 3);
}

static void test_refused_records(void **state)
{
	static const char *const bad[] = {
		"",
		"no head",
		";text",
		"6;text",
		"6,339;text",
		"6,339,x,-;text",
		"-6,339,5,-;text",
		"6,99999999999999999999999,5,-;text",
		"6,1 ,5,-;text",
	};
	char record[2 * PP_KMSG_TEXT];
	struct pp_kmsg m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(pp_kmsg_parse(bad[i], strlen(bad[i]), &m), -EBADMSG);
	/* Cut, and harmless on a terminal. */
	memset(record, 'x', sizeof(record));
	memcpy(record, "6,1,2,-;\x1b[2J", 12);
	assert_int_equal(pp_kmsg_parse(record, sizeof(record), &m), 0);
	assert_int_equal(strlen(m.text), PP_KMSG_TEXT - 1);
	assert_memory_equal(m.text, "?[2Jxx", 6);
}

static void test_families(void **state)
{
	static const struct {
		enum pp_kmsg_family family;
		const char *text;
	} lines[] = {
		{PP_KMSG_XID,
		 "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU "
		 "has fallen off the bus."},
		{PP_KMSG_PEERMEM_ABI, "nvidia_peermem: disagrees about version of symbol "
				      "ib_register_peer_memory_client"},
		{PP_KMSG_PEERMEM_ABI,
		 "nvidia_peermem: Unknown symbol ib_register_peer_memory_client "
		 "(err -22)"},
		{PP_KMSG_PEERMEM,
		 "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid "
		 "context, skipping further processing"},
		{PP_KMSG_DMABUF_REFUSED, "NVRM: dma-buf attach failed: topology not supported for "
					 "mapping type FORCE_PCIE"},
		{PP_KMSG_P2P, "NVRM: nvidia_p2p_get_pages: Invalid argument in nv_p2p_get_pages,"
			      "address or length are not aligned address=0x7f, length=0x1000"},
		{PP_KMSG_P2P, "NVRM: Failed to DMA map MMIO range [0x21c000000000-0x21c000010000]"},
		{PP_KMSG_IOMMU_FAULT,
		 "DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr "
		 "0x21c000000000 [fault reason 0x05] PTE Write access is not "
		 "set"},
		{PP_KMSG_IOMMU_FAULT, "mlx5_core 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT "
				      "domain=0x0021 address=0x7f0000000000 flags=0x0020]"},
		{PP_KMSG_AER, "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Correctable, "
			      "type=Physical Layer, (Receiver ID)"},
		{PP_KMSG_NIC, "infiniband mlx5_0: create_mkey_callback:148:(pid 0): async reg mr "
			      "failed. status -12"},
		{PP_KMSG_NIC, "mlx5_core 0000:3b:00.0: mlx5_cmd_out_err:835:(pid 4711): "
			      "CREATE_MKEY(0x200) op_mod(0x0) failed, status bad "
			      "parameter(0x3), syndrome (0x4a2f0f), err(-22)"},
		{PP_KMSG_P2PDMA, "nvme 0000:01:00.0: ACS redirect is set between the client and "
				 "provider (0000:02:00.0)"},
		{PP_KMSG_OTHER, "NET: Registered protocol family 10"},
		{PP_KMSG_OTHER, "usb 1-1: new high-speed USB device number 2 using xhci_hcd"},
		/* Near misses: the module loads, the DMAR driver starts. */
		{PP_KMSG_OTHER, "nvidia_peermem: module license taints kernel"},
		{PP_KMSG_OTHER, "DMAR: Intel(R) Virtualization Technology for Directed I/O"},
		{PP_KMSG_OTHER, "AMD-Vi: Interrupt remapping enabled"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (pp_kmsg_classify(lines[i].text) != lines[i].family)
			fail_msg("family %d: %s", (int)pp_kmsg_classify(lines[i].text),
				 lines[i].text);
}

static void test_xid(void **state)
{
	static const char *const none[] = {
		"NVRM: Xid (PCI:): 79, x",
		"NVRM: Xid (PCI:0000:3b:00: 79",
		"NVRM: Xid (PCI:0000:3b:00): x79",
		"NVRM: Xid (PCI:0000:3b:00): 99999999999999999999999, x",
		"NVRM: Xid (PCI:00000000000000000000000000000000000:3b:00): 79, x",
		"Xid 79",
	};
	unsigned int number = 0;
	struct pp_bdf bdf;

	(void)state;
	assert_int_equal(
		pp_kmsg_xid("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has "
			    "fallen off the bus.",
			    &number, &bdf),
		0);
	assert_int_equal(number, 79);
	assert_int_equal(bdf.bus, 0x3b);
	/* A domain over 16 bits, as VMD and some virtual machines have. */
	assert_int_equal(pp_kmsg_xid("NVRM: Xid (PCI:10000:e1:00): 31, x", &number, &bdf), 0);
	assert_int_equal(number, 31);
	assert_int_equal(bdf.domain, 0x10000);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(pp_kmsg_xid(none[i], &number, &bdf), -ENOENT);
}

/* A node of which only the kernel log was recorded. */
static struct pp_node *node_with(const char *document)
{
	struct pp_record *record = node_record();

	if (document)
		assert_int_equal(pp_record_put(record, PP_ENTRY_ANSWER, "kmsg", document,
					       strlen(document), 0),
				 0);
	return node_replayed(record);
}

static void test_facts(void **state)
{
	struct pp_node *n =
		node_with("{\"outcome\": \"answered\", \"data\": {\"first\": 0, \"last\": 912, "
			  "\"overwritten\": false, \"whole\": true, \"read\": 913, \"matched\": 4, "
			  "\"records\": ["
			  "\"4,800,1000001,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, x\", "
			  "\"4,801,1000002,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=2, name=b, x\", "
			  "\"4,802,2500000,-;NVRM: Xid (PCI:0000:86:00): 31, pid=2, name=b, x\", "
			  "\"3,803,3000000,-;nvidia_peermem: Unknown symbol "
			  "ib_register_peer_memory_client (err -2)\", \"garbage\", 7]}}");

	(void)state;
	assert_string_equal(node_text(n, PP_F_KMSG_LAST), "912");
	assert_string_equal(node_text(n, PP_F_KMSG_WRAPPED), "no");
	assert_string_equal(node_text(n, PP_F_KMSG_XID), "79 0000:3b:00.0, 31 0000:86:00.0");
	assert_string_equal(node_text(n, PP_F_KMSG_PEERMEM_ABI), "yes");
	assert_string_equal(node_text(n, PP_F_KMSG_IOMMU_FAULTS), "0");
	assert_string_equal(pp_fact_get(n->self, PP_F_KMSG_LINES)->list[2],
			    "[2.500000] NVRM: Xid (PCI:0000:86:00): 31, pid=2, name=b, x");
	node_done(n);
}

static void test_absence_proves_nothing(void **state)
{
	static const struct {
		const char *members;
		bool known;
	} gaps[] = {{"\"whole\": true, \"matched\": 1", true},
		    {"\"whole\": true, \"matched\": 2", false},
		    {"\"whole\": false, \"matched\": 1", false},
		    {"\"matched\": 1", false}};
	struct pp_node *n;
	char answer[1024];

	(void)state;
	/* Overwritten: what is seen counts, what is not seen is unknown. */
	n = node_with("{\"outcome\": \"answered\", \"data\": {\"first\": 500, \"last\": 912, "
		      "\"overwritten\": false, \"matched\": 1, \"records\": ["
		      "\"4,800,1,-;DMAR: [DMA Write] Request device [3b:00.0] fault addr 0 x\"]}}");
	assert_string_equal(node_text(n, PP_F_KMSG_WRAPPED), "yes");
	assert_string_equal(node_text(n, PP_F_KMSG_IOMMU_FAULTS), "1");
	assert_false(pp_fact_get(n->self, PP_F_KMSG_XID)->known);
	assert_false(pp_fact_get(n->self, PP_F_KMSG_PEERMEM_ABI)->known);
	node_done(n);
	/* Not read to its end, as by a record of before that was said; and a message that was cut.
	 */
	for (size_t i = 0; i < PP_ARRAY_LEN(gaps); i++) {
		(void)snprintf(answer, sizeof(answer),
			       "{\"outcome\": \"answered\", \"data\": {\"first\": 0, \"last\": "
			       "912, \"overwritten\": false, %s, \"records\": ["
			       "\"4,800,1,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, x\", "
			       "\"4,801,2,-;DMAR: [DMA Write] Request device [3b:00.0] fau\"]}}",
			       gaps[i].members);
		n = node_with(answer);
		assert_string_equal(node_text(n, PP_F_KMSG_XID), "79 0000:3b:00.0");
		assert_int_equal(pp_fact_get(n->self, PP_F_KMSG_IOMMU_FAULTS)->known,
				 gaps[i].known);
		assert_string_equal(node_text(n, PP_F_KMSG_WRAPPED), "no");
		node_done(n);
	}
	n = node_with("{\"outcome\": \"failed\", \"detail\": \"/dev/kmsg: permission denied\"}");
	assert_string_equal(node_text(n, PP_F_KMSG_XID), "unknown: /dev/kmsg: permission denied");
	assert_false(pp_fact_get(n->self, PP_F_KMSG_WRAPPED)->known);
	node_done(n);
	n = node_with(NULL);
	assert_string_equal(node_text(n, PP_F_KMSG_P2P_ERRORS), "unknown: not in the recording");
	node_done(n);
}

/* The newest record of the live log: /dev/kmsg read by dd, one record a block. */
static void test_live(void **state)
{
	struct pp_source *live;
	struct pp_error err;
	struct pp_node *n;
	long long last = -1;
	FILE *f = popen("dd if=/dev/kmsg iflag=nonblock bs=8193 2>/dev/null | "
			"grep -aE '^[0-9]+,[0-9]+,' | tail -n 1 | cut -d, -f2",
			"r");

	(void)state;
	assert_non_null(f);
	if (fscanf(f, "%lld", &last) != 1 || pclose(f)) {
		print_message("/dev/kmsg cannot be read here\n");
		skip();
	}
	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_node_collect(live, &n, &err), 0);
	/* The log may grow between the two readings. */
	assert_in_range(pp_fact_int_or(n->self, PP_F_KMSG_LAST, -1), last, last + 1000);
	pp_node_free(n);
	pp_source_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documented_records),
		cmocka_unit_test(test_refused_records),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_xid),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_absence_proves_nothing),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests_name("kmsg", tests, NULL, NULL);
}
