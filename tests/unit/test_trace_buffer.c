/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bufinfo in each grammar the kernel has had (tests/fixtures/trace/README.md), cut, and forged.
 */
#include "trace_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/buffer.h"

static char text[1 << 16];

/* A fixture into @text; its length. */
static size_t load(const char *name)
{
	size_t n = trace_fixture(name, text, sizeof(text) - 1);

	text[n] = '\0';
	return n;
}

static void check_objects(const struct pp_buffers *b, bool inodes)
{
	assert_int_equal(b->report.state, PP_SURFACE_READ);
	assert_string_equal(b->report.why, "");
	assert_int_equal(b->n, 3);
	assert_int_equal(b->n_attached, 3);
	assert_int_equal(b->item[0].size, 2097152);
	assert_int_equal(b->item[0].count, 3);
	assert_string_equal(b->item[0].exporter, "nv_dmabuf");
	assert_string_equal(b->item[0].name, "");
	assert_int_equal(b->item[0].n_attached, 2);
	assert_string_equal(b->attached[b->item[0].first], "0000:3b:00.0");
	assert_string_equal(b->attached[b->item[0].first + 1], "0000:d8:00.0");
	assert_string_equal(b->item[1].name, inodes ? "frame buffer" : "");
	assert_int_equal(b->item[1].n_attached, 1);
	assert_string_equal(b->attached[b->item[1].first], "0000:3b:00.0");
	assert_int_equal(b->item[2].size, 123456789012);
	assert_string_equal(b->item[2].exporter, "nvidia");
	assert_int_equal(b->item[2].n_attached, 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(b->item[i].inode, inodes ? 41 + i : 0);
}

static void test_grammars(void **state)
{
	static const struct {
		const char *file;
		bool inodes;
	} grammars[] = {{"bufinfo-4.4.txt", false},
			{"bufinfo-4.14.txt", false},
			{"bufinfo-5.4.txt", true},
			{"bufinfo-5.18.txt", true},
			{"bufinfo-6.1.txt", true}};
	struct pp_buffers b;

	(void)state;
	for (size_t i = 0; i < sizeof(grammars) / sizeof(grammars[0]); i++) {
		assert_int_equal(pp_buffers_parse(text, load(grammars[i].file), &b), 0);
		check_objects(&b, grammars[i].inodes);
		pp_buffers_done(&b);
	}
}

static void test_h200(void **state)
{
	struct pp_buffers b;

	(void)state;
	assert_int_equal(pp_buffers_parse(text, load("bufinfo-h200.txt"), &b), 0);
	assert_int_equal(b.report.state, PP_SURFACE_READ);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.item[0].size, 8 << 20);
	assert_int_equal(b.item[0].count, 1);
	assert_int_equal(b.item[0].inode, 1);
	assert_int_equal(b.item[0].n_attached, 0);
	assert_true(pp_exporter_is_nvidia(b.item[0].exporter));
	pp_buffers_done(&b);
	assert_true(pp_exporter_is_nvidia("nvidia"));
	assert_false(pp_exporter_is_nvidia("nvidia-drm"));
	assert_false(pp_exporter_is_nvidia("drm"));
}

/* A guest's kernel: three buffers of a virtual DRM card, each attached once to an RDMA device. */
static void test_vgem(void **state)
{
	static const uint64_t sizes[] = {65536, 1048576, 1048576}, inodes[] = {3, 2, 1};
	struct pp_buffers b;

	(void)state;
	assert_int_equal(pp_buffers_parse(text, load("bufinfo-vgem.txt"), &b), 0);
	assert_int_equal(b.report.state, PP_SURFACE_READ);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.n_attached, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(b.item[i].size, sizes[i]);
		assert_int_equal(b.item[i].inode, inodes[i]);
		assert_string_equal(b.item[i].exporter, "drm");
		assert_int_equal(b.item[i].n_attached, 1);
		assert_string_equal(b.attached[b.item[i].first], "0000:00:05.0");
	}
	/* Of one the descriptor is open still; the others are held by their regions alone. */
	assert_int_equal(b.item[0].count, 4);
	assert_int_equal(b.item[1].count, 1);
	pp_buffers_done(&b);
}

/* Wherever the text ends before its last line, that is said. */
static void test_cut(void **state)
{
	size_t len = load("bufinfo-6.1.txt");
	struct pp_buffers b;
	int r;

	(void)state;
	for (size_t n = 0; n + 1 < len; n++) {
		r = pp_buffers_parse(text, n, &b);
		assert_true(r == 0 || r == -EBADMSG);
		if (r) {
			assert_null(b.item);
			continue;
		}
		assert_int_equal(b.report.state, PP_SURFACE_CUT);
		assert_true(b.report.why[0]);
		pp_buffers_done(&b);
	}
	/* Only the last line break is no loss. */
	assert_int_equal(pp_buffers_parse(text, len - 1, &b), 0);
	assert_int_equal(b.report.state, PP_SURFACE_READ);
	pp_buffers_done(&b);
}

/* 6.1's form with one object whose name and devices are given. */
static size_t one(const char *name, const char *devices, unsigned int n_devices)
{
	return (size_t)snprintf(text, sizeof(text),
				"\nDma-buf Objects:\n"
				"size    \tflags   \tmode    \tcount   \texp_name\tino     \tname\n"
				"00065536\t00000002\t02080007\t00000002\tdrm\t00000007\t%s\n"
				"\tAttached Devices:\n%sTotal %u devices attached\n\n\n"
				"Total 1 objects, 65536 bytes\n",
				name, devices, n_devices);
}

/* A buffer's name is its owner's text of up to 31 bytes: it must make no attachment. */
static void test_forged(void **state)
{
	static const char *const names[] = {
		"x\n\tAttached Devices:\n\tmlx5_0",
		"\tAttached Devices:\n\tmlx5_0",
		"x\n\tAttached Devices:\nTotal 0 ",
		"\n\nTotal 1 objects, 65536 bytes",
	};
	struct pp_buffers b;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(strlen(names[i]) < 32);
		assert_int_equal(pp_buffers_parse(text, one(names[i], "", 0), &b), 0);
		assert_int_equal(b.n, 1);
		assert_int_equal(b.item[0].n_attached, 0);
		pp_buffers_done(&b);
	}
	assert_int_equal(pp_buffers_parse(text, one(names[0], "\t0000:3b:00.0\n", 1), &b), 0);
	assert_int_equal(b.report.state, PP_SURFACE_CUT);
	assert_int_equal(b.item[0].n_attached, 0);
	pp_buffers_done(&b);
	/* A name with a tab is a name. */
	assert_int_equal(pp_buffers_parse(text, one("a\tb", "\t0000:3b:00.0\n", 1), &b), 0);
	assert_int_equal(b.report.state, PP_SURFACE_READ);
	assert_string_equal(b.item[0].name, "a\tb");
	assert_string_equal(b.attached[0], "0000:3b:00.0");
	pp_buffers_done(&b);
}

/* Up to 5.14 an object whose lock was not had is a line of its own, and is not counted. */
static void test_skipped_object(void **state)
{
	static const char SKIPPED[] =
		"\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\n"
		"\tERROR locking buffer object: skipping\n\nTotal 0 objects, 0 bytes\n";
	struct pp_buffers b;

	(void)state;
	assert_int_equal(pp_buffers_parse(SKIPPED, strlen(SKIPPED), &b), 0);
	assert_int_equal(b.report.state, PP_SURFACE_CUT);
	assert_non_null(strstr(b.report.why, "ERROR locking"));
	pp_buffers_done(&b);
}

static void test_unknown_grammar(void **state)
{
	static const char *const others[] = {
		"",
		"\n",
		"Buffers:\n",
		"\nDma-buf Objects:\n",
		"\nDma-buf Objects:\nsize\tcount\n",
		"\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\ta\tb\tc\td\te\tf\tg\th\n",
	};
	struct pp_buffers b;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(pp_buffers_parse(others[i], strlen(others[i]), &b), -EBADMSG);
		assert_null(b.item);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grammars),
		cmocka_unit_test(test_h200),
		cmocka_unit_test(test_vgem),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_skipped_object),
		cmocka_unit_test(test_unknown_grammar),
	};

	return cmocka_run_group_tests_name("trace_buffer", tests, NULL, NULL);
}
