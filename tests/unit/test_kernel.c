/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel facts: of made recordings, and of this machine beside what uname(1), os-release's own
 * shell syntax, zcat and grep say of it.
 */
#include "node_replayed.h"

#include <errno.h>
#include <zlib.h>

#include "node/kconfig.h"
#include "node/os_release.h"

static struct pp_record *record;

static void put(const char *path, const void *bytes, size_t len)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, path, bytes, len, 0), 0);
}

static void put_text(const char *path, const char *text)
{
	put(path, text, strlen(text));
}

/* gzip of @len bytes, all @fill when @bytes is NULL. */
static size_t gzip(const char *bytes, char fill, size_t len, unsigned char *out, size_t size)
{
	static unsigned char block[65536];
	z_stream z = {.next_out = out, .avail_out = (unsigned int)size};
	size_t part;

	memset(block, fill, sizeof(block));
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
			 Z_OK);
	for (size_t at = 0; at < len; at += part) {
		part = len - at < sizeof(block) ? len - at : sizeof(block);
		if (bytes)
			memcpy(block, bytes + at, part);
		z.next_in = block;
		z.avail_in = (unsigned int)part;
		assert_int_not_equal(deflate(&z, at + part == len ? Z_FINISH : Z_NO_FLUSH),
				     Z_STREAM_ERROR);
		assert_int_equal(z.avail_in, 0);
	}
	part = z.total_out;
	(void)deflateEnd(&z);
	return part;
}

static const char CONFIG[] = "#\n# Automatically generated file; DO NOT EDIT.\n#\n"
			     "CONFIG_CC_VERSION_TEXT=\"gcc\"\n"
			     "CONFIG_DMA_SHARED_BUFFER_EXTRA=y\n"
			     "CONFIG_DMA_SHARED_BUFFER=y\n"
			     "CONFIG_INFINIBAND=m\n"
			     "CONFIG_INFINIBAND_USER_MEM=m\n"
			     "# CONFIG_PCI_P2PDMA is not set\n"
			     "CONFIG_HZ=250\n"
			     "# CONFIG_RUNTIME_TESTING_MENU is not set\n";

static void test_config_values(void **state)
{
	(void)state;
	assert_int_equal(pp_kconfig_value(CONFIG, "DMA_SHARED_BUFFER", true), 'y');
	assert_int_equal(pp_kconfig_value(CONFIG, "INFINIBAND_USER_MEM", true), 'm');
	assert_int_equal(pp_kconfig_value(CONFIG, "PCI_P2PDMA", true), 'n');
	assert_int_equal(pp_kconfig_value(CONFIG, "HZ", true), '=');
	assert_int_equal(pp_kconfig_value(CONFIG, "KPROBE_EVENTS", true), 'n');
	assert_int_equal(pp_kconfig_value(CONFIG, "KPROBE_EVENTS", false), '\0');
	assert_int_equal(pp_kconfig_value(CONFIG, "DMA_SHARED", false), '\0');
	assert_int_equal(pp_kconfig_value("CONFIG_X", "X", false), '\0');
	assert_true(pp_kconfig_whole(CONFIG));
	assert_false(pp_kconfig_whole("CONFIG_HZ=250\n"));
}

static void test_config_inflate(void **state)
{
	static unsigned char gz[262144];
	size_t len = gzip(CONFIG, 0, strlen(CONFIG), gz, sizeof(gz));
	char *out = NULL;

	(void)state;
	assert_int_equal(pp_kconfig_inflate(gz, len, PP_KCONFIG_MAX, &out), 0);
	assert_string_equal(out, CONFIG);
	free(out);
	assert_int_equal(pp_kconfig_inflate(gz, len, strlen(CONFIG) - 1, &out), -EFBIG);
	/* Cut anywhere, it is refused: what is missing at the end would read as "not set". */
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(pp_kconfig_inflate(gz, cut, PP_KCONFIG_MAX, &out), -EBADMSG);
	assert_int_equal(pp_kconfig_inflate(CONFIG, strlen(CONFIG), PP_KCONFIG_MAX, &out),
			 -EBADMSG);
	/* 128 MiB in 128 KiB. */
	len = gzip(NULL, 'x', (size_t)128 << 20, gz, sizeof(gz));
	assert_int_equal(pp_kconfig_inflate(gz, len, PP_KCONFIG_MAX, &out), -EFBIG);
	/* Binary inside. */
	len = gzip(NULL, '\0', 1000, gz, sizeof(gz));
	assert_int_equal(pp_kconfig_inflate(gz, len, PP_KCONFIG_MAX, &out), -EBADMSG);
}

static void test_config_facts(void **state)
{
	struct pp_node *n;

	(void)state;
	record = node_record();
	put_text("/proc/sys/kernel/osrelease", "6.1.0-44-amd64\n");
	put_text("/boot/config-6.1.0-44-amd64", CONFIG);
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_KERNEL_CONFIG_SOURCE), "/boot/config-6.1.0-44-amd64");
	assert_string_equal(node_text(n, PP_F_CFG_DMA_SHARED_BUFFER), "y");
	assert_string_equal(node_text(n, PP_F_CFG_PCI_P2PDMA), "n");
	assert_string_equal(node_text(n, PP_F_CFG_KPROBE_EVENTS), "n");
	node_done(n);
	/* The end is missing: what does not occur is unknown. */
	record = node_record();
	put_text("/proc/sys/kernel/osrelease", "6.1.0-44-amd64\n");
	put_text("/boot/config-6.1.0-44-amd64", "CONFIG_DMA_SHARED_BUFFER=y\nCONFIG_INFI");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_CFG_DMA_SHARED_BUFFER), "y");
	assert_false(node_known(n, PP_F_CFG_INFINIBAND_USER_MEM));
	node_done(n);
	/* Another kernel's file does not speak for this one. */
	record = node_record();
	put_text("/proc/sys/kernel/osrelease", "6.1.0-45-amd64\n");
	put_text("/boot/config-6.1.0-44-amd64", CONFIG);
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_CFG_DMA_SHARED_BUFFER));
	node_done(n);
	record = node_record();
	put_text("/proc/sys/kernel/osrelease", "../../etc/shadow\n");
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_KERNEL_CONFIG_SOURCE));
	node_done(n);
}

static void test_os_release(void **state)
{
	static const char DEBIAN[] = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"
				     "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n";
	static const char ROCKY[] = "NAME=\"Rocky Linux\"\nVERSION=\"9.4 (Blue Onyx)\"\n"
				    "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"
				    "VERSION_ID=\"9.4\"\n"
				    "PRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\n";
	char value[64];

	(void)state;
	assert_int_equal(pp_os_release_value(DEBIAN, "ID", value, sizeof(value)), 0);
	assert_string_equal(value, "debian");
	assert_int_equal(pp_os_release_value(DEBIAN, "PRETTY_NAME", value, sizeof(value)), 0);
	assert_string_equal(value, "Debian GNU/Linux 12 (bookworm)");
	assert_int_equal(pp_os_release_value(ROCKY, "VERSION_ID", value, sizeof(value)), 0);
	assert_string_equal(value, "9.4");
	assert_int_equal(pp_os_release_value(ROCKY, "ID", value, sizeof(value)), 0);
	assert_string_equal(value, "rocky");
	assert_int_equal(pp_os_release_value(ROCKY, "BUILD_ID", value, sizeof(value)), -ENOENT);
	/* As a shell would read them. */
	assert_int_equal(pp_os_release_value("A='x \"y\"'\n", "A", value, sizeof(value)), 0);
	assert_string_equal(value, "x \"y\"");
	assert_int_equal(pp_os_release_value("A=\"\\$5 \\\"q\\\"\"", "A", value, sizeof(value)), 0);
	assert_string_equal(value, "$5 \"q\"");
	assert_int_equal(pp_os_release_value("A=1\nA=2\n", "A", value, sizeof(value)), 0);
	assert_string_equal(value, "2");
	assert_int_equal(pp_os_release_value("A=\"open\n", "A", value, sizeof(value)), -EBADMSG);
	assert_int_equal(pp_os_release_value("#A=1\n", "A", value, sizeof(value)), -ENOENT);
}

static void test_lockdown(void **state)
{
	struct pp_node *n;

	(void)state;
	record = node_record();
	put_text("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_KERNEL_LOCKDOWN), "integrity");
	node_done(n);
	record = node_record();
	put_text("/sys/kernel/security/lockdown", "none integrity\n");
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_KERNEL_LOCKDOWN));
	node_done(n);
	record = node_record();
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_KERNEL_LOCKDOWN));
	node_done(n);
}

static void test_symbols(void **state)
{
	struct pp_node *n;

	(void)state;
	/* An OFED core: both. */
	record = node_record();
	put_text("/sys/module/ib_core/refcnt", "5\n");
	put_text("/proc/kallsyms",
		 "0000000000000000 T _text\n"
		 "0000000000000000 T ib_register_device\t[ib_core]\n"
		 "0000000000000000 T ib_umem_release\t[ib_uverbs]\n"
		 "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n"
		 "0000000000000000 T ib_register_peer_memory_client\t[ib_uverbs]\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_KERNEL_PEER_MEMORY), "yes");
	assert_string_equal(node_text(n, PP_F_KERNEL_DMABUF_VERB), "yes");
	node_done(n);
	/* A distribution's core: no peer memory, and that is seen. */
	record = node_record();
	put_text("/sys/module/ib_core/refcnt", "5\n");
	put_text("/proc/kallsyms",
		 "0000000000000000 T ib_register_device\t[ib_core]\n"
		 "0000000000000000 T ib_umem_release\t[ib_uverbs]\n"
		 "0000000000000000 T ib_umem_dmabuf_get_pinned\t[ib_uverbs]\n"
		 "0000000000000000 d ib_register_peer_memory_client\t[ib_uverbs]\n"
		 "0000000000000000 T not_ib_umem_dmabuf_get\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_KERNEL_PEER_MEMORY), "no");
	assert_string_equal(node_text(n, PP_F_KERNEL_DMABUF_VERB), "no");
	node_done(n);
	/* ib_uverbs is not loaded: nothing follows. Nor from an empty file, nor from no file. */
	record = node_record();
	put_text("/sys/module/ib_core/refcnt", "5\n");
	put_text("/proc/kallsyms", "0000000000000000 T ib_register_device\t[ib_core]\n");
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_KERNEL_PEER_MEMORY));
	assert_false(node_known(n, PP_F_KERNEL_DMABUF_VERB));
	node_done(n);
	record = node_record();
	put_text("/sys/module/ib_core/refcnt", "5\n");
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_KERNEL_PEER_MEMORY));
	assert_string_equal(node_text(n, PP_F_KERNEL_DMABUF_VERB),
			    "unknown: /proc/kallsyms: absent");
	node_done(n);
}

static const char *machine(const char *vendor, const char *product, const char *flags)
{
	static char kind[64];
	struct pp_node *n;

	record = node_record();
	if (vendor) {
		assert_int_equal(pp_record_put(record, PP_ENTRY_LINK, "/sys/class/dmi/id",
					       "../../devices/virtual/dmi/id", 28, 0),
				 0);
		put_text("/sys/devices/virtual/dmi/id/sys_vendor", vendor);
		put_text("/sys/devices/virtual/dmi/id/product_name", product);
	}
	if (flags)
		put_text("/proc/cpuinfo", flags);
	n = node_replayed(record);
	(void)snprintf(kind, sizeof(kind), "%s", node_text(n, PP_F_VIRTUAL_MACHINE));
	node_done(n);
	return kind;
}

static void test_virtual(void **state)
{
	static const char METAL[] = "processor\t: 0\nflags\t\t: fpu vme hypervisory avx\n";
	static const char GUEST[] = "processor\t: 0\nflags\t\t: fpu avx hypervisor\nbugs\t\t:\n";

	(void)state;
	assert_string_equal(machine("Supermicro", "SYS-821GE", METAL), "none");
	assert_string_equal(machine("QEMU", "Standard PC (Q35 + ICH9, 2009)", GUEST), "kvm");
	assert_string_equal(machine("Microsoft Corporation", "Virtual Machine", GUEST), "hyperv");
	assert_string_equal(machine("Amazon EC2", "p5.48xlarge", GUEST), "amazon");
	assert_string_equal(machine("Amazon EC2", "c5n.metal", METAL), "none");
	assert_string_equal(machine(NULL, NULL, GUEST), "other");
	/* Without the flag, as on aarch64. */
	assert_string_equal(machine("QEMU", "KVM Virtual Machine", NULL), "kvm");
	assert_string_equal(machine("Amazon EC2", "c7gn.metal", NULL), "none");
	assert_string_equal(machine("Amazon EC2", "c7gn.16xlarge", NULL), "amazon");
	/* Bare metal, or a guest of somebody who is not in the list. */
	assert_memory_equal(machine("NVIDIA", "GH200 P4956", NULL), "unknown: ", 9);
	assert_memory_equal(machine("Nobody", "Cloud VM", NULL), "unknown: ", 9);
	assert_memory_equal(machine(NULL, NULL, NULL), "unknown: ", 9);
}

/* What a shell command prints, without the line's end. */
static const char *shell(const char *command)
{
	static char line[4096];
	FILE *f = popen(command, "r");

	assert_non_null(f);
	line[0] = '\0';
	(void)!fgets(line, sizeof(line), f);
	(void)pclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void test_live(void **state)
{
	struct pp_source *live;
	struct pp_error err;
	struct pp_node *n;

	(void)state;
	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_node_collect(live, &n, &err), 0);
	assert_string_equal(node_text(n, PP_F_KERNEL_RELEASE), shell("uname -r"));
	assert_string_equal(node_text(n, PP_F_KERNEL_ARCH), shell("uname -m"));
	assert_string_equal(node_text(n, PP_F_OS_ID), shell(". /etc/os-release; echo \"$ID\""));
	assert_string_equal(node_text(n, PP_F_OS_NAME),
			    shell(". /etc/os-release; echo \"$PRETTY_NAME\""));
	assert_string_equal(node_text(n, PP_F_KERNEL_TAINT), shell("cat /proc/sys/kernel/tainted"));
	if (!strcmp(node_text(n, PP_F_KERNEL_CONFIG_SOURCE), "/proc/config.gz"))
		assert_string_equal(node_text(n, PP_F_CFG_DMA_SHARED_BUFFER),
				    shell("zcat /proc/config.gz | grep -q "
					  "'^CONFIG_DMA_SHARED_BUFFER=y$' && echo y || echo n"));
	pp_node_free(n);
	pp_source_free(live);
}

/* What a live collection records gives the same facts again. */
static void test_record_and_replay(void **state)
{
	struct pp_source *live;
	struct pp_node *n, *again;
	struct pp_error err;
	char was[4096];

	(void)state;
	record = node_record();
	assert_int_equal(pp_source_live(&live, &err), 0);
	pp_source_set_record(live, record);
	assert_int_equal(pp_node_collect(live, &n, &err), 0);
	again = node_replayed(record);
	for (unsigned int i = 0; i < n->self->n; i++) {
		enum pp_fact_id id = n->self->facts[i].id;

		if (id < PP_F_KERNEL_RELEASE || id > PP_F_VIRTUAL_MACHINE)
			continue;
		(void)snprintf(was, sizeof(was), "%s", node_text(n, id));
		assert_string_equal(node_text(again, id), was);
	}
	pp_node_free(n);
	pp_source_free(live);
	node_done(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_values),	  cmocka_unit_test(test_config_inflate),
		cmocka_unit_test(test_config_facts),	  cmocka_unit_test(test_os_release),
		cmocka_unit_test(test_lockdown),	  cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_virtual),		  cmocka_unit_test(test_live),
		cmocka_unit_test(test_record_and_replay),
	};

	return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
