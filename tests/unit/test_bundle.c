/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes into a bundle comes out of it, as an archive and as a directory, and reads alike
 * through a source.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/bundle.h"
#include "bundle/replay.h"

static char top[] = "/tmp/peerpath-bundle-XXXXXX";

static const char *in_top(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void add(struct pp_record *r, enum pp_entry_kind kind, const char *path, const char *text,
		int error)
{
	assert_int_equal(pp_record_put(r, kind, path, text, text ? strlen(text) : 0, error), 0);
}

/* As collectors leave it: some paths through a class link, the link read later or earlier. */
static struct pp_record *example(void)
{
	struct pp_record *r;

	assert_int_equal(pp_record_new((size_t)1 << 20, &r), 0);
	add(r, PP_ENTRY_DIR, "/sys/class/net", NULL, 0);
	add(r, PP_ENTRY_DIR, "/sys/class/net/eth0", NULL, 0);
	add(r, PP_ENTRY_FILE, "/sys/class/net/eth0/mtu", "9000\n", 0);
	add(r, PP_ENTRY_ERROR, "/sys/class/net/eth0/speed", NULL, -EINVAL);
	add(r, PP_ENTRY_LINK, "/sys/class/net/eth0", "../../devices/pci0/net/eth0", 0);
	add(r, PP_ENTRY_ERROR, "/sys/kernel/debug", NULL, -EACCES);
	add(r, PP_ENTRY_FILE, "/etc/os-release", "ID=debian\n", 0);
	add(r, PP_ENTRY_LINK, "/etc/os-release", "../usr/lib/os-release", 0);
	add(r, PP_ENTRY_FILE, "/proc/1/environ", "SECRET=1", 0);
	add(r, PP_ENTRY_ANSWER, "uname", "{\"outcome\": \"answered\"}", 0);
	return r;
}

static void check_source(const char *path)
{
	struct pp_source *s;
	struct pp_names names;
	struct pp_error err = {0};
	char text[128];
	char *answer = NULL;
	size_t len = 0;

	if (pp_replay_open(path, &s, &err))
		fail_msg("%s", err.text);
	(void)snprintf(text, sizeof(text), "replay %s", path);
	assert_string_equal(pp_source_name(s), text);
	assert_int_equal(pp_source_text(s, "/sys/class/net/eth0/mtu", text, sizeof(text)), 0);
	assert_string_equal(text, "9000");
	assert_int_equal(pp_source_text(s, "/sys/devices/pci0/net/eth0/mtu", text, sizeof(text)),
			 0);
	/* What could not be read stays so, by either path, and is no absence. */
	assert_int_equal(pp_source_text(s, "/sys/class/net/eth0/speed", text, sizeof(text)),
			 -EINVAL);
	assert_int_equal(pp_source_text(s, "/sys/devices/pci0/net/eth0/speed", text, sizeof(text)),
			 -EINVAL);
	assert_int_equal(pp_source_list(s, "/sys/kernel/debug", &names), -EACCES);
	assert_int_equal(pp_source_list(s, "/sys/kernel", &names), 0);
	assert_int_equal(names.n, 1);
	pp_names_done(&names);
	assert_int_equal(pp_source_text(s, "/sys/kernel/none", text, sizeof(text)), -ENOENT);
	assert_int_equal(pp_source_text(s, "/etc/os-release", text, sizeof(text)), 0);
	assert_string_equal(text, "ID=debian");
	assert_int_equal(pp_source_link(s, "/etc/os-release", text, sizeof(text)), 0);
	assert_string_equal(text, "../usr/lib/os-release");
	/* The environment of another process is nobody's business. */
	assert_int_equal(pp_source_text(s, "/proc/1/environ", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(pp_source_answer(s, "uname", &answer, &len), 0);
	assert_string_equal(answer, "{\"outcome\": \"answered\"}");
	free(answer);
	pp_source_free(s);
}

static int write_to(const char *path, bool force, struct pp_error *err)
{
	struct pp_record *r = example();
	const struct pp_bundle_file file = {"result.json", "{}", 2};
	const struct pp_bundle_content content = {.record = r, .files = &file, .n_files = 1};
	const struct pp_bundle_options options = {.host = "n1", .force = force};
	struct pp_bundle_written written;
	int e = pp_bundle_write(path, &content, &options, &written, err);

	if (!e) {
		assert_int_equal(written.errors, 3); /* one of them by two paths */
		assert_int_equal(written.dropped, 0);
		assert_int_equal(strlen(written.id), 16);
	}
	pp_record_free(r);
	return e;
}

static void check_bundle(const char *path)
{
	const struct pp_bundle_file *file;
	const struct pp_manifest *m;
	struct pp_bundle *b;
	struct pp_error err = {0};

	if (pp_bundle_open(path, &b, &err))
		fail_msg("%s", err.text);
	m = pp_bundle_manifest(b);
	assert_string_equal(m->host, "n1");
	assert_string_equal(m->version, PEERPATH_VERSION);
	assert_true(m->complete);
	file = pp_bundle_file(b, "result.json");
	assert_non_null(file);
	assert_string_equal(file->data, "{}");
	assert_null(pp_bundle_file(b, "facts.json"));
	pp_bundle_free(b);
}

static void test_archive(void **state)
{
	const char *path = in_top("a.tar.zst");
	struct pp_error err = {0};
	struct stat st;

	(void)state;
	if (write_to(path, false, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	check_bundle(path);
	check_source(path);
	assert_int_equal(write_to(path, false, &err), -EEXIST);
	assert_non_null(strstr(err.text, "--force"));
	assert_int_equal(write_to(path, true, &err), 0);
	check_bundle(path);
}

static void test_directory(void **state)
{
	const char *path = in_top("dir");
	struct pp_error err = {0};
	char file[320];
	struct stat st;

	(void)state;
	if (write_to(path, false, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	check_bundle(path);
	check_source(path);
	/* Without its manifest it is a capture directory, read from the disk: the same. */
	(void)snprintf(file, sizeof(file), "%s/manifest.json", path);
	assert_int_equal(write_to(path, true, &err), 0);
	assert_int_equal(unlink(file), 0);
	check_source(path);
	assert_int_equal(write_to(path, true, &err), -EEXIST);
	assert_non_null(strstr(err.text, "no bundle: not replaced"));
}

static void test_force_spares_others(void **state)
{
	struct pp_error err = {0};
	char path[256], file[320];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/home", top);
	(void)snprintf(file, sizeof(file), "%s/letter", path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mkdir(file, 0755), 0);
	assert_int_equal(write_to(path, true, &err), -EEXIST);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(rmdir(file), 0);
	assert_int_equal(write_to(path, true, &err), 0); /* empty */
	check_bundle(path);
}

static bool stop_soon(void)
{
	static int calls;

	return ++calls > 3;
}

static unsigned int names_in(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

static void test_stopped(void **state)
{
	static const char *const names[] = {"x.tar.zst", "x"};
	struct pp_bundle_written written;
	struct pp_error err = {0};
	char dir[256], path[300];

	(void)state;
	(void)snprintf(dir, sizeof(dir), "%s/stopped", top);
	assert_int_equal(mkdir(dir, 0755), 0);
	for (size_t i = 0; i < 2; i++) {
		struct pp_record *r = example();
		const struct pp_bundle_content content = {.record = r};
		const struct pp_bundle_options options = {.stopped = stop_soon};

		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(pp_bundle_write(path, &content, &options, &written, &err), -EINTR);
		assert_string_equal(err.text, "interrupted: nothing was written");
		assert_int_equal(names_in(dir), 0);
		pp_record_free(r);
	}
}

static void test_bad_targets(void **state)
{
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(write_to("/nonexistent/x.tar.zst", false, &err), -ENOENT);
	assert_int_equal(write_to(in_top(".."), false, &err), -EINVAL);
	assert_int_equal(write_to("", false, &err), -EINVAL);
}

/* A hostile record: loops, files below files, odd names. Nothing crashes, losses are counted. */
static void test_odd_record(void **state)
{
	struct pp_bundle_written written;
	struct pp_record *r;
	struct pp_bundle *b;
	struct pp_error err = {0};
	const char *path = in_top("odd.tar.zst");

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &r), 0);
	add(r, PP_ENTRY_LINK, "/a", "b", 0);
	add(r, PP_ENTRY_LINK, "/b", "a", 0);
	add(r, PP_ENTRY_FILE, "/a/x", "lost", 0);
	add(r, PP_ENTRY_FILE, "/f", "file", 0);
	add(r, PP_ENTRY_FILE, "/f/x", "lost", 0);
	add(r, PP_ENTRY_FILE, "/new\nline", "lost", 0);
	add(r, PP_ENTRY_FILE, "/latin\xe9", "lost", 0);
	add(r, PP_ENTRY_FILE, "/utf-\xc3\xa9", "kept", 0);
	add(r, PP_ENTRY_LINK, "/far", "/../../../etc/passwd", 0);
	add(r, PP_ENTRY_ERROR, "/odd", NULL, -4095);
	add(r, PP_ENTRY_ANSWER, "../escape", "lost", 0);
	assert_int_equal(pp_bundle_write(path, &(struct pp_bundle_content){.record = r},
					 &(struct pp_bundle_options){0}, &written, &err),
			 0);
	assert_int_equal(written.dropped, 5);
	if (pp_bundle_open(path, &b, &err))
		fail_msg("%s", err.text);
	assert_false(pp_bundle_manifest(b)->complete);
	assert_int_equal(pp_record_get(pp_bundle_record(b), "/f")->kind, PP_ENTRY_FILE);
	assert_int_equal(pp_record_get(pp_bundle_record(b), "/odd")->error, -EIO);
	assert_non_null(pp_record_get(pp_bundle_record(b), "/utf-\xc3\xa9"));
	pp_bundle_free(b);
	pp_record_free(r);
}

static void test_no_bundle(void **state)
{
	struct pp_source *s;
	struct pp_bundle *b;
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_replay_open("/nonexistent.tar.zst", &s, &err), -ENOENT);
	assert_int_equal(pp_replay_open("/etc/passwd", &s, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "not zstd data"));
	assert_int_equal(pp_bundle_open("/dev/null", &b, &err), -EBADMSG);
	assert_int_equal(pp_bundle_open(top, &b, &err), -EBADMSG);
}

/* A record that was full: what it lacks is not absent, and a listing that lost a name is none. */
static void test_cut(void **state)
{
	enum { CHILDREN = 4000, CUT_AT = 70000 };
	struct pp_record *all, *part, *copy;
	struct pp_source *src, *replay;
	struct pp_names names = {0};
	struct pp_error err = {0};
	char path[64], text[64];
	size_t n;

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &all), 0);
	for (int i = 0; i < CHILDREN; i++) {
		(void)snprintf(path, sizeof(path), "/sys/bus/devices/%05d/vendor", i);
		assert_int_equal(pp_record_put(all, PP_ENTRY_FILE, path, "0x15b3", 6, 0), 0);
	}
	assert_int_equal(pp_source_replay_record(all, &src, &err), 0);
	assert_int_equal(pp_record_new(CUT_AT, &part), 0);
	pp_source_set_record(src, part);
	assert_int_equal(pp_source_text(src, "/sys/bus/devices/00000/vendor", text, sizeof(text)),
			 0);
	assert_int_equal(pp_source_list(src, "/sys/bus/devices", &names), 0);
	assert_int_equal(names.n, CHILDREN);
	pp_names_done(&names);
	assert_true(pp_record_cut(part) > 0);
	pp_source_free(src);

	assert_int_equal(pp_source_replay_record(part, &replay, &err), 0);
	assert_true(pp_source_cut(replay));
	assert_int_equal(
		pp_source_text(replay, "/sys/bus/devices/00000/vendor", text, sizeof(text)), 0);
	assert_int_equal(pp_source_list(replay, "/sys/bus/devices", &names), -ENODATA);
	assert_int_equal(pp_source_list(replay, "/sys/class", &names), -ENODATA);
	assert_int_equal(pp_source_link(replay, "/sys/class/x", text, sizeof(text)), -ENODATA);
	assert_int_equal(
		pp_source_text(replay, "/sys/bus/devices/03999/vendor", text, sizeof(text)),
		-ENODATA);
	/* and a copy of it is no better */
	assert_int_equal(pp_record_new(CUT_AT, &copy), 0);
	n = pp_record_cut(copy);
	pp_source_set_record(replay, copy);
	assert_true(n == 0 && pp_record_cut(copy) > 0);
	pp_source_free(replay);
	pp_record_free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_archive),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_force_spares_others),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_bad_targets),
		cmocka_unit_test(test_odd_record),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_no_bundle),
	};

	return cmocka_run_group_tests_name("bundle", tests, setup, teardown);
}
