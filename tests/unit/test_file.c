/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is put whole: whatever step of it the process ends at or fails at, and on a disk that is
 * full (a tmpfs of the kernel's). Each call that changes something comes by here: -Wl,--wrap.
 */
#include "base/buf.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "base/file.h"

enum { LEN = 1000, MOST_CALLS = 64 };

/* What happens to the calls of the code under test, while armed. */
static struct {
	bool armed, dies;
	int at, error; /* the call of this number fails so, or is the process's last */
	size_t chunk;  /* of a write; 0: as it comes */
	int n;
	const char *call[MOST_CALLS];
} world;

static char folder[] = "/tmp/peerpath-file-XXXXXX";
static const char *file; /* in it */
static char text_old[LEN], text_new[LEN];

/* True: it fails, errno says how. Ends the process before the call, or fails it. */
static bool struck(const char *call)
{
	if (!world.armed)
		return false;
	if (world.n < MOST_CALLS)
		world.call[world.n] = call;
	if (world.n++ != world.at)
		return false;
	if (world.dies)
		_exit(9);
	errno = world.error;
	return true;
}

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
int __real_close(int fd);
int __wrap_close(int fd);

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	if (struck("write"))
		return world.error ? -1 : 0;
	return __real_write(fd, bytes,
			    world.armed && world.chunk && world.chunk < len ? world.chunk : len);
}

/* As Linux does it: the descriptor is gone also where close(2) tells of an error. */
int __wrap_close(int fd)
{
	bool fails = struck("close");
	int error = errno, r = __real_close(fd);

	errno = fails ? error : errno;
	return fails ? -1 : r;
}

#define WRAP(name, params, args)                                \
	int __real_##name params;                               \
	int __wrap_##name params;                               \
	int __wrap_##name params                                \
	{                                                       \
		return struck(#name) ? -1 : __real_##name args; \
	}
WRAP(mkostemp, (char *name, int flags), (name, flags))
/* The same, where file offsets have 64 bits. */
WRAP(mkostemp64, (char *name, int flags), (name, flags))
WRAP(fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(fsync, (int fd), (fd))
WRAP(rename, (const char *from, const char *to), (from, to))
WRAP(unlink, (const char *name), (name))

static int replace(unsigned int how)
{
	int r;

	world.armed = true;
	r = pp_file_replace(file, text_new, LEN, 0644, how);
	world.armed = false;
	return r;
}

static void put(const char *name, const char *bytes, size_t len, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* Does the name hold this, whole? */
static bool holds(const char *name, const char *bytes)
{
	char found[LEN + 1];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof(found));

	if (fd >= 0)
		(void)close(fd);
	return n == LEN && !memcmp(found, bytes, LEN);
}

static unsigned int mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st.st_mode;
}

/* Names in a folder. */
static int count(const char *where)
{
	DIR *d = opendir(where);
	const struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(d);
	return n;
}

static void empty(void)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)closedir(d);
}

static int begin(void **state)
{
	static char path[sizeof(folder) + 8];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/f.prom", folder);
	file = path;
	memset(&world, 0, sizeof(world));
	world.at = -1;
	empty();
	put(file, text_old, LEN, 0600);
	return 0;
}

static void test_replaces(void **state)
{
	mode_t mask = umask(077);

	(void)state;
	for (unsigned int how = 0; how < 4; how++) {
		put(file, text_old, LEN, 0400);
		assert_int_equal(replace(how), 0);
		assert_true(holds(file, text_new));
		assert_int_equal(mode_of(file), S_IFREG | 0644);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(pp_file_replace(file, text_new, LEN, 0640, how), 0);
		assert_int_equal(mode_of(file), S_IFREG | 0640);
		assert_int_equal(count(folder), 1);
	}
	assert_int_equal(pp_file_replace(file, NULL, 0, 0600, 0), 0);
	assert_int_equal(mode_of(file), S_IFREG | 0600);
	assert_false(holds(file, text_new));
	(void)umask(mask);
}

/* What was opened before still reads the old content: it is another file. */
static void test_readers(void **state)
{
	char found[LEN];
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(replace(0), 0);
	assert_int_equal(read(fd, found, LEN), LEN);
	assert_memory_equal(found, text_old, LEN);
	(void)close(fd);
}

static void test_names(void **state)
{
	char longest[300], link[64], target[64];

	(void)state;
	(void)snprintf(target, sizeof(target), "%s/target", folder);
	(void)snprintf(link, sizeof(link), "%s/link", folder);
	put(target, text_old, LEN, 0600);
	assert_int_equal(symlink("target", link), 0);
	assert_int_equal(pp_file_replace(link, text_new, LEN, 0644, 0), 0);
	assert_int_equal(mode_of(link), S_IFREG | 0644);
	assert_true(holds(target, text_old));

	/* A name may have 255 bytes, the hidden one too. */
	(void)snprintf(longest, sizeof(longest), "%s/%0255d", folder, 7);
	assert_int_equal(pp_file_replace(longest, text_new, LEN, 0644, 0), 0);
	assert_true(holds(longest, text_new));
	(void)snprintf(longest, sizeof(longest), "%s/%0256d", folder, 7);
	assert_int_equal(pp_file_replace(longest, text_new, LEN, 0644, 0), -ENAMETOOLONG);

	assert_int_equal(chdir(folder), 0);
	assert_int_equal(pp_file_replace("here", text_new, LEN, 0644, 0), 0);
	assert_true(holds("here", text_new));
	assert_int_equal(chdir("/"), 0);

	/* Who has a pipe open would wait for ever; a device would be a file for all from then on.
	 */
	assert_int_equal((unlink(link), mkfifo(link, 0600)), 0);
	assert_int_equal(pp_file_replace(link, text_new, LEN, 0644, 0), -ENOTSUP);
	assert_int_equal(pp_file_replaceable(link), -ENOTSUP);
	assert_int_equal(mode_of(link), S_IFIFO | 0600);

	(void)snprintf(longest, sizeof(longest), "%s/", folder);
	assert_int_equal(pp_file_replace(longest, text_new, LEN, 0644, 0), -EISDIR);
	assert_int_equal(pp_file_replaceable(longest), -EISDIR);
	(void)snprintf(longest, sizeof(longest), "%s/none/f", folder);
	assert_int_equal(pp_file_replace(longest, text_new, LEN, 0644, 0), -ENOENT);
	assert_int_equal(pp_file_replace(longest, text_new, LEN, 0644, PP_REPLACE_CACHED), -ENOENT);
	assert_int_equal(pp_file_replaceable(longest), -ENOENT);
	assert_int_equal(pp_file_replace("", text_new, LEN, 0644, 0), -ENOENT);
	assert_int_equal(pp_file_replaceable(file), 0);
	assert_true(holds(file, text_old));
	assert_int_equal(count(folder), 5);
}

/* What a killed process left is replaced, and a link planted there is not written through. */
static void test_alone(void **state)
{
	char hidden[64], victim[64];

	(void)state;
	(void)snprintf(hidden, sizeof(hidden), "%s/.f.prom.new", folder);
	(void)snprintf(victim, sizeof(victim), "%s/victim", folder);
	put(hidden, text_old, 10, 0600);
	assert_int_equal(replace(PP_REPLACE_ALONE), 0);
	assert_int_equal(count(folder), 1);
	put(victim, text_old, LEN, 0600);
	assert_int_equal(symlink("victim", hidden), 0);
	assert_int_equal(replace(PP_REPLACE_ALONE), 0);
	assert_true(holds(victim, text_old));
	assert_true(holds(file, text_new));
	assert_int_equal(count(folder), 2);
}

static int place_of(const char *call, int from)
{
	for (int i = from; i < world.n && i < MOST_CALLS; i++)
		if (!strcmp(world.call[i], call))
			return i;
	return -1;
}

/* The content is on the disk before it has the name, the name before it is told. */
static void test_order(void **state)
{
	int written, synced, renamed;

	(void)state;
	world.chunk = 300;
	assert_int_equal(replace(0), 0);
	written = place_of("write", 0);
	synced = place_of("fsync", written);
	renamed = place_of("rename", 0);
	assert_true(written >= 0 && synced > written && renamed > synced);
	assert_int_equal(place_of("write", synced), -1);
	assert_true(place_of("fsync", renamed) > renamed);

	world.n = 0;
	assert_int_equal(replace(PP_REPLACE_CACHED), 0);
	assert_int_equal(place_of("fsync", 0), -1);
}

/* Ended before each of its calls in turn: old or new, each whole. */
static void crash_everywhere(unsigned int how)
{
	int before = 0, after = 0, status = 9;

	for (world.at = 0; status == 9; world.at++) {
		pid_t child;

		put(file, text_old, LEN, 0600);
		world.dies = true;
		world.chunk = 300;
		child = fork();
		assert_true(child >= 0);
		if (!child)
			_exit(replace(how) ? 1 : 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		status = WEXITSTATUS(status);
		before += holds(file, text_old);
		after += holds(file, text_new);
		assert_true(mode_of(file) == (holds(file, text_new) ? 0100644 : 0100600));
	}
	assert_int_equal(status, 0);
	assert_int_equal(before + after, world.at);
	assert_true(before >= 6 && after >= 1);
	print_message("%d calls end before, %d after\n", before, after);
}

static void test_crash(void **state)
{
	(void)state;
	crash_everywhere(0);
	crash_everywhere(PP_REPLACE_CACHED);
	empty();
	crash_everywhere(PP_REPLACE_ALONE);
	crash_everywhere(PP_REPLACE_ALONE | PP_REPLACE_CACHED);
	/* Of some twenty killed ones nothing is left. */
	assert_int_equal(count(folder), 1);
}

/* Each of its calls fails in turn: the old file and nothing else, or the new one where it says so.
 */
static void fail_everywhere(unsigned int how, int error)
{
	int calls, failed = 0;

	world.at = -1;
	world.n = 0;
	world.chunk = 300;
	assert_int_equal(replace(how), 0);
	calls = world.n;
	for (world.at = 0; world.at < calls; world.at++) {
		bool last;
		int r;

		put(file, text_old, LEN, 0600);
		world.error = error;
		world.n = 0;
		r = replace(how);
		last = place_of("rename", 0) >= 0 && place_of("rename", 0) < world.at;
		assert_true(!r || r == -error);
		assert_true(holds(file, r && !last ? text_old : text_new));
		assert_int_equal(count(folder), 1);
		failed += r != 0;
	}
	/* All but what it need not heed: of a name that is gone, and what is closed behind all
	 * else. */
	assert_true(failed >= 7 && failed >= calls - 2);
}

static void test_fails(void **state)
{
	(void)state;
	for (unsigned int how = 0; how < 4; how++) {
		fail_everywhere(how, EIO);
		fail_everywhere(how, ENOSPC);
	}
}

/* A signal ends no write; one that takes nothing is no endless loop. */
static void test_writes(void **state)
{
	(void)state;
	assert_int_equal(replace(0), 0);
	world.at = place_of("write", 0);
	assert_true(world.at >= 0);
	world.error = EINTR;
	world.n = 0;
	put(file, text_old, LEN, 0600);
	assert_int_equal(replace(0), 0);
	assert_true(holds(file, text_new));
	world.error = 0;
	world.n = 0;
	put(file, text_old, LEN, 0600);
	assert_int_equal(replace(0), -EIO);
	assert_true(holds(file, text_old));
	assert_int_equal(count(folder), 1);
}

static void test_reads(void **state)
{
	struct pp_buf whole = PP_BUF(100 << 10), small = PP_BUF(LEN - 1);
	static const char *const pieces[] = {"first ", "second"};
	int ends[2], fd = open(file, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pp_fd_read(fd, &small), -EFBIG);
	(void)close(fd);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pp_fd_read(fd, &whole), -EISDIR);
	(void)close(fd);
	assert_int_equal(pipe(ends), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(pieces); i++)
		assert_int_equal(pp_fd_write(ends[1], pieces[i], strlen(pieces[i])), 0);
	(void)close(ends[1]);
	assert_int_equal(pp_fd_read(ends[0], &whole), 0);
	(void)close(ends[0]);
	assert_string_equal(pp_buf_text(&whole), "first second");
	pp_buf_done(&whole);
	pp_buf_done(&small);
}

/* What a folder without fsync(2) says is no failure. */
static void test_no_folder_sync(void **state)
{
	(void)state;
	assert_int_equal(replace(0), 0);
	world.at = place_of("fsync", place_of("rename", 0));
	world.error = EINVAL;
	world.n = 0;
	assert_int_equal(replace(0), 0);
	assert_true(world.n > world.at);
}

static int in_child(int (*check)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int map_to_root(const char *map, unsigned int id)
{
	char path[64], text[32];
	int PP_AUTO_CLOSE fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/%s", map);
	(void)snprintf(text, sizeof(text), "0 %u 1", id);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : pp_fd_write(fd, text, strlen(text));
}

static int be_root_of_a_namespace(void)
{
	unsigned int user = geteuid(), group = getegid();
	int PP_AUTO_CLOSE groups = -1;

	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	groups = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
	return groups < 0 || pp_fd_write(groups, "deny", 4) || map_to_root("uid_map", user) ||
			       map_to_root("gid_map", group)
		       ? -EPERM
		       : 0;
}

/* 1: not as it should be, and says why. */
static int wrong(const char *what, int r)
{
	(void)fprintf(stderr, "%s: %d\n", what, r);
	return 1;
}

/* A disk of 64 KiB: 40 of the old file, and no room for as much again. */
static int on_a_full_disk(void)
{
	static char old[40 << 10], new[40 << 10];
	char found[sizeof(old)];
	int fd, r;

	if (be_root_of_a_namespace() || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, "size=64k"))
		return 77;
	memset(old, 'o', sizeof(old));
	memset(new, 'n', sizeof(new));
	r = pp_file_replace(file, old, sizeof(old), 0644, 0);
	if (r)
		return wrong("the first", r);
	for (unsigned int how = 0; how < 4; how++) {
		r = pp_file_replace(file, new, sizeof(new), 0644, how);
		if (r != -ENOSPC)
			return wrong("no room", r);
	}
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (read(fd, found, sizeof(found)) != sizeof(found) || memcmp(found, old, sizeof(old)) != 0)
		return wrong("the old one", fd);
	(void)close(fd);
	if (count(folder) != 1)
		return wrong("left beside it", count(folder));
	r = pp_file_replace(file, new, 16 << 10, 0644, 0);
	if (r)
		return wrong("less, that has room", r);
	if (mount("none", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL))
		return wrong("to read-only", errno);
	r = pp_file_replace(file, old, 1, 0644, 0);
	if (r != -EROFS || pp_file_replaceable(file) != -EROFS)
		return wrong("a read-only disk", r);
	return 0;
}

static void test_full_disk(void **state)
{
	int r = in_child(on_a_full_disk);

	(void)state;
	if (r == 77) {
		print_message("no file system can be mounted here\n");
		skip();
	}
	assert_int_equal(r, 0);
}

/* As somebody to whom permissions apply. */
static int with_permissions(void)
{
	int r;

	if (chdir(folder) || chmod(".", 0555) || chmod("f.prom", 0666))
		return wrong("preparing", errno);
	if (!geteuid() && (chown(".", 65534, 65534) || seteuid(65534)))
		return 77;
	r = pp_file_replace("f.prom", text_new, LEN, 0644, 0);
	if (r != -EACCES || pp_file_replaceable("f.prom") != -EACCES)
		return wrong("no writing into it", r);
	/* No listing of it is needed to write into it. */
	if (chmod(".", 0333))
		return wrong("chmod", errno);
	r = pp_file_replace("f.prom", text_new, LEN, 0644, 0);
	return r || !holds("f.prom", text_new) ? wrong("only writing into it", r) : 0;
}

static void test_permissions(void **state)
{
	int r = in_child(with_permissions);

	(void)state;
	assert_int_equal(chmod(folder, 0700), 0);
	if (r == 77) {
		print_message("nobody else can be played here\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_equal(count(folder), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_replaces, begin),
		cmocka_unit_test_setup(test_readers, begin),
		cmocka_unit_test_setup(test_names, begin),
		cmocka_unit_test_setup(test_alone, begin),
		cmocka_unit_test_setup(test_order, begin),
		cmocka_unit_test_setup(test_crash, begin),
		cmocka_unit_test_setup(test_fails, begin),
		cmocka_unit_test_setup(test_writes, begin),
		cmocka_unit_test_setup(test_reads, begin),
		cmocka_unit_test_setup(test_no_folder_sync, begin),
		cmocka_unit_test_setup(test_full_disk, begin),
		cmocka_unit_test_setup(test_permissions, begin),
	};
	int r;

	memset(text_old, 'o', LEN);
	memset(text_new, 'n', LEN);
	if (!mkdtemp(folder))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	empty();
	(void)rmdir(folder);
	return r;
}
