/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places for a run: what lives is left alone, what was left behind goes, and nothing else does.
 * The kernel is the judge: locks of processes that it has ended, owners, and what is there after.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle/tree.h"
#include "cli/place.h"

enum { NOBODY = 65534 };

static char here[] = "/tmp/test-place.XXXXXX";

static const char *below(const char *name, char *text)
{
	(void)snprintf(text, PATH_MAX, "%s/%s", here, name);
	return text;
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(here) && !setenv("TMPDIR", here, 1) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return pp_tree_remove(AT_FDCWD, here);
}

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* A process that makes one and executes another program, as a run does; *ret_path is its place. */
static pid_t run_with_place(char *ret_path)
{
	int said[2];
	pid_t pid;

	assert_int_equal(pipe(said), 0);
	pid = fork();
	if (!pid) {
		struct pp_place p;
		struct pp_error err;

		if (pp_place_make(PP_PLACE_SIMULATION, &p, &err))
			_exit(1);
		(void)mkdirat(p.fd, "sysfs", 0700);
		(void)close(said[0]);
		if (dup2(said[1], STDOUT_FILENO) < 0 || close(said[1]))
			_exit(1);
		/* It says the name when the program runs that has inherited the lock. */
		(void)execlp("sh", "sh", "-c", "echo \"$0\"; exec >&-; exec sleep 600", p.path,
			     (char *)NULL);
		_exit(1);
	}
	(void)close(said[1]);
	for (ssize_t n = 0, k; (k = read(said[0], ret_path + n, (size_t)(PATH_MAX - n))) > 0;)
		ret_path[n += k - (ret_path[n + k - 1] == '\n')] = '\0';
	(void)close(said[0]);
	return pid;
}

static void test_killed(void **state)
{
	char a[PATH_MAX] = "", b[PATH_MAX] = "", inner[PATH_MAX + 8];
	pid_t dies = run_with_place(a), lives = run_with_place(b);

	(void)state;
	(void)snprintf(inner, sizeof(inner), "%s/sysfs", b);
	assert_true(is_there(a));
	assert_true(is_there(inner));
	pp_place_sweep();
	assert_true(is_there(a));
	(void)kill(dies, SIGKILL);
	assert_int_equal(waitpid(dies, NULL, 0), dies);
	pp_place_sweep();
	assert_false(is_there(a));
	assert_true(is_there(inner));
	(void)kill(lives, SIGKILL);
	assert_int_equal(waitpid(lives, NULL, 0), lives);
	pp_place_sweep();
	assert_false(is_there(b));
}

static void test_others(void **state)
{
	static const char *const kept[] = {"peerpath-simulation.abc", "peerpath-simulation.abcdefg",
					   "peerpath-other.abcdef", "peerpath-simulation.abc.ef"};
	char path[PATH_MAX], target[PATH_MAX], link[PATH_MAX], file[PATH_MAX];
	bool root = geteuid() == 0;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		assert_int_equal(mkdir(below(kept[i], path), 0700), 0);
	assert_int_equal(mkdir(below("target", target), 0700), 0);
	assert_int_equal(mkdir(below("target/precious", path), 0700), 0);
	assert_int_equal(symlink(target, below("peerpath-nodes.linked", link)), 0);
	fd = open(below("peerpath-nodes.a_file", file), O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	/* Another user's: only root can give one away. */
	assert_int_equal(mkdir(below("peerpath-record.theirs", path), 0700), 0);
	root = root && !chown(path, NOBODY, NOBODY);
	assert_int_equal(mkdir(below("peerpath-record.mine00", path), 0700), 0);
	pp_place_sweep();
	assert_false(is_there(path));
	assert_int_equal(is_there(below("peerpath-record.theirs", path)), root);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		assert_true(is_there(below(kept[i], path)));
	assert_true(is_there(below("target/precious", path)));
	assert_true(is_there(link) && is_there(file));
}

static void test_where(void **state)
{
	struct pp_error err = {0};
	struct pp_place p = {.fd = -1};
	char path[PATH_MAX];
	struct stat st;

	(void)state;
	assert_int_equal(pp_place_make(PP_PLACE_NODES, &p, &err), 0);
	(void)below("peerpath-nodes.", path);
	assert_int_equal(strncmp(p.path, path, strlen(path)), 0);
	assert_int_equal(stat(p.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_true(pp_place_is(PP_PLACE_NODES, p.path));
	assert_false(pp_place_is(PP_PLACE_RECORD, p.path));
	assert_false(pp_place_is(PP_PLACE_NODES, "/etc/peerpath-nodes.abcdef"));
	assert_false(pp_place_is(PP_PLACE_NODES, "peerpath-nodes.abcdef"));
	(void)snprintf(path, sizeof(path), "%s", p.path);
	pp_place_done(&p);
	assert_false(is_there(path));
	pp_place_done(&p);

	assert_int_equal(setenv("TMPDIR", below("not-there", path), 1), 0);
	assert_int_equal(pp_place_make(PP_PLACE_NODES, &p, &err), -ENOENT);
	assert_non_null(strstr(err.text, "TMPDIR: "));
	assert_non_null(strstr(err.text, "/not-there: No such file or directory"));
	assert_int_equal(setenv("TMPDIR", "", 1), 0);
	assert_int_equal(pp_place_make(PP_PLACE_RECORD, &p, &err), 0);
	assert_int_equal(strncmp(p.path, "/tmp/peerpath-record.", 21), 0);
	pp_place_done(&p);
	assert_int_equal(setenv("TMPDIR", here, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
