/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_settings.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/ask.h"
#include "node/environment.h"
#include "node/nccl_conf.h"
#include "base/banned.h"

enum { CONF_MOST = 64 << 10, ADDED = 64 };

static const pp_ns HOME_DEADLINE = 2 * PP_SECOND;

struct pp_nccl_run_setting *pp_nccl_run_setting_add(struct pp_nccl_run *r, enum pp_nccl_origin from,
						    const char *name, const char *value)
{
	struct pp_nccl_run_setting *s;

	if (r->n_settings == PP_NCCL_RUN_SETTINGS)
		return NULL;
	s = &r->setting[r->n_settings++];
	*s = (struct pp_nccl_run_setting){.from = from, .nodes = 1};
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	(void)snprintf(s->value, sizeof(s->value), "%s",
		       pp_environment_secret(name) ? "(hidden)" : value);
	pp_sanitize(s->name, false);
	pp_sanitize(s->value, false);
	return s;
}

const char *pp_nccl_run_setting_value(const struct pp_nccl_run *r, const char *name)
{
	static const enum pp_nccl_origin order[] = {PP_NCCL_FROM_ARM, PP_NCCL_FROM_LOGGING,
						    PP_NCCL_FROM_USER, PP_NCCL_FROM_CONF};

	for (size_t k = 0; k < PP_ARRAY_LEN(order); k++)
		for (uint32_t i = 0; i < r->n_settings; i++)
			if (r->setting[i].from == order[k] && !strcmp(r->setting[i].name, name))
				return r->setting[i].value;
	return NULL;
}

static int add_of_file(void *arg, const char *name, const char *value)
{
	struct pp_nccl_run *r = arg;

	/* The first one wins, and files come after the environment. */
	if (!strncmp(name, "NCCL_", 5) && !pp_nccl_run_setting_value(r, name))
		(void)pp_nccl_run_setting_add(r, PP_NCCL_FROM_CONF, name, value);
	return 0;
}

/* A file that is not there has no settings. */
static int read_file(struct pp_nccl_run *r, struct pp_source *s, const char *path)
{
	char *PP_AUTO_FREE text = malloc(CONF_MOST);
	size_t len = 0;

	if (!text)
		return -ENOMEM;
	if (!pp_source_read(s, path, text, CONF_MOST, &len))
		(void)pp_nccl_conf_parse(text, len, add_of_file, r);
	return 0;
}

static int run_home(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct passwd *pw;

	(void)arg;
	pp_ask_doing("getpwuid");
	pw = getpwuid(getuid());
	if (!pw)
		return pp_error_set(err, -ENOENT, "no entry in the password database");
	pp_json_str(data, "home", pw->pw_dir);
	return 0;
}

static int read_home(struct pp_nccl_run *r, struct pp_source *s)
{
	const struct pp_question q = {
		.name = "home-directory", .run = run_home, .deadline = HOME_DEADLINE};
	struct pp_answer a;
	char path[PP_PATH_MAX];
	const char *home;
	int bad = 0;

	if (pp_ask(s, &q, &a))
		return -ENOMEM;
	home = a.answered ? pp_answer_str(a.data, "home") : NULL;
	if (home && *home == '/' && !pp_path_join(home, ".nccl.conf", path))
		bad = read_file(r, s, path);
	pp_answer_done(&a);
	return bad;
}

int pp_nccl_run_settings_read(struct pp_nccl_run *r, struct pp_source *s, char *const *environment)
{
	const char *file = NULL;
	int bad;

	for (size_t i = 0; environment[i]; i++) {
		const char *entry = environment[i], *value = strchr(entry, '=');
		char name[64];

		if (!value || strncmp(entry, "NCCL_", 5) != 0 ||
		    (size_t)(value - entry) >= sizeof(name))
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)(value - entry), entry);
		(void)pp_nccl_run_setting_add(r, PP_NCCL_FROM_USER, name, value + 1);
		if (!strcmp(name, "NCCL_CONF_FILE"))
			file = value + 1;
	}
	bad = file && *file ? read_file(r, s, file) : read_home(r, s);
	return bad ? bad : read_file(r, s, "/etc/nccl.conf");
}

int pp_nccl_environment_copy(struct pp_nccl_environment *e, struct pp_arena *arena,
			     char *const *from)
{
	size_t n = 0;

	while (from[n])
		n++;
	*e = (struct pp_nccl_environment){.arena = arena, .n = n, .room = n + ADDED};
	e->at = pp_arena_array(arena, e->room + 1, sizeof(*e->at));
	for (size_t i = 0; e->at && i < n; i++)
		e->at[i] = from[i];
	return e->at ? 0 : -ENOMEM;
}

static char **find(const struct pp_nccl_environment *e, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < e->n; i++)
		if (!strncmp(e->at[i], name, len) && e->at[i][len] == '=')
			return &e->at[i];
	return NULL;
}

const char *pp_nccl_environment_get(const struct pp_nccl_environment *e, const char *name)
{
	char **at = find(e, name);

	return at ? *at + strlen(name) + 1 : NULL;
}

int pp_nccl_environment_set(struct pp_nccl_environment *e, const char *name, const char *value)
{
	const char *entry = pp_arena_printf(e->arena, "%s=%s", name, value);
	char **at = find(e, name);

	if (e->arena->failed || (!at && e->n == e->room))
		return -ENOMEM;
	if (!at)
		at = &e->at[e->n++];
	*at = (char *)(uintptr_t)entry;
	return 0;
}

int pp_nccl_run_set(struct pp_nccl_run *r, struct pp_nccl_environment *e, enum pp_nccl_origin from,
		    const char *name, const char *value, const char *why)
{
	const char *was = pp_nccl_environment_get(e, name);
	/* A file's value is overridden as much as one of the environment. */
	const char *seen = was ? was : pp_nccl_run_setting_value(r, name);
	struct pp_nccl_run_setting *s;
	char before[sizeof(s->was)];

	(void)snprintf(before, sizeof(before), "%s", seen ? seen : "");
	pp_sanitize(before, false);
	if (pp_nccl_environment_set(e, name, value))
		return -ENOMEM;
	s = pp_nccl_run_setting_add(r, from, name, value);
	if (!s)
		return 0;
	(void)snprintf(s->was, sizeof(s->was), "%s", before);
	(void)snprintf(s->why, sizeof(s->why), "%s", why);
	if (was)
		(void)snprintf(s->undo, sizeof(s->undo), "export %.40s=%.70s", name, before);
	else
		(void)snprintf(s->undo, sizeof(s->undo), "unset %.100s", name);
	return 0;
}
