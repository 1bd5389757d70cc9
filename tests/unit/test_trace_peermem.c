/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer memory in the shapes that stacks give it: nvidia_peermem with and without memory_peers
 * (MLNX_OFED and older Ubuntu kernels have it, newer ones do not), the module before it, other
 * clients, none.
 */
#include "unit.h"

#include "trace/peermem.h"

static struct pp_record *record;

static void put(const char *path, const char *text)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, path, text, strlen(text), 0), 0);
}

static void dir(const char *path)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_DIR, path, NULL, 0, 0), 0);
}

/* A machine whose modules can be listed. */
static void begin(const char *modules)
{
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	put("/proc/modules", modules);
	dir("/sys/module");
	dir("/sys/module/ib_core");
	dir("/sys/module/kernel");
	dir("/sys/kernel/mm");
}

static void client(const char *name, const char *alloc, const char *dealloc)
{
	char path[128];
	const struct {
		const char *file, *text;
	} files[] = {{"num_alloc_mrs", alloc},	   {"num_dealloc_mrs", dealloc},
		     {"num_reg_bytes", "4194304"}, {"num_dereg_bytes", "2097152"},
		     {"num_free_callbacks", "1"},  {"version", "1.0"}};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "/sys/kernel/mm/memory_peers/%s/%s", name,
			       files[i].file);
		put(path, files[i].text);
	}
}

static struct pp_peermem read_all(void)
{
	struct pp_source *s;
	struct pp_error err;
	struct pp_peermem p;

	assert_int_equal(pp_source_replay_record(record, &s, &err), 0);
	pp_peermem_read(s, &p);
	pp_source_free(s);
	return p;
}

static const char LOADED[] = "nvidia_peermem 16384 3 - Live 0x0000000000000000 (POE)\n"
			     "ib_core 425984 1 ib_uverbs, Live 0x0000000000000000\n";
static const char NONE[] = "ib_core 425984 1 ib_uverbs, Live 0x0000000000000000\n";

static void test_ofed(void **state)
{
	struct pp_peermem p;

	(void)state;
	begin(LOADED);
	put("/sys/module/nvidia_peermem/version", "550.54.15\n");
	put("/sys/module/nvidia_peermem/refcnt", "3\n");
	client("nv_mem", "10\n", "7\n");
	client("nv_mem_nc", "0\n", "0\n");
	p = read_all();
	assert_int_equal(p.report.state, PP_SURFACE_READ);
	assert_true(p.loaded);
	assert_string_equal(p.module, "nvidia_peermem");
	assert_string_equal(p.version, "550.54.15");
	assert_int_equal(p.references, 3);
	assert_int_equal(p.n, 2);
	assert_string_equal(p.client[0].name, "nv_mem");
	assert_int_equal(p.client[0].alloc_mrs, 10);
	assert_int_equal(p.client[0].dealloc_mrs, 7);
	assert_int_equal(p.client[0].reg_bytes, 4194304);
	assert_int_equal(p.client[0].dereg_bytes, 2097152);
	assert_int_equal(p.client[0].free_callbacks, 1);
	assert_int_equal(pp_peermem_live(&p), 3);
}

/* Newer stacks have no memory_peers: that says nothing, references do. */
static void test_without_directory(void **state)
{
	struct pp_peermem p;

	(void)state;
	begin(LOADED);
	put("/sys/module/nvidia_peermem/refcnt", "0\n");
	p = read_all();
	assert_int_equal(p.report.state, PP_SURFACE_READ);
	assert_int_equal(p.n, 0);
	assert_int_equal(pp_peermem_live(&p), 0);
	/* No refcnt either: /proc/modules has the same number. */
	begin(LOADED);
	dir("/sys/module/nvidia_peermem");
	p = read_all();
	assert_int_equal(p.references, 3);
	assert_int_equal(pp_peermem_live(&p), 3);
	/* A kernel that counts no references. */
	begin("nvidia_peermem 16384 - - Live 0x0000000000000000 (POE)\n");
	dir("/sys/module/nvidia_peermem");
	client("amdkfd", "5\n", "1\n");
	p = read_all();
	assert_int_equal(p.report.state, PP_SURFACE_CUT);
	assert_int_equal(p.references, -1);
	assert_int_equal(pp_peermem_live(&p), -1);
}

static void test_other_clients(void **state)
{
	struct pp_peermem p;

	(void)state;
	begin("nv_peer_mem 16384 2 - Live 0x0000000000000000 (OE)\n");
	put("/sys/module/nv_peer_mem/version", "1.3-0\n");
	put("/sys/module/nv_peer_mem/refcnt", "2\n");
	client("amdkfd", "5\n", "1\n");
	client("nv_mem", "2\n", "0\n");
	p = read_all();
	assert_string_equal(p.module, "nv_peer_mem");
	assert_string_equal(p.version, "1.3-0");
	assert_int_equal(pp_peermem_live(&p), 6);
	begin(NONE);
	client("amdkfd", "5\n", "1\n");
	p = read_all();
	assert_false(p.loaded);
	assert_int_equal(p.report.state, PP_SURFACE_READ);
	assert_int_equal(pp_peermem_live(&p), 4);
}

static void test_broken(void **state)
{
	struct pp_peermem p;
	char name[16];

	(void)state;
	begin(NONE);
	client("nv_mem", "many\n", "-4\n");
	p = read_all();
	assert_int_equal(p.report.state, PP_SURFACE_CUT);
	assert_int_equal(p.client[0].alloc_mrs, -1);
	assert_int_equal(p.client[0].dealloc_mrs, -1);
	assert_int_equal(pp_peermem_live(&p), -1);
	begin(NONE);
	for (int i = 0; i < PP_PEER_CLIENTS + 1; i++) {
		(void)snprintf(name, sizeof(name), "client%d", i);
		client(name, "1\n", "0\n");
	}
	p = read_all();
	assert_int_equal(p.n, PP_PEER_CLIENTS);
	assert_int_equal(p.report.state, PP_SURFACE_CUT);
}

static void test_none(void **state)
{
	struct pp_peermem p;

	(void)state;
	begin(NONE);
	p = read_all();
	assert_false(p.loaded);
	assert_int_equal(p.report.state, PP_SURFACE_ABSENT);
	assert_int_equal(p.references, -1);
	assert_int_equal(pp_peermem_live(&p), -1);
	/* A recording that holds no list of modules does not say that there is none. */
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	dir("/sys/kernel/mm");
	p = read_all();
	assert_false(p.loaded);
	assert_int_equal(p.report.state, PP_SURFACE_CUT);
	assert_non_null(strstr(p.report.why, "not known"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ofed),	      cmocka_unit_test(test_without_directory),
		cmocka_unit_test(test_other_clients), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("trace_peermem", tests, NULL, NULL);
}
