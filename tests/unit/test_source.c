/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same small tree on disk and in memory must read alike; nothing leads out of a root.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/ask.h"
#include "node/helper.h"
#include "node/source.h"

static char dir[] = "/tmp/peerpath-source-XXXXXX";

static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s%s", dir, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

static void make(const char *path)
{
	char full[512];

	(void)snprintf(full, sizeof(full), "%s%s", dir, path);
	assert_int_equal(mkdir(full, 0755), 0);
}

static void ln(const char *target, const char *path)
{
	char full[512];

	(void)snprintf(full, sizeof(full), "%s%s", dir, path);
	assert_int_equal(symlink(target, full), 0);
}

static int setup(void **state)
{
	char full[512];

	(void)state;
	assert_non_null(mkdtemp(dir));
	make("/sys");
	make("/sys/class");
	make("/sys/devices");
	make("/sys/devices/d0");
	put("/sys/devices/d0/value", " 42\n");
	put("/sys/devices/d0/binary", "a\x01"
				      "b");
	ln("../devices/d0", "/sys/class/c0");
	ln("/sys/devices/d0", "/sys/class/absolute");
	ln("/etc/../../../../etc/passwd", "/sys/class/escape");
	ln("loop", "/sys/class/loop");
	(void)snprintf(full, sizeof(full), "%s/sys/class/fifo", dir);
	assert_int_equal(mkfifo(full, 0644), 0);
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void check_reading(struct pp_source *s)
{
	char text[64], real[PP_PATH_MAX];
	struct pp_names names;

	assert_int_equal(pp_source_text(s, "/sys/devices/d0/value", text, sizeof(text)), 0);
	assert_string_equal(text, "42");
	assert_int_equal(pp_source_text(s, "/sys/class/c0/value", text, sizeof(text)), 0);
	assert_string_equal(text, "42");
	assert_int_equal(pp_source_text(s, "/sys/class/absolute/value", text, sizeof(text)), 0);
	assert_int_equal(pp_source_text(s, "/sys/devices/d0/binary", text, sizeof(text)), -EBADMSG);
	assert_int_equal(pp_source_text(s, "/sys/devices/d0/value", text, 3), -EFBIG);
	assert_int_equal(pp_source_text(s, "/sys/devices/none", text, sizeof(text)), -ENOENT);
	assert_int_equal(pp_source_text(s, "/sys/class/loop", text, sizeof(text)), -ELOOP);
	assert_int_equal(pp_source_text(s, "/sys/../etc/passwd", text, sizeof(text)), -EINVAL);
	assert_int_equal(pp_source_real(s, "/sys/class/c0", real), 0);
	assert_string_equal(real, "/sys/devices/d0");
	assert_int_equal(pp_source_real(s, "/sys/devices/d0", real), 0);
	assert_string_equal(real, "/sys/devices/d0");
	assert_true(pp_source_exists(s, "/sys/class/c0"));
	assert_false(pp_source_exists(s, "/sys/class/c1"));
	assert_int_equal(pp_source_list(s, "/sys/devices/d0", &names), 0);
	assert_int_equal(names.n, 2);
	assert_string_equal(names.name[0], "binary");
	assert_string_equal(names.name[1], "value");
	pp_names_done(&names);
	assert_int_equal(pp_source_list(s, "/sys/none", &names), -ENOENT);
}

static void test_disk_and_record(void **state)
{
	struct pp_source *disk, *memory;
	struct pp_record *record;
	struct pp_error err;
	char text[64];

	(void)state;
	assert_int_equal(pp_source_replay_dir(dir, &disk, &err), 0);
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	pp_source_set_record(disk, record);
	check_reading(disk);
	/* These must not block, nor leave the root. */
	assert_int_equal(pp_source_text(disk, "/sys/class/fifo", text, sizeof(text)), -EINVAL);
	assert_int_equal(pp_source_text(disk, "/sys/class/escape", text, sizeof(text)), -ENOENT);
	pp_source_set_record(disk, NULL);
	/* What was recorded reads like what it was recorded from. */
	assert_int_equal(pp_source_replay_record(record, &memory, &err), 0);
	check_reading(memory);
	pp_source_free(memory);
	pp_source_free(disk);
}

struct seen {
	size_t pieces, bytes, longest;
	const char *keep, *last;
};

static enum pp_scan_step note(void *arg, const char *piece, size_t len)
{
	struct seen *seen = arg;

	assert_int_equal(piece[len], '\0');
	seen->pieces++;
	seen->bytes += len;
	seen->longest = len > seen->longest ? len : seen->longest;
	if (seen->last && !strcmp(piece, seen->last))
		return PP_SCAN_LAST;
	return seen->keep && strstr(piece, seen->keep) ? PP_SCAN_KEEP : PP_SCAN_DROP;
}

static int scan(struct pp_source *s, const char *path, size_t max, const char *section,
		struct seen *seen)
{
	const struct pp_scan scan = {.separator = section ? '\0' : '\n',
				     .max = max,
				     .section = section,
				     .filter = note,
				     .arg = seen};

	seen->pieces = seen->bytes = seen->longest = 0;
	return pp_source_scan(s, path, &scan);
}

/* 200000 numbered lines, as large files come: read in parts, pieces across their borders. */
static void test_scan(void **state)
{
	struct seen seen = {.keep = "7777"};
	struct pp_source *disk, *memory;
	struct pp_record *record;
	struct pp_error err;
	char full[512], text[64];
	FILE *f;

	(void)state;
	(void)snprintf(full, sizeof(full), "%s/sys/lines", dir);
	f = fopen(full, "w");
	assert_non_null(f);
	for (int i = 0; i < 200000; i++)
		assert_true(fprintf(f, "line %d\n", i) > 0);
	for (int i = 0; i < 3 * PP_SCAN_PIECE; i++)
		assert_true(fputc('x', f) != EOF);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(pp_source_replay_dir(dir, &disk, &err), 0);
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	pp_source_set_record(disk, record);
	assert_int_equal(scan(disk, "/sys/lines", 1 << 20, NULL, &seen), -EFBIG);
	assert_int_equal(scan(disk, "/sys/lines", 16 << 20, NULL, &seen), 0);
	assert_int_equal(seen.pieces, 200001);
	assert_int_equal(seen.longest, PP_SCAN_PIECE - 1);
	/* 5 and at most 6 digits: sum of "line N" over N, and the cut last piece. */
	assert_int_equal(seen.bytes,
			 200000 * 5 + (10 + 90 * 2 + 900 * 3 + 9000 * 4 + 90000 * 5 + 100000 * 6) +
				 PP_SCAN_PIECE - 1);
	assert_true(pp_source_exists(disk, "/sys/devices"));
	pp_source_set_record(disk, NULL);
	/* The recording holds the kept lines: 47777, 147777 and the like, 38 of them. */
	assert_int_equal(pp_source_replay_record(record, &memory, &err), 0);
	assert_int_equal(scan(memory, "/sys/lines", 16 << 20, NULL, &seen), 0);
	assert_int_equal(seen.pieces, 38);
	assert_true(pp_source_exists(memory, "/sys/devices"));
	assert_false(pp_source_exists(memory, "/sys/class"));
	seen.last = "line 17777";
	assert_int_equal(scan(memory, "/sys/lines", 16 << 20, NULL, &seen), 0);
	assert_int_equal(seen.pieces, 2); /* 7777, then the one that ends it */
	assert_int_equal(scan(memory, "/sys/none", 1, NULL, &seen), -ENOENT);
	assert_int_equal(scan(disk, "/sys/devices", 1, NULL, &seen), -EISDIR);
	assert_int_equal(pp_source_text(memory, "/sys/lines", text, sizeof(text)), -EFBIG);
	pp_source_free(memory);
	pp_source_free(disk);
}

/* This very program: its .rodata holds the words below, its .text does not. */
static void test_scan_section(void **state)
{
	struct seen seen = {.keep = "peerpath-mark-in-rodata"};
	struct pp_record *record;
	struct pp_source *live;
	struct pp_error err;
	char self[PP_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	assert_true(n > 0);
	self[n] = '\0';
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	assert_int_equal(pp_source_live(&live, &err), 0);
	pp_source_set_record(live, record);
	assert_int_equal(scan(live, self, 64 << 20, ".text", &seen), 0);
	assert_int_equal(pp_record_get(record, self)->len, 0);
	pp_record_free(record);
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	pp_source_set_record(live, record);
	assert_int_equal(scan(live, self, 64 << 20, ".rodata", &seen), 0);
	assert_non_null(strstr(pp_record_get(record, self)->content, seen.keep));
	pp_source_free(live);
	pp_record_free(record);
}

/* A file read through a link, and the link itself, in either order: neither displaces the other. */
static void test_record_links(void **state)
{
	static const char *const paths[] = {"/lib/a.so.1", "/lib/b.so.1"};
	struct pp_record *r;

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &r), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, paths[0], "x", 1, 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_LINK, paths[0], "c.so.1.2", 8, 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_LINK, paths[1], "../opt/d.so", 11, 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_ERROR, paths[1], NULL, 0, -EACCES), 0);
	assert_string_equal(pp_record_get(r, paths[0])->content, "c.so.1.2");
	assert_string_equal(pp_record_get(r, "/lib/c.so.1.2")->content, "x");
	assert_int_equal(pp_record_get(r, paths[1])->kind, PP_ENTRY_LINK);
	assert_int_equal(pp_record_get(r, "/opt/d.so")->error, -EACCES);
	/* Links in a circle lose the content, no more. */
	assert_int_equal(pp_record_put(r, PP_ENTRY_LINK, "/l", "l", 1, 0), 0);
	assert_int_equal(pp_record_put(r, PP_ENTRY_FILE, "/l", "x", 1, 0), 0);
	assert_int_equal(pp_record_get(r, "/l")->kind, PP_ENTRY_LINK);
	pp_record_free(r);
}

static void test_no_tree(void **state)
{
	struct pp_source *s;
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_source_replay_dir("/nonexistent", &s, &err), -ENOENT);
	assert_string_equal(err.text, "replay '/nonexistent': absent");
	assert_int_equal(pp_source_root("/etc/passwd", &s, &err), -ENOTDIR);
}

static int says_hello(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)arg;
	(void)err;
	(void)printf("noise that must not reach the output\n");
	pp_json_str(data, "hello", "world");
	return 0;
}

static int fails(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)arg;
	pp_json_i64(data, "partial", 7);
	return pp_error_set(err, -EIO, "no such luck");
}

static int blocks(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)data;
	(void)arg;
	(void)err;
	pp_ask_doing("nvmlInit_v2");
	(void)signal(SIGTERM, SIG_IGN);
	for (;;)
		(void)pause();
	return 0;
}

static int crashes(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)data;
	(void)arg;
	(void)err;
	pp_ask_doing("cuInit");
	(void)signal(SIGSEGV, SIG_DFL);
	(void)raise(SIGSEGV);
	return 0;
}

/* @arg: how many calls of 60 ms it names. */
static int goes_on(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const int *calls = arg;
	char call[32];

	(void)data;
	(void)err;
	for (int i = 0; i < *calls; i++) {
		(void)snprintf(call, sizeof(call), "call %d", i);
		pp_ask_doing(call);
		(void)usleep(60 * 1000);
	}
	return 0;
}

/* The deadline is each call's; the question has six of them, and ends with the run's. */
static void test_ask_slow(void **state)
{
	static const int few = 5, many = 1000;
	struct pp_question q = {
		.name = "t", .run = goes_on, .arg = &few, .deadline = 200 * PP_MILLISECOND};
	struct pp_source *live;
	struct pp_answer a;
	struct pp_error err;
	pp_ns before = pp_clock_monotonic();

	(void)state;
	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_ask(live, &q, &a), 0);
	assert_true(a.answered);
	pp_answer_done(&a);
	q.arg = &many;
	assert_int_equal(pp_ask(live, &q, &a), 0);
	assert_false(a.answered);
	assert_non_null(strstr(a.detail, "did not return in"));
	pp_answer_done(&a);
	/* No upper bound: the machine's own pauses count too; a hang is the test's time limit. */
	assert_true(pp_clock_monotonic() - before >= 1500 * PP_MILLISECOND);
	before = pp_clock_monotonic();
	pp_source_set_deadline(live, before + 300 * PP_MILLISECOND);
	assert_int_equal(pp_ask(live, &q, &a), 0);
	assert_false(a.answered);
	pp_answer_done(&a);
	assert_true(pp_clock_monotonic() - before >= 300 * PP_MILLISECOND);
	pp_source_free(live);
}

static void ask(int (*run)(struct pp_json *, const void *, struct pp_error *),
		struct pp_answer *answer)
{
	const struct pp_question q = {.name = "t", .run = run, .deadline = 300 * PP_MILLISECOND};
	struct pp_source *live;
	struct pp_error err;

	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_ask(live, &q, answer), 0);
	pp_source_free(live);
}

static int holds(struct pp_json *j, const void *arg, struct pp_error *err)
{
	(void)err;
	pp_json_bool(j, "holds", fcntl(*(const int *)arg, F_GETFD) >= 0);
	return 0;
}

static bool helper_holds(int fd)
{
	const struct pp_question q = {
		.name = "t", .run = holds, .arg = &fd, .deadline = 5 * PP_SECOND};
	struct pp_source *live;
	struct pp_answer a;
	struct pp_error err;
	bool held;

	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_ask(live, &q, &a), 0);
	assert_true(a.answered);
	held = json_is_true(json_object_get(a.data, "holds"));
	pp_answer_done(&a);
	pp_source_free(live);
	return held;
}

/* A socket that listens must not live on in a helper that is stuck. */
static void test_ask_sheds(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_true(helper_holds(fd));
	pp_helper_shed(fd);
	assert_false(helper_holds(fd));
	assert_true(fcntl(fd, F_GETFD) >= 0);
	pp_helper_shed_no_more(fd);
	assert_true(helper_holds(fd));
	(void)close(fd);
}

static void test_ask(void **state)
{
	struct pp_answer a;
	int64_t v;

	(void)state;
	ask(says_hello, &a);
	assert_true(a.answered);
	assert_string_equal(pp_answer_str(a.data, "hello"), "world");
	pp_answer_done(&a);
	ask(fails, &a);
	assert_false(a.answered);
	assert_string_equal(a.detail, "no such luck");
	assert_int_equal(pp_answer_i64(a.data, "partial", &v), 0);
	pp_answer_done(&a);
	ask(blocks, &a);
	assert_false(a.answered);
	assert_string_equal(a.detail, "nvmlInit_v2 did not return in 300 ms");
	pp_answer_done(&a);
	ask(crashes, &a);
	assert_false(a.answered);
	assert_string_equal(a.detail, "cuInit crashed with signal 11 (SEGV)");
	pp_answer_done(&a);
}

/* PID 1 of a container may reap nobody: what we have started is ours to reap. */
static void test_ask_reaps(void **state)
{
	static int (*const runs[])(struct pp_json *, const void *,
				   struct pp_error *) = {says_hello, fails, crashes, blocks};
	struct pp_answer a;
	unsigned int left;

	(void)state;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		/* A busy machine may let one be late; each time is none. */
		for (int k = 0; k < 10; k++) {
			ask(runs[i], &a);
			pp_answer_done(&a);
			for (left = 0; waitpid(-1, NULL, 0) > 0;)
				left++;
			assert_int_equal(errno, ECHILD);
			if (!left)
				break;
		}
		assert_int_equal(left, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk_and_record), cmocka_unit_test(test_scan),
		cmocka_unit_test(test_scan_section),	cmocka_unit_test(test_record_links),
		cmocka_unit_test(test_no_tree),		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_ask_sheds),	cmocka_unit_test(test_ask_slow),
		cmocka_unit_test(test_ask_reaps),
	};

	return cmocka_run_group_tests_name("source", tests, setup, teardown);
}
