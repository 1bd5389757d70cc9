/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process ends, or a step fails, at every step of apply and rollback: afterwards there is one
 * whole profile, byte for byte, and the record names it.
 */
#include "profile_world.h"

struct fault {
	unsigned int at, now;
	bool dies;	/* the process ends; else the step fails */
	bool stays;	/* and so do all behind it */
	bool only_room; /* of those that need room */
	bool recovers;	/* it is no change, but the next start */
	int error;
	unsigned int hits;
};

static bool needs_room(const char *what)
{
	return !strcmp(what, "create") || !strcmp(what, "write") || !strcmp(what, "mkdir");
}

static int strike(void *arg, const char *what, const char *path)
{
	struct fault *f = arg;
	unsigned int now = f->now++;

	(void)path;
	if (now < f->at || (now > f->at && !f->stays))
		return 0;
	if (f->only_room && !needs_room(what))
		return 0;
	if (f->dies)
		_exit(9);
	f->hits++;
	return f->error;
}

/* What is there before the change under test, and what the change is. */
static const struct scenario {
	const char *name, *first, *second, *then; /* then NULL: roll back */
	const char *before, *after;		  /* names of what is in effect */
} scenarios[] = {
	{"first apply", NULL, NULL, profile_a, "none", "a"},
	{"switch", profile_a, NULL, profile_b, "a", "b"},
	{"rollback of a switch", profile_a, profile_b, NULL, "b", "a"},
	{"rollback of the first", profile_a, NULL, NULL, "a", "none"},
};

static struct pp_profile *first, *second, *then;

static void begin(void)
{
	world_make();
	if (first)
		done(first);
	if (second)
		done(second);
}

static int attempt(struct fault *f, struct pp_error *err)
{
	struct pp_disk d = world_disk();
	int r;

	d.step = strike;
	d.arg = f;
	d.chunk = 120;
	r = f->recovers ? recover(&d, err) : change(&d, then, err);
	pp_disk_close(&d);
	return r;
}

/* In a process of its own; did it die? */
static bool died(struct fault *f)
{
	struct pp_error err = {0};
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(attempt(f, &err) ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 9 || !WEXITSTATUS(status)));
	return WEXITSTATUS(status) == 9;
}

static char *text_before, *text_after;

/* One whole state, the one that the record names. */
static void check_whole(const struct scenario *sc, unsigned int n, const char *name)
{
	char *now = seen();
	const char *want = !strcmp(name, sc->before) ? text_before : text_after;

	assert_true(!strcmp(name, sc->before) || !strcmp(name, sc->after));
	if (strcmp(now, want) != 0)
		fail_msg("%s, step %u: '%s' should be in effect\n--- is\n%s--- should be\n%s",
			 sc->name, n, name, now, want);
	free(now);
}

static void crash_everywhere(const struct scenario *sc)
{
	unsigned int before = 0, after = 0;
	bool dead = true;
	char name[64];

	for (unsigned int n = 0; dead; n++) {
		struct fault f = {.at = n, .dies = true};

		begin();
		dead = died(&f);
		recovered(name);
		check_whole(sc, n, name);
		before += !strcmp(name, sc->before);
		after += !strcmp(name, sc->after);
		world_remove();
	}
	print_message("%s: %u steps end before, %u after\n", sc->name, before, after);
	assert_true(before > 5 && after > 5);
}

/* Ended at each step, then ended at each step of the next start. */
static void crash_twice(const struct scenario *sc)
{
	const unsigned int stride = 5;
	bool dead = true;
	char name[64];

	for (unsigned int n = 0; dead; n += stride) {
		for (unsigned int k = 0;; k += stride) {
			struct fault f = {.at = n, .dies = true},
				     g = {.at = k, .dies = true, .recovers = true};
			bool again;

			begin();
			dead = died(&f);
			again = dead && died(&g);
			recovered(name);
			check_whole(sc, n * 1000 + k, name);
			world_remove();
			if (!again)
				break;
		}
	}
}

/* A step fails: what was stays, at once, or the change is whole. */
static void fail_everywhere(const struct scenario *sc, struct fault kind)
{
	unsigned int failed = 0;
	bool hit = true;
	char name[64];

	for (unsigned int n = 0; hit; n++) {
		struct pp_error err = {0};
		struct fault f = kind;
		char *now;
		int r;

		f.at = n;
		begin();
		r = attempt(&f, &err);
		hit = f.hits || (f.only_room && n < f.now);
		assert_true(!r || (r == f.error && err.text[0]));
		failed += r != 0;
		now = seen();
		if (f.only_room && r && strcmp(now, text_before) != 0)
			fail_msg("%s, step %u: a full disk left\n%s", sc->name, n, now);
		free(now);
		recovered(name);
		check_whole(sc, n, name);
		/* Nothing was lost: what failed can be done again. */
		if (!strcmp(name, sc->before) && n % 7 == 0) {
			done(then);
			check_whole(sc, n, sc->after);
		}
		world_remove();
	}
	assert_true(failed > 10);
}

static void set_up(const struct scenario *sc)
{
	first = sc->first ? parsed(sc->first) : NULL;
	second = sc->second ? parsed(sc->second) : NULL;
	then = sc->then ? parsed(sc->then) : NULL;
	begin();
	text_before = seen();
	/* Paths in the texts begin behind the root, so that they are the same in any. */
	done(then);
	text_after = seen();
	world_remove();
	assert_string_not_equal(text_before, text_after);
}

static void tear_down(void)
{
	first = pp_profile_free(first);
	second = pp_profile_free(second);
	then = pp_profile_free(then);
	free(text_before);
	free(text_after);
}

static void each(void (*run)(const struct scenario *sc))
{
	for (size_t i = 0; i < PP_ARRAY_LEN(scenarios); i++) {
		set_up(&scenarios[i]);
		run(&scenarios[i]);
		tear_down();
	}
}

static void run_once(const struct scenario *sc)
{
	fail_everywhere(sc, (struct fault){.error = -EIO});
}

static void run_dead_disk(const struct scenario *sc)
{
	fail_everywhere(sc, (struct fault){.error = -EROFS, .stays = true});
}

static void run_full(const struct scenario *sc)
{
	fail_everywhere(sc, (struct fault){.error = -ENOSPC, .stays = true, .only_room = true});
}

static void test_crash(void **state)
{
	(void)state;
	each(crash_everywhere);
}

static void test_crash_twice(void **state)
{
	(void)state;
	each(crash_twice);
}

static void test_fails_once(void **state)
{
	(void)state;
	each(run_once);
}

static void test_disk_dies(void **state)
{
	(void)state;
	each(run_dead_disk);
}

static void test_disk_full(void **state)
{
	(void)state;
	each(run_full);
}

/* Before a name is given to a content, the content is on the disk. */
struct order {
	char synced[256][PP_DISK_PATH];
	unsigned int n;
};

static int watch(void *arg, const char *what, const char *path)
{
	struct order *o = arg;
	const char *slash = strrchr(path, '/');
	char fresh[3][2 * PP_DISK_PATH];
	bool found = false;

	if (!strcmp(what, "fsync") && o->n < PP_ARRAY_LEN(o->synced))
		(void)snprintf(o->synced[o->n++], PP_DISK_PATH, "%s", path);
	if (strcmp(what, "rename") != 0)
		return 0;
	(void)snprintf(fresh[0], sizeof(fresh[0]), "%s.new", path);
	(void)snprintf(fresh[1], sizeof(fresh[0]), "%.*s/.%s.peerpath-new", (int)(slash - path),
		       path, slash + 1);
	for (unsigned int i = 0; i < o->n; i++)
		found |= !strcmp(o->synced[i], fresh[0]) || !strcmp(o->synced[i], fresh[1]);
	if (!found)
		fail_msg("%s was renamed before it was on the disk", path);
	return 0;
}

static void test_order(void **state)
{
	struct order *o = calloc(1, sizeof(*o));
	struct pp_profile *p = parsed(profile_a);
	struct pp_error err = {0};
	struct pp_disk d;

	(void)state;
	world_make();
	d = world_disk();
	d.step = watch;
	d.arg = o;
	assert_int_equal(change(&d, p, &err), 0);
	assert_true(o->n > 10);
	pp_disk_close(&d);
	world_remove();
	pp_profile_free(p);
	free(o);
}

/*
 * The kinds of steps that the process ended at above: every one that profile/disk.h has, contents,
 * the journal, the record and each file among them. chown lies between two of them, where another
 * user owns a file.
 */
struct kinds {
	const char *what[16];
	unsigned int n, journal, record, file;
};

static int note(void *arg, const char *what, const char *path)
{
	struct kinds *k = arg;
	unsigned int i = 0;

	while (i < k->n && strcmp(k->what[i], what) != 0)
		i++;
	if (i == k->n && k->n < PP_ARRAY_LEN(k->what))
		k->what[k->n++] = what;
	k->journal += strstr(path, "/journal") != NULL;
	k->record += strstr(path, PP_STATE_DIR) != NULL && !strstr(path, "/journal");
	k->file += !strncmp(path, "/etc/", 5);
	return 0;
}

static void test_every_kind_of_step(void **state)
{
	static const char *const kinds[] = {"create", "write",	"chmod", "fsync",
					    "rename", "unlink", "mkdir", "fsync-dir"};
	struct kinds k = {.n = 0};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(scenarios); i++) {
		struct pp_error err = {0};
		struct pp_disk d;

		set_up(&scenarios[i]);
		begin();
		d = world_disk();
		d.step = note;
		d.arg = &k;
		assert_int_equal(change(&d, then, &err), 0);
		pp_disk_close(&d);
		world_remove();
		tear_down();
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(kinds); i++) {
		unsigned int n = 0;

		while (n < k.n && strcmp(k.what[n], kinds[i]) != 0)
			n++;
		if (n == k.n)
			fail_msg("no change has the step '%s'", kinds[i]);
	}
	print_message("%u of the journal, %u of the record, %u of files\n", k.journal, k.record,
		      k.file);
	assert_true(k.journal > 4 && k.record > 20 && k.file > 20);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_step),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_crash_twice),
		cmocka_unit_test(test_fails_once),
		cmocka_unit_test(test_disk_dies),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
