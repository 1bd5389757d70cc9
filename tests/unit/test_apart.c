/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watcher in a process of its own: its answers as they were, large ones too; one that is late,
 * one that ends, and what the next process recalls. That nothing is lost beside a file system
 * that hangs is tests/e2e/monitor_hang.py's.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/apart.h"
#include "daemon/apart_answer.h"
#include "daemon/watch.h"

enum { MANY = 3000 };

struct world {
	struct pp_apart *apart;
	struct pp_arena arena;
	struct pp_looks looks;
	struct pp_watch_context at;
	struct pp_error err;
	char mark[64]; /* what the monitor remembers */
	int marks;
};

static const char *recall(void *ctx, const char *watcher, const char *key)
{
	const struct world *w = ctx;

	assert_string_equal(watcher, "made");
	assert_string_equal(key, "n");
	return *w->mark ? w->mark : NULL;
}

static int remember(void *ctx, const char *watcher, const char *key, const char *value)
{
	struct world *w = ctx;

	assert_string_equal(watcher, "made");
	assert_string_equal(key, "n");
	(void)snprintf(w->mark, sizeof(w->mark), "%s", value);
	w->marks++;
	return 0;
}

/* Its looks are numbered from what it recalls; at->slo says what it does. */
static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	int *n = pp_watch_state(state, sizeof(*n)), wait;
	const char *known = *n ? NULL : pp_watch_recall(at, "made", "n");
	char text[32], longer[400];

	(void)err;
	if (known)
		*n = known[0] - 48;
	(void)snprintf(text, sizeof(text), "%d", ++*n);
	pp_apart_doing("opening", at->slo);
	if (*at->slo == 'x')
		(void)raise(SIGUSR1);
	if (*at->slo == 'e')
		return -ENOMEM;
	if (*at->slo == '/') { /* a FIFO: until somebody opens its other end */
		wait = open(at->slo, O_RDONLY);
		(void)close(wait);
	}
	memset(longer, 'r', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	for (int i = 0; *at->slo == 'm' && i < MANY; i++)
		assert_int_equal(pp_look_event(into, PP_SIGNAL_NCCL_ERRORS, "o", text, longer, "v"),
				 0);
	assert_int_equal(pp_look_number(into, PP_SIGNAL_SLO, "figure", NULL, *n + 0.5), 0);
	assert_int_equal(pp_look_unknown(into, PP_SIGNAL_ACS, "bridge", "no %s", "rights"), 0);
	return pp_watch_remember(at, "made", "n", text);
}

static int silent(const struct pp_watch_context *at, struct pp_looks *into, const char *why)
{
	(void)at;
	return pp_look_unknown(into, PP_SIGNAL_SLO, "application", "%s", why);
}

static const struct pp_watcher made = {.name = "made", .look = look, .silent = silent};

static bool look_once(struct world *w)
{
	bool looked = false;

	pp_arena_done(&w->arena);
	w->arena = PP_ARENA((size_t)16 << 20);
	w->looks = (struct pp_looks){.arena = &w->arena};
	assert_int_equal(
		pp_apart_look(&w->apart, &made, "files", &w->at, &w->looks, &looked, &w->err), 0);
	return looked;
}

static void begin(struct world *w, const char *what)
{
	*w = (struct world){.at = {.slo = what, .recall = recall, .remember = remember}};
	w->at.ctx = w;
}

static void end(struct world *w)
{
	w->apart = pp_apart_free(w->apart);
	pp_arena_done(&w->arena);
}

static const struct pp_look *of(const struct world *w, enum pp_signal_kind kind)
{
	static const struct pp_look none;

	for (size_t i = 0; i < w->looks.n; i++)
		if (w->looks.looks[i].kind == kind)
			return &w->looks.looks[i];
	fail_msg("no look of kind %d", (int)kind);
	return &none;
}

static void test_as_it_was(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "");
	for (int i = 1; i <= 3; i++) {
		assert_true(look_once(&w));
		assert_int_equal(w.looks.n, 3);
		assert_float_equal(of(&w, PP_SIGNAL_SLO)->number, i + 0.5, 0);
		assert_null(of(&w, PP_SIGNAL_SLO)->raw);
		assert_string_equal(of(&w, PP_SIGNAL_ACS)->unknown, "no rights");
		assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->value, "returns");
		assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->object, "files");
		assert_int_equal(w.marks, i);
	}
	end(&w);
	/* The next process goes on where the monitor remembers it. */
	w.apart = NULL;
	assert_true(look_once(&w));
	assert_float_equal(of(&w, PP_SIGNAL_SLO)->number, 4.5, 0);
	end(&w);
}

/* Longer than any socket's buffer. */
static void test_large(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "many");
	assert_true(look_once(&w));
	assert_int_equal(w.looks.n, MANY + 3);
	assert_int_equal(strlen(w.looks.looks[MANY - 1].raw), 399);
	end(&w);
}

static void test_ends(void **state)
{
	static const struct {
		const char *what, *why;
	} cases[] = {{"x", "its process ended by signal 10 (USR1)"}, {"e", "its process ended"}};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(cases); i++) {
		struct world w;

		begin(&w, cases[i].what);
		(void)snprintf(w.mark, sizeof(w.mark), "7");
		assert_true(look_once(&w));
		assert_string_equal(of(&w, PP_SIGNAL_SLO)->unknown, cases[i].why);
		assert_non_null(of(&w, PP_SIGNAL_HUNG_CALL)->unknown);
		assert_int_equal(w.marks, 0);
		w.at.slo = "";
		assert_true(look_once(&w));
		assert_float_equal(of(&w, PP_SIGNAL_SLO)->number, 8.5, 0);
		assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->value, "returns");
		end(&w);
	}
}

/* Nothing is said until the deadline; then who is to blame; and what comes late is taken, once. */
static void test_late(void **state)
{
	char dir[] = "/tmp/peerpath-apart-XXXXXX", fifo[64], why[128];
	struct world w;
	int fd, rounds = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	(void)snprintf(why, sizeof(why), "opening '%s' did not return in 5000 ms", fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	begin(&w, fifo);
	assert_true(look_once(&w)); /* the first one is waited for */
	assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->value, "did not return");
	assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->raw, why);
	assert_string_equal(of(&w, PP_SIGNAL_SLO)->unknown, why);
	assert_int_equal(w.marks, 0);
	assert_true(look_once(&w));
	assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->value, "did not return");
	fd = open(fifo, O_WRONLY); /* its reader is there and waits */
	assert_true(fd >= 0);
	while (!w.marks && rounds++ < 3000) {
		assert_true(look_once(&w));
		(void)poll(NULL, 0, 10);
	}
	assert_int_equal(w.marks, 1);
	assert_float_equal(of(&w, PP_SIGNAL_SLO)->number, 1.5, 0);
	assert_string_equal(of(&w, PP_SIGNAL_HUNG_CALL)->value, "returns");
	(void)close(fd);
	/* Later ones are not waited for: there is neither an answer nor a reason to say so. */
	assert_false(look_once(&w));
	assert_int_equal(w.looks.n, 0);
	end(&w); /* while it waits */
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Cut anywhere, or with anything changed, it is refused whole or read without harm. */
static void test_answer(void **state)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(1 << 16);
	const struct pp_look one = {.kind = PP_SIGNAL_ACS, .object = "o", .value = "v", .raw = ""};
	struct world w;
	size_t whole;

	(void)state;
	begin(&w, "");
	w.arena = PP_ARENA((size_t)16 << 20);
	w.looks = (struct pp_looks){.arena = &w.arena};
	pp_apart_put_mark(&b, "made", "n", "1");
	pp_apart_put_look(&b, &one);
	pp_apart_put_left_out(&b, 5);
	whole = b.len;
	assert_int_equal(pp_apart_take(b.data, whole, &w.at, &w.looks), 0);
	assert_int_equal(w.looks.left_out, 5);
	assert_string_equal(w.looks.looks[0].raw, "");
	assert_null(w.looks.looks[0].named);
	w.marks = 0;
	for (size_t len = whole - 1; len > whole - 9; len--)
		assert_int_equal(pp_apart_take(b.data, len, &w.at, &w.looks), -EBADMSG);
	assert_int_equal(w.marks, 0); /* though the mark is whole, in front */
	assert_int_equal(w.looks.n, 1);
	for (size_t i = 0; i < whole; i++) {
		char kept = b.data[i];

		b.data[i] = (char)0xff;
		(void)pp_apart_take(b.data, whole, NULL, NULL);
		b.data[i] = kept;
	}
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_it_was), cmocka_unit_test(test_large),
		cmocka_unit_test(test_ends),	  cmocka_unit_test(test_late),
		cmocka_unit_test(test_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
