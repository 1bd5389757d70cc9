/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log files as logrotate(8) and its `copytruncate` treat them: renamed, replaced, copied and
 * truncated, and a reader that was away. Every line once, none twice, none in half.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/tail.h"

struct heard {
	char text[8192];
	uint64_t skipped;
	size_t lines;
	int answer;
};

struct world {
	char dir[64], path[80], glob[96];
	const char *globs[2];
	struct pp_tails *tails;
	struct heard heard;
};

static int each(void *ctx, const struct pp_tail_line *line, uint64_t skipped)
{
	struct heard *h = ctx;
	size_t at = strlen(h->text);

	assert_int_equal(line->text[line->len], 0);
	h->skipped += skipped;
	h->lines++;
	(void)snprintf(h->text + at, sizeof(h->text) - at, "%.40s|", line->text);
	return h->answer;
}

static void put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/peerpath-tail-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->path, sizeof(w->path), "%s/job.log", w->dir);
	(void)snprintf(w->glob, sizeof(w->glob), "%s/job.log*", w->dir);
	w->globs[0] = w->glob;
	w->tails = calloc(1, sizeof(*w->tails));
	assert_non_null(w->tails);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	static const char *const names[] = {"job.log",	       "job.log.1",    "job.log.2",
					    "job.log.fifo",    "job.log.null", "job.log.proc",
					    "job.log.sys",     "job.log.sock", "job.log.latest",
					    "job.log.latest2", "job.log.gone"};
	char path[96];

	pp_tails_done(w->tails);
	free(w->tails);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", w->dir, names[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

/* What a look hears. */
static const char *hear(struct world *w, const char *recalled)
{
	w->heard = (struct heard){0};
	assert_int_equal(pp_tails_read(w->tails, w->globs, recalled, each, &w->heard), 0);
	return w->heard.text;
}

static const char *renamed(struct world *w, const char *end)
{
	static char path[96];

	(void)snprintf(path, sizeof(path), "%s%s", w->path, end);
	return path;
}

static void test_history_is_no_news(void **state)
{
	struct world *w = *state;

	put(w->path, "old\n", 0);
	assert_string_equal(hear(w, NULL), "");
	put(w->path, "new\nhal", O_APPEND);
	assert_string_equal(hear(w, NULL), "new|");
	put(w->path, "f\n", O_APPEND);
	assert_string_equal(hear(w, NULL), "half|");
	assert_string_equal(hear(w, NULL), "");
	put(renamed(w, ".2"), "a file that comes later is read whole\n", 0);
	assert_string_equal(hear(w, NULL), "a file that comes later is read whole|");
}

static void test_rotation(void **state)
{
	struct world *w = *state;

	put(w->path, "a\n", 0);
	(void)hear(w, NULL);
	put(w->path, "b\n", O_APPEND);
	assert_int_equal(rename(w->path, renamed(w, ".1")), 0);
	put(w->path, "c\n", 0);
	/* The old one by its new name, to its end, and the new one from its start. */
	assert_non_null(strstr(hear(w, NULL), "b|"));
	assert_non_null(strstr(w->heard.text, "c|"));
	assert_int_equal(w->heard.lines, 2);
	put(renamed(w, ".1"), "late\n", O_APPEND);
	assert_string_equal(hear(w, NULL), "late|");
	/* A name that no glob has: what it still held is read, then it is let go. */
	put(renamed(w, ".1"), "last\n", O_APPEND);
	w->globs[0] = w->path;
	assert_int_equal(w->tails->n, 2);
	assert_string_equal(hear(w, NULL), "last|");
	assert_int_equal(w->tails->n, 1);
}

static void test_copytruncate(void **state)
{
	struct world *w = *state;

	put(w->path, "first line\nsecond line\n", 0);
	(void)hear(w, NULL);
	put(w->path, "n\n", O_TRUNC);
	assert_string_equal(hear(w, NULL), "n|");
	/* Truncated and grown beyond where we stood, between two looks. */
	put(w->path, "another beginning\nand more\n", O_TRUNC);
	assert_string_equal(hear(w, NULL), "another beginning|and more|");
	put(w->path, "", O_TRUNC);
	assert_string_equal(hear(w, NULL), "");
	put(w->path, "x\n", O_APPEND);
	assert_string_equal(hear(w, NULL), "x|");
}

static void test_restart(void **state)
{
	struct world *w = *state;
	struct pp_buf PP_AUTO_BUF kept = PP_BUF(4096);

	put(w->path, "seen\nhal", 0);
	(void)hear(w, NULL);
	put(w->path, "f\nthe last li", O_APPEND);
	assert_string_equal(hear(w, NULL), "f|"); /* of a line that began before we did */
	pp_tails_write(w->tails, &kept);
	pp_tails_done(w->tails);
	put(w->path, "ne\nwhile away\n", O_APPEND);
	assert_int_equal(rename(w->path, renamed(w, ".1")), 0);
	put(w->path, "born while away\n", 0);
	assert_non_null(strstr(hear(w, pp_buf_text(&kept)), "the last line|while away|"));
	assert_non_null(strstr(w->heard.text, "born while away|"));
	assert_int_equal(w->heard.lines, 3);
	assert_string_equal(hear(w, pp_buf_text(&kept)), "");
}

/* Nothing was there at the last look: what appears while nobody looks is new all the same. */
static void test_restart_from_nothing(void **state)
{
	struct world *w = *state;
	struct pp_buf PP_AUTO_BUF kept = PP_BUF(4096);

	assert_string_equal(hear(w, NULL), "");
	pp_tails_write(w->tails, &kept);
	pp_tails_done(w->tails);
	assert_true(kept.len > 0);
	put(w->path, "born while away\n", 0);
	assert_string_equal(hear(w, pp_buf_text(&kept)), "born while away|");
}

static void test_recalled_is_anything(void **state)
{
	static const char *const texts[] = {"",
					    " ",
					    ":",
					    "1:2:3",
					    "1:2:3:4:5:6",
					    "x:y:z:w:v",
					    "18446744073709551616:1:1:1:1",
					    "1:2:3:999999:5 ",
					    "::::",
					    "1:2:3:4:5 1:2:3:4:5"};
	struct world *w = *state;

	put(w->path, "text\n", 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_string_equal(hear(w, texts[i]), "text|");
		pp_tails_done(w->tails);
	}
}

static void test_hostile(void **state)
{
	struct world *w = *state;
	char *line = malloc(PP_TAIL_LINE * 3);

	assert_non_null(line);
	put(w->path, "", 0);
	assert_int_equal(mkfifo(renamed(w, ".fifo"), 0600), 0); /* would block who opens it */
	assert_string_equal(hear(w, NULL), "");
	assert_int_equal(w->tails->n_refusals, 1);
	memset(line, 'z', PP_TAIL_LINE * 3);
	line[PP_TAIL_LINE * 3 - 2] = '\n';
	line[PP_TAIL_LINE * 3 - 1] = '\0';
	put(w->path, line, O_APPEND);
	put(w->path, "behind it\n\n\n", O_APPEND);
	(void)hear(w, NULL);
	assert_int_equal(w->heard.lines, 2); /* its start, once; empty lines are none */
	assert_non_null(strstr(w->heard.text, "|behind it|"));
	free(line);
}

static void link_to(struct world *w, const char *to, const char *end)
{
	assert_int_equal(symlink(to, renamed(w, end)), 0);
}

static const char *why_refused(const struct world *w, const char *end)
{
	for (size_t i = 0; i < w->tails->n_refusals; i++)
		if (strstr(w->tails->refusal[i].path, end))
			return w->tails->refusal[i].why;
	return "not refused";
}

/* What the kernel says of opens: nobody may open what is not read, be it for a moment. */
static void watch(int watch_fd, const char *path)
{
	assert_true(inotify_add_watch(watch_fd, path, IN_OPEN) >= 0);
}

static void test_special_files(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct world *w = *state;
	int opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char event[4096];

	assert_int_equal(mkfifo(renamed(w, ".fifo"), 0600), 0);
	watch(opens, renamed(w, ".fifo"));
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s", renamed(w, ".sock"));
	assert_int_equal(bind(sock, (const struct sockaddr *)&name, sizeof(name)), 0);
	link_to(w, "/dev/null", ".null");
	link_to(w, "/proc/self/status", ".proc");
	link_to(w, "/sys/kernel/notes", ".sys");
	watch(opens, "/proc/self/status");
	put(w->path, "", 0);
	assert_string_equal(hear(w, NULL), "");
	assert_string_equal(why_refused(w, ".fifo"), "a pipe");
	assert_string_equal(why_refused(w, ".sock"), "a socket");
	assert_string_equal(why_refused(w, ".null"), "a character device");
	assert_string_equal(why_refused(w, ".proc"), "a file of the kernel's");
	if (!access("/sys/kernel/notes", F_OK))
		assert_string_equal(why_refused(w, ".sys"), "a file of the kernel's");
	assert_string_equal(w->tails->why, "");
	assert_int_equal(w->tails->n, 1);
	assert_int_equal(read(opens, event, sizeof(event)), -1);
	assert_int_equal(errno, EAGAIN);
	/* Once. */
	assert_string_equal(hear(w, NULL), "");
	assert_int_equal(w->tails->n_refusals, 0);
	(void)close(sock);
	(void)close(opens);
}

static void test_links(void **state)
{
	struct world *w = *state;

	put(w->path, "old\n", 0);
	link_to(w, "job.log", ".latest");
	link_to(w, w->path, ".latest2");
	link_to(w, "nowhere", ".gone");
	assert_string_equal(hear(w, NULL), "");
	put(w->path, "new\n", O_APPEND);
	assert_string_equal(hear(w, NULL), "new|");
	assert_int_equal(w->tails->n, 1);
	assert_string_equal(w->tails->file[0].path, w->path);
	assert_non_null(strstr(w->tails->why, ".gone: No such file"));
	/* The link leads on to the next job's log, which nothing else names. */
	put(renamed(w, ".1"), "next\n", 0);
	assert_int_equal(unlink(renamed(w, ".latest")), 0);
	link_to(w, "job.log.1", ".latest");
	w->globs[0] = renamed(w, ".lates?");
	assert_string_equal(hear(w, NULL), "next|");
}

/* More than is read at one look is read at the next ones; far too much is left out and told. */
static void test_bounds(void **state)
{
	struct world *w = *state;
	int fd;

	put(w->path, "start\n", 0);
	(void)hear(w, NULL);
	fd = open(w->path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 6 + 3 * PP_TAIL_ROUND), 0);
	assert_int_equal(pwrite(fd, "\nend\n", 5, 6 + 3 * PP_TAIL_ROUND), 5);
	assert_int_equal(w->tails->file[0].offset, 6);
	(void)hear(w, NULL);
	assert_int_equal(w->tails->file[0].offset, 6 + PP_TAIL_ROUND);
	for (int i = 0; i < 3; i++)
		(void)hear(w, NULL);
	assert_string_equal(w->heard.text, "|end|"); /* a line of NULs, cut, and what follows it */
	assert_int_equal(w->heard.skipped, 0);
	assert_int_equal(ftruncate(fd, (off_t)2 * PP_TAIL_BEHIND), 0);
	assert_int_equal(pwrite(fd, "\nnow\n", 5, (off_t)2 * PP_TAIL_BEHIND), 5);
	assert_string_equal(hear(w, NULL), "now|");
	assert_true(w->heard.skipped > (uint64_t)PP_TAIL_BEHIND);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_history_is_no_news, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copytruncate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart_from_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recalled_is_anything, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_special_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
