/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL is told here. Its order: the environment, then NCCL_CONF_FILE (2.23 and later) or else
 * .nccl.conf in the home directory of the password database, then /etc/nccl.conf; the first
 * setting of a name counts.
 *
 * A file that is there but cannot be read may set anything: what it could set is then unknown.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/version.h"
#include "node/collect_software.h"
#include "node/nccl_conf.h"
#include "base/banned.h"

enum { MAX_CONF = 64 << 10, MAX_SETTINGS = 256, FILES = 2 };

static const pp_ns HOME_DEADLINE = 2 * PP_SECOND;
static const char HIDDEN[] = "(hidden)";

struct setting {
	const char *name, *value, *file;
};

struct settings {
	struct pp_software *sw;
	struct setting item[MAX_SETTINGS]; /* of the files, in NCCL's order */
	size_t n, n_files;
	const char *file;	  /* being read */
	const char *lines[FILES]; /* "path: NAME=value, ..." */
	const char *unknown;	  /* a file that may set anything, and why */
};

static int run_home(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct passwd *pw;

	(void)arg;
	pp_ask_doing("getpwuid");
	errno = 0;
	pw = getpwuid(getuid());
	if (!pw)
		return pp_error_set(err, errno ? -errno : -ENOENT,
				    "no entry of user %u in the password database", getuid());
	pp_json_str(data, "home", pw->pw_dir);
	return 0;
}

static int add_setting(void *arg, const char *name, const char *value)
{
	struct settings *st = arg;
	struct pp_arena *arena = &st->sw->node->arena;
	char clean[PP_NCCL_WORD];

	if (st->n == MAX_SETTINGS)
		return -EFBIG;
	(void)snprintf(clean, sizeof(clean), "%s", name);
	pp_sanitize(clean, false);
	st->item[st->n].name = pp_arena_str(arena, clean);
	(void)snprintf(clean, sizeof(clean), "%s", pp_environment_secret(name) ? HIDDEN : value);
	pp_sanitize(clean, false);
	st->item[st->n].value = pp_arena_str(arena, clean);
	st->item[st->n++].file = st->file;
	return 0;
}

static void describe(struct settings *st, size_t from)
{
	struct pp_buf PP_AUTO_BUF line = PP_BUF(MAX_CONF + PP_PATH_MAX);

	pp_buf_printf(&line, "%s:%s", st->file, from == st->n ? " sets nothing" : "");
	for (size_t i = from; i < st->n; i++)
		pp_buf_printf(&line, "%s %s=%s", i > from ? "," : "", st->item[i].name,
			      st->item[i].value);
	st->lines[st->n_files++] = pp_arena_str(&st->sw->node->arena, pp_buf_text(&line));
}

static void read_file(struct settings *st, const char *path)
{
	struct pp_node *n = st->sw->node;
	char *PP_AUTO_FREE text = malloc(MAX_CONF);
	size_t len = 0, from = st->n;
	int r = text ? pp_source_read(n->src, path, text, MAX_CONF, &len) : -ENOMEM;

	if (r == -ENOENT || r == -ENOTDIR)
		return;
	st->file = pp_arena_str(&n->arena, path);
	if (!r)
		r = pp_nccl_conf_parse(text, len, add_setting, st);
	if (!r)
		describe(st, from);
	else
		st->unknown = pp_arena_printf(&n->arena, "%s: %s", path, pp_source_why(r));
}

/* NCCL before 2.23 does not know NCCL_CONF_FILE. */
static bool knows_conf_file(const struct pp_software *sw)
{
	const char *version = pp_fact_str_or(sw->node->self, PP_F_NCCL_VERSION, NULL);

	return !version || !pp_version_valid(version) || pp_version_compare(version, "2.23") >= 0;
}

static void read_user_file(struct settings *st)
{
	const struct pp_question q = {
		.name = "home-directory", .run = run_home, .deadline = HOME_DEADLINE};
	const char *named = pp_environment_get(&st->sw->env, "NCCL_CONF_FILE"), *home;
	struct pp_node *n = st->sw->node;
	char path[PP_PATH_MAX];
	struct pp_answer a;

	if (named && *named && knows_conf_file(st->sw)) {
		if (named[0] == '/' && !pp_path_join("/", named, path))
			return read_file(st, path);
		st->unknown = pp_arena_printf(
			&n->arena, "NCCL_CONF_FILE=%s is relative to the job's directory", named);
		return;
	}
	if (pp_ask(n->src, &q, &a)) {
		st->unknown = "the user's nccl.conf: out of memory";
		return;
	}
	home = a.answered ? pp_answer_str(a.data, "home") : NULL;
	if (home && home[0] == '/' && !pp_path_join(home, ".nccl.conf", path))
		read_file(st, path);
	else
		st->unknown = pp_arena_printf(&n->arena, "the user's nccl.conf: %s",
					      a.answered ? "no home directory" : a.detail);
	pp_answer_done(&a);
}

/* NULL: not set. */
static const struct setting *in_files(const struct settings *st, const char *name)
{
	for (size_t i = 0; i < st->n; i++)
		if (!strcmp(st->item[i].name, name))
			return &st->item[i];
	return NULL;
}

static void set_effective(const struct settings *st)
{
	static const struct {
		enum pp_fact_id id;
		const char *name;
	} variables[] = {
		{PP_F_NCCL_GDR_LEVEL, "NCCL_NET_GDR_LEVEL"},
		{PP_F_NCCL_IB_DISABLE, "NCCL_IB_DISABLE"},
		{PP_F_NCCL_DMABUF, "NCCL_DMABUF_ENABLE"},
		{PP_F_NCCL_GID_INDEX, "NCCL_IB_GID_INDEX"},
		{PP_F_NCCL_IB_HCA, "NCCL_IB_HCA"},
		{PP_F_NCCL_TOPO_FILE, "NCCL_TOPO_FILE"},
	};
	struct pp_node *n = st->sw->node;

	for (size_t i = 0; i < PP_ARRAY_LEN(variables); i++) {
		enum pp_fact_id id = variables[i].id;
		const char *value = pp_environment_get(&st->sw->env, variables[i].name);
		const struct setting *set = in_files(st, variables[i].name);

		if (!st->sw->env.known)
			pp_fact_unknown(&n->facts, n->self, id, NULL, "%s", st->sw->env.why);
		else if (value)
			pp_fact_str(&n->facts, n->self, id, value, "environment");
		else if (st->unknown)
			pp_fact_unknown(&n->facts, n->self, id, NULL, "%s", st->unknown);
		else
			pp_fact_str(&n->facts, n->self, id, set ? set->value : "",
				    set ? set->file : "environment");
	}
}

void pp_nccl_settings_collect(struct pp_software *sw)
{
	struct settings *PP_AUTO_FREE st = calloc(1, sizeof(*st));
	struct pp_node *n = sw->node;

	if (!st) {
		n->arena.failed = true;
		return;
	}
	st->sw = sw;
	if (sw->env.known)
		read_user_file(st);
	else
		st->unknown = pp_arena_str(&n->arena, sw->env.why);
	read_file(st, "/etc/nccl.conf");
	if (st->unknown)
		pp_fact_unknown(&n->facts, n->self, PP_F_NCCL_CONF, NULL, "%s", st->unknown);
	else
		pp_fact_list(&n->facts, n->self, PP_F_NCCL_CONF, st->lines, st->n_files, NULL);
	set_effective(st);
}
