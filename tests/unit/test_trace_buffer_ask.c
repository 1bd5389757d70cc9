/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading of bufinfo: debugfs that is not mounted, a user who may not, and a file that does not
 * answer. The last is a file system of our own (FUSE) whose read never returns, as a kernel's does
 * whose driver hangs with an object's lock.
 */
#include "trace_tree.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "trace/buffer.h"

static const char DIRECTORY[] = "/sys/kernel/debug/dma_buf";
static const char BUFINFO[] = "/sys/kernel/debug/dma_buf/bufinfo";
static const char TEXT[] = "\nDma-buf Objects:\n"
			   "size    \tflags   \tmode    \tcount   \texp_name\tino     \tname\n"
			   "00065536\t00000002\t02080007\t00000002\tdrm\t00000007\tna\xef\x01me\n"
			   "\tAttached Devices:\n\t0000:3b:00.0\nTotal 1 devices attached\n\n\n"
			   "Total 1 objects, 65536 bytes\n";

static void ask(struct pp_source *s, struct pp_buffers *ret)
{
	struct pp_answer a;

	assert_int_equal(pp_buffers_ask(s, &a), 0);
	assert_int_equal(pp_buffers_read(&a, ret), 0);
	pp_answer_done(&a);
}

/* Asks of the tree and takes it away. */
static void ask_tree(struct pp_buffers *ret)
{
	struct pp_source *s = tree_source();

	ask(s, ret);
	pp_source_free(s);
	tree_done();
}

static void test_text(void **state)
{
	struct pp_buffers b;

	(void)state;
	tree_new();
	tree_file(BUFINFO, TEXT);
	ask_tree(&b);
	assert_int_equal(b.report.state, PP_SURFACE_READ);
	assert_int_equal(b.n, 1);
	/* Bytes that are no text do not reach the answer. */
	assert_string_equal(b.item[0].name, "na??me");
	assert_string_equal(b.attached[0], "0000:3b:00.0");
	pp_buffers_done(&b);
	tree_new();
	tree_file(BUFINFO, "another grammar\n");
	ask_tree(&b);
	assert_int_equal(b.report.state, PP_SURFACE_CUT);
	assert_non_null(strstr(b.report.why, "grammar"));
}

static void test_absent(void **state)
{
	struct pp_buffers b;

	(void)state;
	tree_new();
	tree_file("/proc/self/mounts", "sys /sys sysfs rw 0 0\n");
	ask_tree(&b);
	assert_int_equal(b.report.state, PP_SURFACE_ABSENT);
	assert_non_null(strstr(b.report.why, "not mounted"));
	assert_non_null(strstr(pp_surface_how(PP_SURFACE_BUFINFO, b.report.state),
			       "mount -t debugfs none /sys/kernel/debug"));
	tree_new();
	tree_file("/proc/self/mounts",
		  "sys /sys sysfs rw 0 0\nnone /sys/kernel/debug debugfs rw 0 0\n");
	ask_tree(&b);
	assert_int_equal(b.report.state, PP_SURFACE_ABSENT);
	assert_non_null(strstr(b.report.why, "this kernel has no"));
}

/* Longer than what is taken: the rest is known to be missing. */
static void test_long(void **state)
{
	static const char HEAD[] = "\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\n";
	static const char ROW[] = "00065536\t00000002\t02080007\t00000002\tdrm\n"
				  "\tAttached Devices:\nTotal 0 devices attached\n\n";
	size_t n = PP_BUFFER_TEXT_MAX / strlen(ROW) + 10;
	char *text = malloc(strlen(HEAD) + n * strlen(ROW) + 1), *p = text;
	struct pp_buffers b;

	(void)state;
	assert_non_null(text);
	p = stpcpy(p, HEAD);
	for (size_t i = 0; i < n; i++)
		p = stpcpy(p, ROW);
	tree_new();
	tree_file(BUFINFO, text);
	free(text);
	ask_tree(&b);
	assert_int_equal(b.report.state, PP_SURFACE_CUT);
	assert_true(b.n > 0 && b.n <= PP_BUFFERS_MAX);
	pp_buffers_done(&b);
}

static int refused_to_nobody(void)
{
	struct pp_source *s;
	struct pp_buffers b;

	if (setgid(65534) || setuid(65534))
		return 77;
	s = tree_source();
	ask(s, &b);
	pp_source_free(s);
	return b.report.state == PP_SURFACE_REFUSED &&
			       strstr(pp_surface_how(PP_SURFACE_BUFINFO, b.report.state), "root")
		       ? 0
		       : 1;
}

/* Status of a child that runs @check; 77: it cannot be had here. */
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

static void test_refused(void **state)
{
	char path[1024];
	int r;

	(void)state;
	tree_new();
	tree_file(BUFINFO, TEXT);
	tree_path(path, sizeof(path), "/sys/kernel/debug");
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chmod(tree_top, 0755), 0);
	r = in_child(refused_to_nobody);
	tree_done();
	if (r == 77) {
		print_message("another user cannot be taken here\n");
		skip();
	}
	assert_int_equal(r, 0);
}

static void reply(int fd, const struct fuse_in_header *in, int error, const void *body, size_t len)
{
	unsigned char bytes[512];
	const struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + len), .error = error, .unique = in->unique};

	memcpy(bytes, &out, sizeof(out));
	if (len)
		memcpy(bytes + sizeof(out), body, len);
	(void)!write(fd, bytes, sizeof(out) + len);
}

static struct fuse_attr attributes(uint64_t inode)
{
	return (struct fuse_attr){.ino = inode,
				  .mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0444,
				  .nlink = 1,
				  .size = inode == FUSE_ROOT_ID ? 0 : 4096};
}

/* A directory whose every name is one file that can be opened and is never read. */
static void serve(int fd)
{
	static unsigned char bytes[FUSE_MIN_READ_BUFFER + 65536];
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_write = 4096};
	const struct fuse_entry_out entry = {.nodeid = 2, .attr = attributes(2)};
	const struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
	struct fuse_attr_out attr = {0};
	struct fuse_in_header in;

	while (read(fd, bytes, sizeof(bytes)) >= (ssize_t)sizeof(in)) {
		memcpy(&in, bytes, sizeof(in));
		attr.attr = attributes(in.nodeid);
		switch (in.opcode) {
		case FUSE_INIT:
			reply(fd, &in, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			reply(fd, &in, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			reply(fd, &in, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			reply(fd, &in, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			reply(fd, &in, -ENOSYS, NULL, 0);
		}
	}
	_exit(0);
}

static int stuck(void)
{
	char path[1024], options[128];
	struct pp_source *s;
	struct pp_buffers b;
	int fd;
	pid_t server;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		return 77;
	(void)mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	tree_path(path, sizeof(path), DIRECTORY);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=%u,group_id=%u", fd,
		       geteuid(), getegid());
	if (fd < 0 || mount("stuck", path, "fuse", MS_NOSUID | MS_NODEV, options))
		return 77;
	server = fork();
	if (!server)
		serve(fd);
	(void)close(fd);
	s = tree_source();
	pp_source_set_deadline(s, pp_clock_monotonic() + 700 * PP_MILLISECOND);
	ask(s, &b);
	pp_source_free(s);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	(void)umount2(path, MNT_DETACH);
	if (b.report.state == PP_SURFACE_STUCK && strstr(b.report.why, BUFINFO))
		return 0;
	(void)fprintf(stderr, "%s: %s\n", pp_surface_state_name(b.report.state), b.report.why);
	return 1;
}

static void test_stuck(void **state)
{
	int r;

	(void)state;
	tree_new();
	tree_dir(DIRECTORY);
	r = in_child(stuck);
	tree_done();
	if (r == 77) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
	assert_int_equal(r, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),  cmocka_unit_test(test_absent),
		cmocka_unit_test(test_long),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_stuck),
	};

	return cmocka_run_group_tests_name("trace_buffer_ask", tests, NULL, NULL);
}
