/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's path rules on small trees. Expected types and bandwidths follow from NCCL 2.30's
 * src/graph (types PIX 4 ... SYS 9, a lane of 8 GT/s = 60/80 GB/s, Broadcom 1000:c030 fused when
 * the upper one's subsystem is 0xxx and the lower one's 1xxx); whole public files are compared by
 * the replay test.
 */
#include "unit.h"

#include <errno.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "node/nccl_xml.h"

/* Two switches in a row, of the ids given; the GPU below the lower one, a NIC below each. */
static const char chain[] =
	"<system version=\"1\"><cpu numaid=\"0\">"
	"<pci busid=\"0000:10:00.0\" class=\"0x060400\" %s link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\">"
	"<pci busid=\"0000:11:00.0\" class=\"0x060400\" %s link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\">"
	"<pci busid=\"0000:12:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><gpu dev=\"0\" gdr=\"1\">%s</gpu></pci>"
	"<pci busid=\"0000:13:00.0\" class=\"0x020000\" link_speed=\"8.0 GT/s PCIe\" "
	"link_width=\"8\"><nic><net name=\"near\" speed=\"100000\" gdr=\"1\"/></nic></pci>"
	"</pci>"
	"<pci busid=\"0000:14:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><nic><net name=\"above\" speed=\"200000\"/></nic></pci>"
	"</pci>"
	"<pci busid=\"0000:15:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><nic><net name=\"root\"/></nic></pci>"
	"</cpu><cpu numaid=\"1\">"
	"<pci busid=\"0000:80:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" "
	"link_width=\"16\"><nic><net name=\"far\" speed=\"400000\"/></nic></pci>"
	"</cpu></system>";

static const char plain[] = "vendor=\"0x10b5\" device=\"0x8796\"";
static const char gen5_upper[] = "vendor=\"0x1000\" device=\"0xc030\" subsystem_vendor=\"0x1000\" "
				 "subsystem_device=\"0x0123\"";
static const char gen5_lower[] = "vendor=\"0x1000\" device=\"0xc030\" subsystem_vendor=\"0x1000\" "
				 "subsystem_device=\"0x1123\"";
static const char gen4[] = "vendor=\"0x1000\" device=\"0xc010\" subsystem_vendor=\"0x1000\" "
			   "subsystem_device=\"0xa096\"";

static void parse_chain(const char *upper, const char *lower, const char *in_gpu,
			struct pp_nccl_xml *x, struct pp_nccl_path path[4])
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(1 << 16);
	struct pp_error err = {0};

	pp_buf_printf(&b, chain, upper, lower, in_gpu);
	if (pp_nccl_xml_parse("chain", b.data, b.len, x, &err))
		fail_msg("%s", err.text);
	assert_int_equal(x->graph.n_gpus, 1);
	assert_int_equal(x->graph.n_nics, 4);
	pp_nccl_paths(&x->graph, 0, path);
}

static void test_types(void **state)
{
	struct pp_nccl_path p[4];
	struct pp_nccl_xml x;

	(void)state;
	parse_chain(plain, plain, "", &x, p);
	assert_int_equal(p[0].flat, PP_NCCL_PIX);
	assert_int_equal(p[1].flat, PP_NCCL_PXB);
	assert_int_equal(p[2].flat, PP_NCCL_PHB);
	assert_int_equal(p[3].flat, PP_NCCL_SYS);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(p[i].raw, p[i].flat);
	/* 8 lanes of 8 GT/s = 6; 200 Gb/s = 25 under 16 lanes of 16 GT/s = 24; 10 Gb/s; 16. */
	assert_true(p[0].gbytes == 6.0);
	assert_true(p[1].gbytes == 24.0);
	assert_true(p[2].gbytes == 1.25);
	assert_true(p[3].gbytes == 16.0);
	/* The widest wins over the nearest. */
	assert_false(p[0].local);
	assert_true(p[1].local);
	assert_true(pp_nccl_gdr_near(p[1].flat));
	assert_false(pp_nccl_gdr_near(p[2].flat));
	assert_string_equal(pp_nccl_gdr_text(p[0].flat, 1, 1), "yes");
	assert_string_equal(pp_nccl_gdr_text(p[1].flat, 1, -1), "if able");
	assert_string_equal(pp_nccl_gdr_text(p[1].flat, 1, 0), "no: not able");
	assert_string_equal(pp_nccl_gdr_text(p[3].flat, 1, 1), "no: distance");
	pp_nccl_xml_done(&x);
}

static void test_flattening(void **state)
{
	static const struct {
		const char *upper, *lower;
		enum pp_nccl_type flat;
	} cases[] = {
		{gen5_upper, gen5_lower, PP_NCCL_PIX}, {gen5_lower, gen5_upper, PP_NCCL_PIX},
		{gen5_upper, gen5_upper, PP_NCCL_PXB}, {gen4, gen4, PP_NCCL_PIX},
		{gen4, gen5_lower, PP_NCCL_PXB},       {gen4, plain, PP_NCCL_PXB},
	};
	struct pp_nccl_path p[4];
	struct pp_nccl_xml x;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(cases); i++) {
		parse_chain(cases[i].upper, cases[i].lower, "", &x, p);
		assert_int_equal(p[0].flat, PP_NCCL_PIX);
		assert_int_equal(p[1].raw, PP_NCCL_PXB);
		assert_int_equal(p[1].flat, cases[i].flat);
		assert_int_equal(p[2].flat, PP_NCCL_PHB);
		pp_nccl_xml_done(&x);
	}
}

static void test_c2c(void **state)
{
	struct pp_nccl_path p[4];
	struct pp_nccl_xml x;

	(void)state;
	parse_chain(plain, plain, "<c2c bw=\"1\" count=\"1\"/>", &x, p);
	assert_int_equal(p[2].raw, PP_NCCL_PHB);
	assert_int_equal(p[2].flat, PP_NCCL_P2C);
	assert_true(pp_nccl_gdr_near(p[2].flat));
	assert_int_equal(p[3].flat, PP_NCCL_SYS);
	pp_nccl_xml_done(&x);
}

static void refused(const char *text, size_t len, int code, const char *what)
{
	struct pp_error err = {0};
	struct pp_nccl_xml x;

	assert_int_equal(pp_nccl_xml_parse("t", text, len, &x, &err), code);
	if (!strstr(err.text, what) || strchr(err.text, '\n'))
		fail_msg("'%s' does not say '%s'", err.text, what);
}

static void test_hostile(void **state)
{
	static const char laughs[] = "<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
				     "<system version=\"1\">&b;</system>";
	struct pp_buf PP_AUTO_BUF b = PP_BUF((size_t)8 << 20);

	(void)state;
	refused("", 0, -EBADMSG, "t:1: ");
	refused("no xml", 6, -EBADMSG, "t:1: ");
	refused("<topology/>", 11, -EBADMSG, "'topology'");
	refused("<system version=\"1\">", 20, -EBADMSG, "t:1: ");
	refused(laughs, strlen(laughs), -EBADMSG, "document type");
	pp_buf_str(&b, "<system version=\"1\"><cpu numaid=\"0\">");
	for (unsigned int i = 0; i < 100; i++)
		pp_buf_str(&b, "<pci busid=\"0000:00:00.0\">");
	refused(b.data, b.len, -EFBIG, "deep");
	pp_buf_reset(&b);
	pp_buf_str(&b, "<system");
	for (unsigned int i = 0; i < 40; i++)
		pp_buf_printf(&b, " a%u=\"\"", i);
	pp_buf_str(&b, "/>");
	refused(b.data, b.len, -EFBIG, "attributes");
	pp_buf_reset(&b);
	pp_buf_printf(&b, "<system version=\"%0300d\"/>", 1);
	refused(b.data, b.len, -EFBIG, "longer than 255");
	pp_buf_reset(&b);
	while (b.len <= PP_NCCL_XML_MAX_BYTES)
		pp_buf_str(&b, "                                                                ");
	refused(b.data, b.len, -EFBIG, "4 MiB");
	pp_buf_reset(&b);
	pp_buf_str(&b, "<system><cpu>");
	for (unsigned int i = 0; i < PP_NCCL_MAX_NODES; i++)
		pp_buf_str(&b, "<pci/>");
	refused(b.data, b.len, -EFBIG, "devices");
}

static void test_odd(void **state)
{
	static const char text[] =
		"<system version=\"2\"><pci busid=\"0000:01:00.0\"/><cpu>"
		"<pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"2.5 GT/s PCIe\" "
		"link_width=\"1\">"
		"<pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"32 GT/s PCIe/s\" "
		"link_width=\"0\"><pci busid=\"0000:12:00.0\"/></pci>"
		"<pci busid=\"10000:11:00.0\" class=\"0x020000\" link_speed=\"\" link_width=\"x\"/>"
		"<pci busid=\"0000:11:00.0\"/>"
		"</pci><nic><net name=\"eth0\"/></nic></cpu></system>";
	static const struct {
		enum pp_nccl_odd odd;
		unsigned int count;
		const char *first;
	} want[] = {
		{PP_NCCL_ODD_VERSION, 1, "2"},
		{PP_NCCL_ODD_BUSID, 1, "10000:11:00.0"},
		{PP_NCCL_ODD_DUPLICATE, 1, "0000:11:00.0"},
		{PP_NCCL_ODD_ABSENT, 1, "0000:11:00.0"},
		{PP_NCCL_ODD_SPEED, 2, "32 GT/s PCIe/s"},
		{PP_NCCL_ODD_WIDTH, 2, "0000:11:00.0"},
		{PP_NCCL_ODD_SLOW_SWITCH, 1, "0000:10:00.0"},
		{PP_NCCL_ODD_NIC_ON_CPU, 1, "cpu?"},
		{PP_NCCL_ODD_NUMA, 1, "numa?"},
		{PP_NCCL_ODD_MISPLACED, 2, "pci"},
	};
	struct pp_error err = {0};
	struct pp_nccl_path p[2];
	struct pp_nccl_xml x;

	(void)state;
	if (pp_nccl_xml_parse("odd", text, strlen(text), &x, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < PP_ARRAY_LEN(want); i++) {
		if (x.odd[want[i].odd] != want[i].count ||
		    strcmp(x.odd_first[want[i].odd], want[i].first) != 0)
			fail_msg("%s: %u of %s", pp_nccl_odd_name(want[i].odd), x.odd[want[i].odd],
				 x.odd_first[want[i].odd]);
	}
	assert_int_equal(x.graph.n_gpus, 1);
	assert_int_equal(x.graph.n_nics, 2);
	pp_nccl_paths(&x.graph, 0, p);
	/* What nccl-tests#256 saw: everything through the virtual switch gets 0.2 GB/s. */
	assert_int_equal(p[0].flat, PP_NCCL_PIX);
	assert_true(p[0].gbytes == 12.0);
	assert_int_equal(p[1].flat, PP_NCCL_PHB);
	assert_true(p[1].gbytes == 15.0 / 80.0);
	pp_nccl_xml_done(&x);
}

/* 8 GPUs and 300 NICs deep in a tree: quick, and each pair is right. */
static void test_many(void **state)
{
	struct pp_nccl_node n = {.kind = PP_NCCL_CPU, .id = "numa0", .parent = -1};
	struct pp_nccl_path path[300];
	struct pp_nccl_graph g;
	int top, at;

	(void)state;
	pp_nccl_graph_init(&g);
	top = pp_nccl_graph_add(&g, &n);
	n = (struct pp_nccl_node){.kind = PP_NCCL_SWITCH, .id = "s", .link_gbytes = 24};
	for (unsigned int i = 0; i < 308; i++) {
		n.kind = PP_NCCL_SWITCH;
		n.parent = top;
		for (unsigned int depth = 0; depth < 20; depth++)
			n.parent = pp_nccl_graph_add(&g, &n);
		n.kind = i < 8 ? PP_NCCL_GPU : PP_NCCL_NIC;
		n.net_gbytes = 50;
		at = pp_nccl_graph_add(&g, &n);
		assert_true(at > 0);
	}
	assert_int_equal(pp_nccl_graph_finish(&g), 0);
	for (unsigned int i = 0; i < 8; i++) {
		pp_nccl_paths(&g, i, path);
		for (unsigned int k = 0; k < 300; k++) {
			assert_int_equal(path[k].flat, PP_NCCL_PHB);
			assert_true(path[k].local && path[k].gbytes == 24.0);
		}
	}
	pp_nccl_graph_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types), cmocka_unit_test(test_flattening),
		cmocka_unit_test(test_c2c),   cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_odd),   cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
