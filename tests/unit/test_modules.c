/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel modules from made trees. Texts are those of real machines and of NVIDIA's open kernel
 * module sources: version line, parameter names, taint letters; /proc/modules as the kernel's
 * m_show() prints it.
 */
#include "unit.h"

#include <errno.h>

#include "base/buf.h"
#include "node/node.h"

struct file {
	const char *path, *text; /* text NULL: an empty directory */
	int error;
};

struct rig {
	struct pp_source *src;
	struct pp_node n;
};

#define OPEN_LINE                                                                              \
	"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  " \
	"(dvs-builder@U22-I3-G05-1-3)  Tue Oct 14 02:07:11 UTC 2025\n"                         \
	"GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
#define PROPRIETARY_LINE                                                                       \
	"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC " \
	"2024\n"

static void start(struct rig *r, const struct file *files, size_t n)
{
	struct pp_record *record;
	struct pp_error err;
	int put;

	assert_int_equal(pp_record_new((size_t)8 << 20, &record), 0);
	for (size_t i = 0; i < n; i++) {
		const struct file *f = &files[i];

		put = pp_record_put(record,
				    f->error  ? PP_ENTRY_ERROR
				    : f->text ? PP_ENTRY_FILE
					      : PP_ENTRY_DIR,
				    f->path, f->text, f->text ? strlen(f->text) : 0, f->error);
		assert_int_equal(put, 0);
	}
	*r = (struct rig){0};
	assert_int_equal(pp_source_replay_record(record, &r->src, &err), 0);
	r->n = (struct pp_node){.src = r->src, .arena = PP_ARENA((size_t)8 << 20)};
	r->n.facts.arena = &r->n.arena;
	r->n.self = pp_object_add(&r->n.facts, PP_NODE, "node");
	pp_collect_modules(&r->n);
	assert_false(r->n.arena.failed);
}

#define START(r, ...)                                                 \
	do {                                                          \
		const struct file files_[] = {__VA_ARGS__};           \
		start(r, files_, sizeof(files_) / sizeof(files_[0])); \
	} while (0)

static void done(struct rig *r)
{
	pp_arena_done(&r->n.arena);
	pp_source_free(r->src);
}

static void says(const struct rig *r, enum pp_fact_id id, const char *expected)
{
	char text[512];

	assert_string_equal(pp_fact_text(pp_fact_get(r->n.self, id), text, sizeof(text)), expected);
}

static void unknown(const struct rig *r, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(r->n.self, id);

	assert_non_null(fact);
	assert_false(fact->known);
	assert_true(strlen(fact->why) > 0);
}

static void test_open_580(void **state)
{
	struct rig r;

	(void)state;
	START(&r, {"/sys/module/kernel", NULL},
	      {"/proc/modules", "nvidia_peermem 16384 3 - Live 0x0000000000000000 (OE)\n"
				"nvidia_uvm 2162688 4 - Live 0x0000000000000000 (OE)\n"
				"nvidia 14376960 76 nvidia_peermem,nvidia_uvm, Live 0x0 (OE)\n"},
	      {"/proc/driver/nvidia/version", OPEN_LINE},
	      {"/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nDmaRemapPeerMmio: 1\n"
					     "GrdmaPciTopoCheckOverride: 0\n"
					     "CoherentGPUMemoryMode: \"driver\"\n"
					     "RegistryDwords: \"\"\n"},
	      {"/sys/module/nvidia/taint", "OE\n"},
	      {"/sys/module/nvidia_peermem/version", "580.159.04\n"},
	      {"/sys/module/nvidia_peermem/refcnt", "3\n"},
	      {"/sys/module/nvidia_peermem/parameters/persistent_api_support", "1\n"});
	says(&r, PP_F_NVIDIA_LOADED, "yes");
	says(&r, PP_F_NVIDIA_VERSION, "580.159.04");
	says(&r, PP_F_NVIDIA_FLAVOUR, "open");
	says(&r, PP_F_NVIDIA_PARAM_TOPO, "0");
	says(&r, PP_F_NVIDIA_PARAM_REMAP, "1");
	says(&r, PP_F_NVIDIA_PARAM_COHERENT, "driver");
	says(&r, PP_F_PEERMEM_LOADED, "yes");
	says(&r, PP_F_PEERMEM_VERSION, "580.159.04");
	says(&r, PP_F_PEERMEM_REFCNT, "3");
	says(&r, PP_F_PEERMEM_PERSISTENT, "1");
	says(&r, PP_F_PEERMEM_CLIENT, "yes"); /* references prove it without the directory */
	says(&r, PP_F_NV_PEER_MEM_LOADED, "no");
	says(&r, PP_F_GDRDRV_LOADED, "no");
	says(&r, PP_F_GDRDRV_VERSION, "unknown: gdrdrv is not loaded");
	says(&r, PP_F_NVIDIA_FS_LOADED, "no");
	done(&r);
}

static void test_proprietary_535(void **state)
{
	struct rig r;

	(void)state;
	START(&r, {"/sys/module/kernel", NULL},
	      {"/proc/modules", "gdrdrv 28672 0 - Live 0xffffffffc0f1d000 (OE)\n"
				"nvidia_fs 307200 0 - Live 0xffffffffc0f1d000 (OE)\n"
				"nvidia_peermem 16384 0 - Live 0xffffffffc0f1d000 (POE)\n"
				"nvidia 56717312 2 nvidia_peermem,gdrdrv, Live 0x0 (POE)\n"},
	      {"/proc/driver/nvidia/version", PROPRIETARY_LINE},
	      {"/proc/driver/nvidia/params", "DmaRemapPeerMmio: 1\n"},
	      {"/sys/module/nvidia/taint", "POE\n"}, {"/sys/module/gdrdrv/version", "2.4.1\n"},
	      {"/sys/module/nvidia_fs/version", "2.17.5\n"},
	      {"/sys/module/nvidia_peermem/refcnt", "0\n"},
	      {"/sys/kernel/mm/memory_peers/nv_mem/version", "1.0\n"});
	says(&r, PP_F_NVIDIA_VERSION, "535.183.06");
	says(&r, PP_F_NVIDIA_FLAVOUR, "proprietary");
	says(&r, PP_F_NVIDIA_PARAM_TOPO,
	     "unknown: /proc/driver/nvidia/params: this driver has no GrdmaPciTopoCheckOverride");
	says(&r, PP_F_PEERMEM_LOADED, "yes");
	says(&r, PP_F_PEERMEM_REFCNT, "0");
	says(&r, PP_F_PEERMEM_PERSISTENT,
	     "unknown: /sys/module/nvidia_peermem/parameters/persistent_api_support: absent");
	says(&r, PP_F_PEERMEM_CLIENT, "yes"); /* its entry in the directory of clients */
	says(&r, PP_F_GDRDRV_LOADED, "yes");
	says(&r, PP_F_GDRDRV_VERSION, "2.4.1");
	says(&r, PP_F_NVIDIA_FS_LOADED, "yes");
	says(&r, PP_F_NVIDIA_FS_VERSION, "2.17.5");
	done(&r);
}

static void test_no_module(void **state)
{
	struct rig r;

	(void)state;
	START(&r, {"/sys/module/kernel", NULL},
	      {"/proc/modules", "nvidia_peermem_not 16384 0 - Live 0x0\n"
				"xfs 2162688 4 - Live 0x0000000000000000\n"});
	says(&r, PP_F_NVIDIA_LOADED, "no");
	says(&r, PP_F_NVIDIA_VERSION, "unknown: nvidia is not loaded");
	says(&r, PP_F_NVIDIA_FLAVOUR, "unknown: nvidia is not loaded");
	says(&r, PP_F_NVIDIA_PARAM_REMAP, "unknown: nvidia is not loaded");
	says(&r, PP_F_PEERMEM_LOADED, "no");
	says(&r, PP_F_PEERMEM_CLIENT, "no");
	says(&r, PP_F_PEERMEM_REFCNT, "unknown: nvidia_peermem is not loaded");
	done(&r);
	/* One of the two alone proves presence, not absence. */
	START(&r, {"/sys/module", NULL}, {"/sys/module/kernel", NULL}, {"/sys/module/xfs", NULL},
	      {"/sys/module/gdrdrv", NULL});
	says(&r, PP_F_NVIDIA_LOADED,
	     "unknown: /proc/modules: absent; /sys/module: does not list it");
	unknown(&r, PP_F_PEERMEM_LOADED);
	says(&r, PP_F_GDRDRV_LOADED, "yes");
	done(&r);
	START(&r, {"/proc/modules", "xfs 2162688 4 - Live 0x0\n"}, {"/sys/module/xfs", NULL});
	says(&r, PP_F_NVIDIA_LOADED,
	     "unknown: /proc/modules: does not list it; /sys/module: not whole");
	done(&r);
	START(&r, {"/proc/modules", "xfs 2162688 4 - Live 0x0\n"}, {"/sys/module", NULL, -EACCES});
	says(&r, PP_F_NVIDIA_LOADED,
	     "unknown: /proc/modules: does not list it; /sys/module: permission denied");
	done(&r);
	/* Built in beside modules. */
	START(&r, {"/proc/modules", ""}, {"/sys/module/nvidia/version", "580.159.04\n"},
	      {"/sys/module/nvidia/taint", "OE\n"});
	says(&r, PP_F_NVIDIA_LOADED, "yes");
	says(&r, PP_F_NVIDIA_VERSION, "580.159.04");
	says(&r, PP_F_NVIDIA_FLAVOUR, "open"); /* the second witness alone */
	done(&r);
}

/* What cannot be read is unknown, never "not loaded". */
static void test_unreadable(void **state)
{
	struct rig r;

	(void)state;
	START(&r, {"/sys/devices", NULL});
	says(&r, PP_F_NVIDIA_LOADED, "unknown: /proc/modules: absent; /sys/module: absent");
	unknown(&r, PP_F_PEERMEM_LOADED);
	unknown(&r, PP_F_PEERMEM_CLIENT);
	unknown(&r, PP_F_GDRDRV_LOADED);
	unknown(&r, PP_F_NVIDIA_FLAVOUR);
	done(&r);
	START(&r, {"/proc/modules", NULL, -EACCES}, {"/sys/module", NULL, -EACCES},
	      {"/proc/driver/nvidia/version", NULL, -EACCES});
	says(&r, PP_F_NVIDIA_LOADED,
	     "unknown: /proc/modules: permission denied; /sys/module: permission denied");
	says(&r, PP_F_NVIDIA_FLAVOUR,
	     "unknown: /proc/driver/nvidia/version: permission denied; "
	     "/sys/module/nvidia/taint: absent");
	done(&r);
	/* A recording that holds a part of /sys/module. */
	START(&r, {"/sys/module/nvidia_peermem/version", "580.159.04\n"});
	says(&r, PP_F_PEERMEM_LOADED, "yes");
	says(&r, PP_F_PEERMEM_CLIENT,
	     "unknown: /sys/kernel/mm/memory_peers: absent; newer peer-memory kernels keep no such "
	     "directory, so its absence proves nothing");
	says(&r, PP_F_GDRDRV_LOADED, "unknown: /proc/modules: absent; /sys/module: not whole");
	done(&r);
	/* No text at all. */
	START(&r, {"/proc/modules", "nvidia 1 0 - Live\x01 0x0\n"});
	says(&r, PP_F_NVIDIA_LOADED, "unknown: /proc/modules: not text; /sys/module: absent");
	done(&r);
}

static void test_client(void **state)
{
	struct rig r;

	(void)state;
	/* The directory is there, and the client is not in it. */
	START(&r, {"/proc/modules", "nvidia_peermem 16384 0 - Live 0x0 (OE)\n"},
	      {"/sys/kernel/mm/memory_peers", NULL}, {"/sys/kernel/mm/memory_peers/amdkfd", NULL});
	says(&r, PP_F_PEERMEM_CLIENT, "no");
	says(&r, PP_F_PEERMEM_REFCNT, "0"); /* by /proc/modules */
	done(&r);
	START(&r, {"/proc/modules", "nvidia_peermem 16384 0 - Live 0x0 (OE)\n"},
	      {"/sys/kernel/mm/memory_peers", NULL, -EACCES});
	says(&r, PP_F_PEERMEM_CLIENT, "unknown: /sys/kernel/mm/memory_peers: permission denied");
	done(&r);
	START(&r,
	      {"/proc/modules", "nvidia_peermem 16384 0 - Live 0x0 (OE)\n"
				"nv_peer_mem 16384 0 - Live 0x0 (OE)\n"},
	      {"/sys/kernel/mm/memory_peers/nv_mem_nc", NULL});
	says(&r, PP_F_NV_PEER_MEM_LOADED, "yes");
	unknown(&r, PP_F_PEERMEM_CLIENT);
	done(&r);
	/* The name belongs to the legacy module. */
	START(&r, {"/proc/modules", "nv_peer_mem 16384 0 - Live 0x0 (OE)\n"},
	      {"/sys/module/kernel", NULL}, {"/sys/kernel/mm/memory_peers/nv_mem", NULL});
	says(&r, PP_F_PEERMEM_CLIENT, "no");
	done(&r);
}

static void test_odd(void **state)
{
	struct pp_buf PP_AUTO_BUF big = PP_BUF((size_t)4 << 20);
	struct rig r;

	(void)state;
	/* Two witnesses that contradict each other. */
	START(&r, {"/proc/modules", "nvidia 1 0 - Live 0x0 (POE)\n"},
	      {"/proc/driver/nvidia/version", OPEN_LINE}, {"/sys/module/nvidia/taint", "POE\n"});
	says(&r, PP_F_NVIDIA_FLAVOUR,
	     "unknown: /proc/driver/nvidia/version says open, /sys/module/nvidia/taint ('POE') "
	     "says "
	     "proprietary");
	done(&r);
	/* A module that does not come up. */
	START(&r, {"/proc/modules", "nvidia 1 0 - Loading 0x0 (OE)\n"});
	says(&r, PP_F_NVIDIA_LOADED, "unknown: /proc/modules: its state is 'Loading', not 'Live'");
	done(&r);
	/* A sandbox shows the driver, and the modules of another kernel. */
	START(&r, {"/sys/module/kernel", NULL}, {"/proc/driver/nvidia/version", OPEN_LINE});
	says(&r, PP_F_NVIDIA_LOADED, "yes");
	says(&r, PP_F_NVIDIA_FLAVOUR, "open");
	unknown(&r, PP_F_PEERMEM_LOADED);
	done(&r);
	/* aarch64, and a line that holds neither word. */
	START(&r,
	      {"/proc/driver/nvidia/version",
	       "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.86.15  Release\n"});
	says(&r, PP_F_NVIDIA_VERSION, "570.86.15");
	says(&r, PP_F_NVIDIA_FLAVOUR, "open");
	done(&r);
	START(&r, {"/proc/modules", "nvidia 1 0 - Live 0x0\n"},
	      {"/proc/driver/nvidia/version", "NVRM\n"},
	      {"/proc/driver/nvidia/params", "DmaRemapPeerMmio: \nGrdmaPciTopoCheckOverride: x\n"});
	unknown(&r, PP_F_NVIDIA_VERSION);
	unknown(&r, PP_F_NVIDIA_FLAVOUR);
	unknown(&r, PP_F_NVIDIA_PARAM_REMAP);
	unknown(&r, PP_F_NVIDIA_PARAM_TOPO);
	done(&r);
	/* Lines that end early, and a list longer than is read. */
	START(&r, {"/proc/modules", "nvidia \nnvidia_peermem"}, {"/sys/module/kernel", NULL});
	unknown(&r, PP_F_NVIDIA_LOADED);
	says(&r, PP_F_PEERMEM_LOADED, "no");
	done(&r);
	for (int i = 0; i < 20000; i++)
		pp_buf_str(&big, "xfs 2162688 4 - Live 0x0000000000000000\n");
	START(&r, {"/proc/modules", pp_buf_text(&big)});
	says(&r, PP_F_NVIDIA_LOADED,
	     "unknown: /proc/modules: longer than the limit; /sys/module: absent");
	done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_580),  cmocka_unit_test(test_proprietary_535),
		cmocka_unit_test(test_no_module), cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_client),	  cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests_name("modules", tests, NULL, NULL);
}
