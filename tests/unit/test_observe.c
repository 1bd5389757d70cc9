/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observer's own code, linked: records of calls to functions made here, in a process that a
 * sanitizer can watch. tests/soft/observe.py has it as an auditor.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <jansson.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/observe/observe.h"

#undef ibv_reg_mr

static char folder[] = "/tmp/peerpath-observe-XXXXXX";
static struct ibv_device device = {.name = "mlx5_\"0\\"};
static struct ibv_context context = {.device = &device};
static struct ibv_pd pd = {.context = &context};
static struct ibv_mr mr = {.context = &context, .lkey = 0x1234, .rkey = 0x1235};

static struct ibv_mr *good(struct ibv_pd *p, void *address, size_t length, int access)
{
	assert_ptr_equal(p, &pd);
	assert_int_equal(length, 4096);
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
	mr.addr = address;
	return &mr;
}

static struct ibv_mr *refused(struct ibv_pd *p, void *address, size_t length, int access)
{
	(void)p;
	(void)address;
	(void)length;
	(void)access;
	errno = 524;
	return NULL;
}

static struct ibv_mr *by_descriptor(struct ibv_pd *p, uint64_t offset, size_t length, uint64_t iova,
				    int fd, int access)
{
	(void)p;
	(void)offset;
	(void)length;
	(void)iova;
	(void)access;
	errno = EBADF;
	return fd < 0 ? NULL : &mr;
}

static json_t *last_record(void)
{
	char path[256], host[65] = "", text[16384], *line = text, *next;
	ssize_t n;
	int fd;

	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(path, sizeof(path), "%s/%s-%ld.jsonl", folder, host, (long)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0 && n < (ssize_t)sizeof(text) - 1);
	(void)close(fd);
	text[n - 1] = '\0'; /* the last line break */
	while ((next = strchr(line, '\n')))
		line = next + 1;
	return json_loads(line, 0, NULL);
}

static const char *text_of(const json_t *record, const char *key)
{
	const char *text = json_string_value(json_object_get(record, key));

	return text ? text : "";
}

static int setup(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	struct link_map *map;

	(void)state;
	if (!libc || dlinfo(libc, RTLD_DI_LINKMAP, &map))
		return -1;
	observe_base_seen(map);
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("PEERPATH_OBSERVE", folder, 1), 0);
	return observe_line_setup() ? 0 : -1;
}

static int teardown(void **state)
{
	char path[256], host[65] = "";

	(void)state;
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(path, sizeof(path), "%s/%s-%ld.jsonl", folder, host, (long)getpid());
	(void)unlink(path);
	return rmdir(folder);
}

/* Each real function has its own watcher; beyond their number a call goes on unwatched. */
static void test_bindings(void **state)
{
	uintptr_t first = observe_call_bind("ibv_reg_mr", (uintptr_t)good);

	(void)state;
	assert_int_not_equal(first, (uintptr_t)good);
	assert_int_equal(observe_call_bind("ibv_reg_mr", (uintptr_t)good), first);
	assert_int_not_equal(observe_call_bind("ibv_reg_mr", (uintptr_t)refused), first);
	assert_int_equal(observe_call_bind("ibv_poll_cq", 77), 77);
	for (uintptr_t other = 2; other < 6; other++)
		(void)observe_call_bind("ibv_create_qp", other);
	assert_int_equal(observe_call_bind("ibv_create_qp", 6), 6);
}

static void test_address(void **state)
{
	__typeof__(&ibv_reg_mr) call =
		(__typeof__(&ibv_reg_mr))observe_call_bind("ibv_reg_mr", (uintptr_t)good);
	static char memory[4096];
	json_t *record;

	(void)state;
	assert_ptr_equal(call(&pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE), &mr);
	record = last_record();
	assert_string_equal(text_of(record, "call"), "ibv_reg_mr");
	assert_string_equal(text_of(record, "device"), "mlx5_?0?");
	assert_string_equal(text_of(record, "lkey"), "0x1234");
	assert_string_equal(text_of(record, "memory"), "host");
	assert_int_equal(json_integer_value(json_object_get(record, "length")), 4096);
	assert_null(json_object_get(record, "errno"));
	json_decref(record);
}

static void test_reserved(void **state)
{
	__typeof__(&ibv_reg_mr) call =
		(__typeof__(&ibv_reg_mr))observe_call_bind("ibv_reg_mr", (uintptr_t)refused);
	void *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	json_t *record;

	(void)state;
	assert_null(call(&pd, none, 4096, 0));
	record = last_record();
	assert_string_equal(text_of(record, "memory"), "reserved");
	assert_string_equal(text_of(record, "mapping"), "---p");
	assert_int_equal(json_integer_value(json_object_get(record, "errno")), 524);
	assert_null(json_object_get(record, "lkey"));
	json_decref(record);
	(void)munmap(none, 4096);
	assert_null(call(&pd, none, 4096, 0));
	record = last_record();
	assert_string_equal(text_of(record, "memory"), "unknown");
	json_decref(record);
}

static void test_descriptor(void **state)
{
	__typeof__(&ibv_reg_dmabuf_mr) call = (__typeof__(&ibv_reg_dmabuf_mr))observe_call_bind(
		"ibv_reg_dmabuf_mr", (uintptr_t)by_descriptor);
	int fd = memfd_create("observed", MFD_CLOEXEC);
	json_t *record;

	(void)state;
	assert_null(call(&pd, 0, 4096, 0, -1, 0));
	record = last_record();
	assert_int_equal(json_integer_value(json_object_get(record, "errno")), EBADF);
	assert_true(json_is_true(json_object_get(record, "probe")));
	json_decref(record);
	assert_ptr_equal(call(&pd, 64, 4096, 0x7f0000000000, fd, 0), &mr);
	record = last_record();
	assert_null(json_object_get(record, "probe"));
	assert_string_equal(text_of(record, "iova"), "0x7f0000000000");
	assert_int_equal(json_integer_value(json_object_get(record, "offset")), 64);
	json_decref(record);
	(void)close(fd);
}

/* A folder that is none is no reason to fail, and no relative one is taken. */
static void test_folder(void **state)
{
	(void)state;
	assert_int_equal(setenv("PEERPATH_OBSERVE", "relative", 1), 0);
	assert_false(observe_line_setup());
	assert_int_equal(unsetenv("PEERPATH_OBSERVE"), 0);
	assert_false(observe_line_setup());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bindings), cmocka_unit_test(test_address),
		cmocka_unit_test(test_reserved), cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_folder),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
