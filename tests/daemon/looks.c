/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watchers see of a source, printed: for the tests beside it, which change a machine
 * between two looks.
 *
 *   looks [-s SLO] [-l GLOB]... [-r] DIR|live    one line a command on standard input (-r: DIR is
 *                                                a live root, whose drivers are asked):
 *
 *   look [WATCHER]     all watchers, or one; 2 h later than the last time
 *   forget             their state ends, as by a restart; what was remembered stays
 *
 * Each look is a line "kind TAB object TAB word TAB text TAB named TAB raw" with word value, number
 * or unknown; a command ends with a line "." and the processor time of it in microseconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/look.h"
#include "node/source.h"

enum { WATCHERS = 32, MEMORY = 16, GLOBS = 8 };
static const size_t ARENA = (size_t)32 << 20;

static const char *const keys[] = {
#define X(id, key, shape, level, unit, what) key,
#include "daemon/signals.def"
#undef X
};

struct memory {
	char name[64];
	char *value;
};

struct test {
	struct pp_watch_context at;
	void *state[WATCHERS];
	struct memory memory[MEMORY];
	const char *globs[GLOBS + 1];
};

static struct memory *slot(struct test *t, const char *watcher, const char *key)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s/%s", watcher, key);
	for (size_t i = 0; i < MEMORY; i++) {
		if (!t->memory[i].name[0])
			(void)snprintf(t->memory[i].name, sizeof(t->memory[i].name), "%s", name);
		if (!strcmp(t->memory[i].name, name))
			return &t->memory[i];
	}
	abort();
}

static const char *recall(void *ctx, const char *watcher, const char *key)
{
	return slot(ctx, watcher, key)->value;
}

static int remember(void *ctx, const char *watcher, const char *key, const char *value)
{
	struct memory *m = slot(ctx, watcher, key);

	free(m->value);
	m->value = strdup(value);
	return m->value ? 0 : -ENOMEM;
}

static void print(const struct pp_look *l)
{
	char number[32];

	(void)snprintf(number, sizeof(number), "%.17g", l->number);
	printf("%s\t%s\t%s\t%s\t%s\t%s\n", keys[l->kind], l->object,
	       l->unknown ? "unknown"
	       : l->value ? "value"
			  : "number",
	       l->unknown ? l->unknown
	       : l->value ? l->value
			  : number,
	       l->named ? l->named : "", l->raw ? l->raw : "");
}

static int64_t spent_us(void)
{
	struct rusage self, children;

	(void)getrusage(RUSAGE_SELF, &self);
	(void)getrusage(RUSAGE_CHILDREN, &children);
	return (self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
		children.ru_stime.tv_sec) *
		       INT64_C(1000000) +
	       self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec +
	       children.ru_stime.tv_usec;
}

static void end(struct test *t)
{
	for (size_t i = 0; pp_watchers[i]; i++) {
		if (pp_watchers[i]->end)
			pp_watchers[i]->end(t->state[i]);
		t->state[i] = NULL;
	}
}

static int look(struct test *t, const char *only)
{
	struct pp_arena arena = PP_ARENA(ARENA);
	struct pp_looks looks = {.arena = &arena};
	struct pp_error err = {0};
	int64_t before = spent_us();
	int r = 0;

	t->at.now_ns += 7200 * PP_SECOND;
	t->at.wall_ns += 7200 * PP_SECOND;
	for (size_t i = 0; !r && pp_watchers[i]; i++)
		if (!*only || !strcmp(only, pp_watchers[i]->name))
			r = pp_watchers[i]->look(&t->at, &t->state[i], &looks, &err);
	for (size_t i = 0; i < looks.n; i++)
		print(&looks.looks[i]);
	pp_arena_done(&arena);
	if (r)
		fprintf(stderr, "looks: %s\n", err.text);
	printf(".\t%" PRId64 "\n", spent_us() - before);
	(void)fflush(stdout);
	return r;
}

static int obey(struct test *t)
{
	char line[128];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "forget"))
			end(t);
		else if (strncmp(line, "look", 4) != 0 || look(t, line + 4 + (line[4] == ' ')))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct test t = {.at = {.recall = recall, .remember = remember}};
	struct pp_error err = {0};
	bool root = false;
	size_t globs = 0;
	int c, r;

	while ((c = getopt(argc, argv, "s:l:r")) != -1) {
		if (c == 'r')
			root = true;
		else if (c == 's')
			t.at.slo = optarg;
		else if (c == 'l' && globs < GLOBS)
			t.globs[globs++] = optarg;
		else
			return 64;
	}
	if (optind + 1 != argc)
		return 64;
	t.at.ctx = &t;
	t.at.logs = t.globs;
	t.at.live = root || !strcmp(argv[optind], "live");
	t.at.now_ns = pp_clock_monotonic();
	t.at.wall_ns = pp_clock_wall();
	r = root	? pp_source_root(argv[optind], &t.at.source, &err)
	    : t.at.live ? pp_source_live(&t.at.source, &err)
			: pp_source_replay_dir(argv[optind], &t.at.source, &err);
	if (r) {
		fprintf(stderr, "looks: %s\n", err.text);
		return 65;
	}
	r = obey(&t);
	end(&t);
	for (size_t i = 0; i < MEMORY; i++)
		free(t.memory[i].value);
	pp_source_free(t.at.source);
	return r;
}
