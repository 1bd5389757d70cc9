/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is replaced, what must stay, and that a scrubbed machine is the same machine to the
 * collectors. Relations between addresses are those of the standards: modified EUI-64 (RFC 4291,
 * appendix A), IPv4-mapped GIDs (InfiniBand, annex A17), Mellanox's GUIDs from MAC addresses.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <zlib.h>

#include "bundle/scrub.h"
#include "node/node.h"

static struct pp_record *fresh(void)
{
	struct pp_record *r;

	assert_int_equal(pp_record_new((size_t)8 << 20, &r), 0);
	return r;
}

static void add(struct pp_record *r, enum pp_entry_kind kind, const char *path, const char *text)
{
	assert_int_equal(pp_record_put(r, kind, path, text, strlen(text), 0), 0);
}

static struct pp_record *scrub(struct pp_record *r, struct pp_scrub_counts *counts)
{
	struct pp_record *out;
	struct pp_error err = {0};

	if (pp_scrub_record(r, &out, counts, &err))
		fail_msg("%s", err.text);
	return out;
}

/* One text file through the scrubber; malloc'ed. */
static char *scrubbed(const char *text)
{
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	char *copy;

	add(r, PP_ENTRY_FILE, "/etc/some.conf", text);
	out = scrub(r, &counts);
	copy = strdup(pp_record_get(out, "/etc/some.conf")->content);
	assert_non_null(copy);
	pp_record_free(out);
	pp_record_free(r);
	return copy;
}

static void test_evidence_stays(void **state)
{
	static const char *const texts[] = {
		"0000:3b:00.0 10000:e1:00.0 pci0000:00 00000000:3B:00.0\n",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06\n",
		"firmware version: 28.39.1002 MT_0000000838\n",
		"libibverbs.so.1.14.44.0 MLNX_OFED_LINUX-5.8-1.1.2.1: version 1.2.3.4\n",
		"0x00000000fb000000 0x00000000fbffffff 0x0000000000140204\n",
		"ffffffffc0a0b000 t ib_umem_dmabuf_get\t[ib_uverbs]\n",
		"CapEff:\t000001ffffffffff\n",
		"ffffffff,ffffffff 0-55,112-167\n",
		"32.0 GT/s PCIe 2026-11-29 15:20:01 12:34:56\n",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice\n",
		"127.0.0.1 0.0.0.0 255.255.255.0 224.0.0.1 169.254.169.254\n",
		"00:00:00:00:00:00 ff:ff:ff:ff:ff:ff 33:33:00:00:00:01\n",
		"0000:0000:0000:0000 :: ::1 ff02::1 fe80::\n",
		"00000000-0000-0000-0000-000000000000\n",
		"image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
		"std::string a::b:: 0:1:2:3:4:5:6:7\n",
		"Serial port: ttyS0, serial number: N/A\n",
		"GPU UUID: GPU-????????"
		"-????"
		"-????"
		"-????"
		"-????????????\n",
		"",
	};
	char *out;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		out = scrubbed(texts[i]);
		assert_string_equal(out, texts[i]);
		free(out);
	}
}

static void test_identifiers_go(void **state)
{
	static const char *const texts[] = {
		"b8:59:9f:d4:eb:e8",
		"b8-59-9f-d4-eb-e8",
		"b859:9f03:00d4:ebe8",
		"fe80:0000:0000:0000:ba59:9fff:fed4:ebe8",
		"fe80::ba59:9fff:fed4:ebe8",
		"0000:0000:0000:0000:0000:ffff:0a01:0203",
		"10.1.2.3",
		"203.0.114.7",
		"2a01:4f8:1:2::5",
		"GPU-3f2504e0-4f89-11d3-9a0c-0305e82c3301",
		"root=UUID=3F2504E0-4F89-11D3-9A0C-0305E82C3301",
		"0123456789abcdef0123456789abcdef",
		"/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"00:00:10:29:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:d4:eb:e8",
		"Serial Number: 1320921012345",
		"/home/alice/nccl.conf",
		"(alice@devbox)",
	};
	char *a, *b;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		a = scrubbed(texts[i]);
		b = scrubbed(texts[i]);
		assert_string_not_equal(a, texts[i]);
		/* Network addresses are numbered; all else depends on a key made each time. */
		if (!strstr(texts[i], "10.1.2.3") && !strstr(texts[i], "203.0.114.7") &&
		    !strstr(texts[i], "0a01:0203"))
			assert_string_not_equal(a, b);
		free(a);
		free(b);
	}
}

/* The shape of what comes out, and what is kept of what went in. */
static void test_shapes(void **state)
{
	char *out;
	unsigned int v;
	struct in_addr a;

	(void)state;
	out = scrubbed("b8:59:9f:d4:eb:e8");
	assert_int_equal(strlen(out), 17);
	assert_memory_equal(out, "b8:59:9f:", 9);
	free(out);
	out = scrubbed("GPU-3f2504e0-4f89-41d3-9a0c-0305e82c3301!");
	assert_memory_equal(out, "GPU-", 4);
	assert_int_equal(out[4 + 14], '4'); /* version 4 stays version 4 */
	assert_int_equal(out[40], '!');
	free(out);
	out = scrubbed("0000:0000:0000:0000:0000:ffff:0a01:0203");
	assert_memory_equal(out, "0000:0000:0000:0000:0000:ffff:", 30);
	assert_int_equal(sscanf(out + 30, "%2x", &v), 1);
	assert_int_equal(v, 192);
	free(out);
	out = scrubbed("10.1.2.3");
	assert_int_equal(inet_pton(AF_INET, out, &a), 1);
	assert_int_equal(ntohl(a.s_addr) >> 8, 0xc00002); /* 192.0.2.0/24, RFC 5737 */
	free(out);
	out = scrubbed("2a01:4f8:1:2::5");
	assert_memory_equal(out, "2001:db8:", 9); /* RFC 3849 */
	free(out);
	out = scrubbed("Serial Number: A12-9x");
	assert_memory_equal(out, "Serial Number: ", 15);
	assert_true(out[15] >= 'A' && out[15] <= 'Z' && out[18] == '-');
	assert_true(out[16] >= '0' && out[16] <= '9' && out[20] >= 'a' && out[20] <= 'z');
	free(out);
}

static unsigned long low24(const char *hex)
{
	char digits[16] = "";
	size_t n = 0;

	for (; *hex && *hex != ' ' && n < 12; hex++)
		if (*hex != ':')
			digits[n++] = *hex;
	return strtoul(digits, NULL, 16) & 0xffffff;
}

/* One MAC address in six forms comes out as one MAC address in six forms. */
static void test_relations(void **state)
{
	char *out = scrubbed("b8:59:9f:d4:eb:e8 b859:9f03:00d4:ebe8 "
			     "fe80:0000:0000:0000:ba59:9fff:fed4:ebe8 fe80::ba59:9fff:fed4:ebe8 "
			     "0xb8599f0300d4ebe8 b8599fd4ebe8 b8:59:9f:d4:eb:e9");
	unsigned long mac = low24(out);
	char guid[32], gid[64], shorter[64], bare[32], mac_bare[16];

	(void)state;
	(void)snprintf(guid, sizeof(guid), "b859:9f03:00%02lx:%04lx", mac >> 16, mac & 0xffff);
	(void)snprintf(gid, sizeof(gid), "fe80:0000:0000:0000:ba59:9fff:fe%02lx:%04lx", mac >> 16,
		       mac & 0xffff);
	(void)snprintf(shorter, sizeof(shorter), " fe80::ba59:9fff:fe%02lx:%lx ", mac >> 16,
		       mac & 0xffff);
	(void)snprintf(bare, sizeof(bare), "0xb8599f0300%06lx", mac);
	(void)snprintf(mac_bare, sizeof(mac_bare), " b8599f%06lx ", mac);
	assert_non_null(strstr(out, guid));
	assert_non_null(strstr(out, gid));
	assert_non_null(strstr(out, shorter));
	assert_non_null(strstr(out, bare));
	assert_non_null(strstr(out, mac_bare));
	assert_int_not_equal(low24(strrchr(out, ' ') + 1), mac);
	free(out);
}

/* 4000 neighbours stay 4000, and networks stay together. */
static void test_injective(void **state)
{
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	char path[64], text[64];
	unsigned char *seen = calloc(1, 1 << 24);
	const struct pp_entry *e;
	unsigned long v;

	(void)state;
	for (int i = 0; i < 4000; i++) {
		(void)snprintf(path, sizeof(path), "/sys/class/net/eth%d/address", i);
		(void)snprintf(text, sizeof(text), "02:00:00:00:%02x:%02x", i >> 8, i & 255);
		add(r, PP_ENTRY_FILE, path, text);
	}
	out = scrub(r, &counts);
	assert_int_equal(counts.replaced, 4000);
	for (int i = 0; i < 4000; i++) {
		(void)snprintf(path, sizeof(path), "/sys/class/net/eth%d/address", i);
		e = pp_record_get(out, path);
		v = low24(e->content);
		assert_false(seen[v]);
		seen[v] = 1;
	}
	free(seen);
	pp_record_free(out);
	pp_record_free(r);
}

static void test_networks(void **state)
{
	char text[64 * 40] = "", *out, *at, *end;
	unsigned int a[4], last[4] = {0};
	int n = 0;

	(void)state;
	for (int net = 0; net < 60; net++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       "10.%d.7.1 10.%d.7.2 ", net, net);
	out = scrubbed(text);
	for (at = out; *at; at = end + 1, n++) {
		end = strchr(at, ' ');
		*end = '\0';
		assert_int_equal(sscanf(at, "%u.%u.%u.%u", &a[0], &a[1], &a[2], &a[3]), 4);
		if (n % 2)
			assert_true(a[0] == last[0] && a[1] == last[1] && a[2] == last[2] &&
				    a[3] == last[3] + 1);
		assert_true(a[0] == 192 || a[0] == 198 || a[0] == 203);
		memcpy(last, a, sizeof(a));
	}
	assert_int_equal(n, 120);
	free(out);
}

/* What the path has nothing to do with is nobody's business. */
static void test_cmdline(void **state)
{
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;

	(void)state;
	add(r, PP_ENTRY_FILE, "/proc/cmdline",
	    "BOOT_IMAGE=/vmlinuz-6.8 root=LABEL=corp intel_iommu=on iommu=pt "
	    "pci=disable_acs_redir=0000:20:00.0 nvidia.NVreg_x=1 installer_password=abc "
	    "console=ttyS0 -- --token abc iommu=off\n");
	out = scrub(r, &counts);
	assert_string_equal(pp_record_get(out, "/proc/cmdline")->content,
			    "intel_iommu=on iommu=pt pci=disable_acs_redir=0000:20:00.0 "
			    "nvidia.NVreg_x=1\n");
	pp_record_free(out);
	pp_record_free(r);
}

/* A host's name is learned where it stands and replaced everywhere, but not inside evidence. */
static void test_names(void **state)
{
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	const char *host, *text;
	char want[256];

	(void)state;
	add(r, PP_ENTRY_FILE, "/proc/sys/kernel/hostname", "gpu01.dc1.corp.org\n");
	add(r, PP_ENTRY_FILE, "/etc/boot-line",
	    "root=/dev/mapper/vg-gpu01-root ip=10.0.0.5::10.0.0.1:255.255.255.0:GPU01:eth0:none\n");
	add(r, PP_ENTRY_FILE, "/etc/gpu01/a", "gpu01 gpu011 xgpu01 login.dc1.corp.org\n");
	add(r, PP_ENTRY_FILE, "/home/alice/.nccl.conf", "NCCL_TOPO_FILE=/home/alice/t.xml alice\n");
	add(r, PP_ENTRY_FILE, "/sys/class/infiniband/mlx5_0/node_desc", "old-name HCA-1\n");
	add(r, PP_ENTRY_LINK, "/etc/link", "gpu01/a");
	add(r, PP_ENTRY_ANSWER, "environment",
	    "{\"data\": {\"vars\": [\"USER=bob\", \"API_TOKEN=zqz\", \"MASTER_ADDR=10.0.0.5\","
	    "\"SLURM_JOB_NODELIST=gpu[01-04]\", \"NCCL_IB_HCA=mlx5_0\","
	    "\"HOME=/data/people/carol\"],"
	    "\"env\": [{\"name\": \"HOSTNAME\", \"value\": \"gpu01\"}],"
	    "\"serial\": \"1654922001234\", \"driver_version\": \"10.1.2.3\"}}");
	add(r, PP_ENTRY_FILE, "/data/people/carol/.nccl.conf", "");
	add(r, PP_ENTRY_FILE, "/etc/note", "board 1654922001234 of bob\n");
	out = scrub(r, &counts);
	host = pp_record_get(out, "/proc/sys/kernel/hostname")->content;
	assert_memory_equal(host, "node-", 5);
	assert_int_equal(strcspn(host, "."), 11);
	assert_non_null(strstr(host, ".example\n"));
	text = pp_record_get(out, "/etc/boot-line")->content;
	(void)snprintf(want, sizeof(want), "root=/dev/mapper/vg-%.11s-root ip=192.0.2.", host);
	assert_memory_equal(text, want, strlen(want));
	(void)snprintf(want, sizeof(want), ":255.255.255.0:%.11s:eth0:none\n", host);
	assert_non_null(strstr(text, want));
	assert_null(pp_record_get(out, "/etc/gpu01/a"));
	(void)snprintf(want, sizeof(want), "/etc/%.11s/a", host);
	text = pp_record_get(out, want)->content;
	(void)snprintf(want, sizeof(want), "%.11s gpu011 xgpu01 login.d", host);
	assert_memory_equal(text, want, strlen(want));
	(void)snprintf(want, sizeof(want), "%.11s/a", host);
	assert_string_equal(pp_record_get(out, "/etc/link")->content, want);
	assert_string_equal(pp_record_get(out, "/sys/class/infiniband/mlx5_0/node_desc")->content,
			    "scrubbed");
	text = pp_record_answer(out, "environment")->content;
	assert_null(strstr(text, "zqz")); /* no hash holds it */
	assert_null(strstr(text, "bob"));
	assert_null(strstr(text, "gpu"));
	assert_non_null(strstr(text, "\"HOME=/data/people/user-"));
	assert_null(pp_record_get(out, "/data/people/carol/.nccl.conf"));
	assert_null(strstr(text, "1654922001234"));
	assert_non_null(strstr(text, "API_TOKEN=scrubbed"));
	assert_non_null(strstr(text, "MASTER_ADDR=192.0.2."));
	assert_non_null(strstr(text, "\"NCCL_IB_HCA=mlx5_0\""));
	assert_non_null(strstr(text, "\"driver_version\": \"10.1.2.3\""));
	text = pp_record_get(out, "/etc/note")->content;
	assert_null(strstr(text, "1654922001234"));
	assert_null(strstr(text, "bob"));
	pp_record_free(out);
	pp_record_free(r);
}

/* A host that is called like a module must not take the module with it. */
static void test_awkward_names(void **state)
{
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;

	(void)state;
	add(r, PP_ENTRY_FILE, "/proc/sys/kernel/hostname", "gdrdrv\n");
	add(r, PP_ENTRY_FILE, "/sys/module/gdrdrv/version", "2.4\n");
	add(r, PP_ENTRY_FILE, "/proc/modules", "gdrdrv 24576 0 - Live 0x0 (OE)\n");
	out = scrub(r, &counts);
	assert_memory_equal(pp_record_get(out, "/proc/sys/kernel/hostname")->content, "node-", 5);
	assert_string_equal(pp_record_get(out, "/sys/module/gdrdrv/version")->content, "2.4\n");
	assert_memory_equal(pp_record_get(out, "/proc/modules")->content, "gdrdrv ", 7);
	pp_record_free(out);
	pp_record_free(r);
}

static void test_binary(void **state)
{
	static const char path[] = "/sys/devices/pci0000:00/0000:00:01.0/config";
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	char config[4096] = {0};
	const struct pp_entry *e;

	(void)state;
	/* AER at 0x100 leads to a serial number at 0x150, and that to ACS at 0x160. */
	memcpy(config + 0x100, "\x01\x00\x01\x15", 4);
	memcpy(config + 0x150,
	       "\x03\x00\x01\x16"
	       "SERIALNO",
	       12);
	memcpy(config + 0x160, "\x0d\x00\x01\x00\x5f\x00\x1d\x00", 8);
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, path, config, sizeof(config), 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, "/sys/firmware/blob", "\x01\x02", 2, 0),
			 0);
	assert_int_equal(
		pp_record_put(r, PP_ENTRY_FILE, "/sys/devices/pci0000:00/x/vpd", "abc", 3, 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, "/lib/pieces", "a\0b\0", 4, 0), 0);
	out = scrub(r, &counts);
	assert_int_equal(counts.dropped, 2);
	/* Dropped is unreadable, not absent. */
	assert_int_equal(pp_record_get(out, "/sys/firmware/blob")->error, -ENODATA);
	assert_int_equal(pp_record_get(out, "/sys/devices/pci0000:00/x/vpd")->kind, PP_ENTRY_ERROR);
	assert_int_equal(pp_record_get(out, "/lib/pieces")->len, 4);
	e = pp_record_get(out, path);
	assert_int_equal(e->len, sizeof(config));
	memset(config + 0x154, 0, 8);
	assert_memory_equal(e->content, config, sizeof(config));
	pp_record_free(out);
	pp_record_free(r);
}

static void test_gzip(void **state)
{
	static const char text[] = "CONFIG_X=y\n# built by alice@devbox\n";
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	unsigned char packed[256], plain[256] = "";
	z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = sizeof(text) - 1};
	const struct pp_entry *e;

	(void)state;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = packed;
	z.avail_out = sizeof(packed);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, "/proc/config.gz", packed, z.total_out, 0),
			 0);
	out = scrub(r, &counts);
	e = pp_record_get(out, "/proc/config.gz");
	z = (z_stream){.next_in = (Bytef *)(uintptr_t)e->content, .avail_in = (uInt)e->len};
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	z.next_out = plain;
	z.avail_out = sizeof(plain) - 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	(void)inflateEnd(&z);
	assert_memory_equal(plain, "CONFIG_X=y\n# built by user-", 27);
	assert_null(strstr((char *)plain, "alice"));
	pp_record_free(out);
	pp_record_free(r);
}

/* Names by systemd.net-naming-scheme(7): en, wl, ww, ib or sl, "x", the address in hexadecimal. */
static void test_interfaces(void **state)
{
	static const char device[] = "/sys/devices/pci0000:00/0000:00:1f.6/net/enx78e7d1ea46da";
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	const struct pp_entry *e, *answer;
	char path[256], name[32], *text;
	size_t n;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/address", device);
	add(r, PP_ENTRY_FILE, path, "78:e7:d1:ea:46:da\n");
	add(r, PP_ENTRY_LINK, "/sys/class/net/enx78e7d1ea46da",
	    "../../devices/pci0000:00/0000:00:1f.6/net/enx78e7d1ea46da");
	add(r, PP_ENTRY_ANSWER, "links", "{\"enx78e7d1ea46da\": \"enx78e7d1ea46da\"}");
	out = scrub(r, &counts);
	e = pp_record_entries(out, &n);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++) {
		assert_null(strstr(e[i].path, "ea46da"));
		assert_null(strstr(e[i].content, "ea46da"));
	}
	/* the address in the name is the address of the device */
	assert_string_equal(e[0].path + strlen("/sys/class/net/"), strrchr(e[0].content, '/') + 1);
	assert_memory_equal(e[1].content, "78:e7:d1:", 9);
	(void)snprintf(name, sizeof(name), "enx78e7d1%.2s%.2s%.2s", e[1].content + 9,
		       e[1].content + 12, e[1].content + 15);
	assert_string_equal(e[0].path + strlen("/sys/class/net/"), name);
	answer = pp_record_answer(out, "links");
	assert_non_null(strstr(answer->content, name));
	pp_record_free(out);
	pp_record_free(r);
	text = scrubbed("wlx78e7d1ea46da.100: enx78e7d1ea46daf matrix78e7d1ea46da enx78e7d1ea46\n");
	assert_null(strstr(text, "wlx78e7d1ea46da"));
	assert_memory_equal(text + 15, ".100: enx78e7d1ea46daf matrix78e7d1ea46da enx78e7d1ea46\n",
			    52);
	free(text);
}

/* More names than can be learned: refused, not done in part. */
static void test_too_many_names(void **state)
{
	struct pp_record *r = fresh(), *out;
	struct pp_scrub_counts counts;
	struct pp_error err = {0};
	char path[64], text[64];

	(void)state;
	for (int i = 0; i < 1024; i++) {
		(void)snprintf(path, sizeof(path), "/etc/%d.conf", i);
		(void)snprintf(text, sizeof(text), "/home/person%d/x", i);
		add(r, PP_ENTRY_FILE, path, text);
	}
	out = scrub(r, &counts);
	assert_int_equal(counts.replaced, 1024);
	pp_record_free(out);
	add(r, PP_ENTRY_FILE, "/etc/last.conf", "/home/person1024/x");
	assert_int_equal(pp_scrub_record(r, &out, &counts, &err), -EFBIG);
	assert_non_null(strstr(err.text, "more names"));
	pp_record_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evidence_stays), cmocka_unit_test(test_identifiers_go),
		cmocka_unit_test(test_shapes),	       cmocka_unit_test(test_relations),
		cmocka_unit_test(test_injective),      cmocka_unit_test(test_networks),
		cmocka_unit_test(test_cmdline),	       cmocka_unit_test(test_names),
		cmocka_unit_test(test_awkward_names),  cmocka_unit_test(test_binary),
		cmocka_unit_test(test_gzip),	       cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_too_many_names),
	};

	return cmocka_run_group_tests_name("scrub", tests, NULL, NULL);
}
