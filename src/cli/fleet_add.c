/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath fleet add: files into the database, each whole or not at all. One that is damaged does
 * not stop the others; a database that fails does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "cli/fleet.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "base/banned.h"

static const uint64_t INPUT_BYTES = (uint64_t)1 << 30;

struct adding {
	struct pp_session *s;
	struct pp_sql *sql;
	struct pp_fleet_added added;
	size_t files, failed;
	struct pp_arena arena; /* of what failed */
	struct failure {
		const char *file, *why;
		struct failure *next;
	} * first, **last;
};

static void keep_failure(struct adding *a, const char *path, struct pp_error *err)
{
	struct failure *f = pp_arena_alloc(&a->arena, sizeof(*f));
	char name[PATH_MAX];

	(void)snprintf(name, sizeof(name), "%s", pp_input_name(path));
	pp_sanitize(name, false);
	pp_error_drop_name(err, path);
	a->failed++;
	(void)pp_complain(a->s->args, 0, "'%s': %s, left out", name, err->text);
	if (!f)
		return;
	f->file = pp_arena_str(&a->arena, name);
	f->why = pp_arena_str(&a->arena, err->text);
	*a->last = f;
	a->last = &f->next;
}

/* A pipe is read to its end first: an archive is looked at from both of its ends. */
static int read_input(int fd, struct pp_error *err)
{
	char part[16384];
	uint64_t all = 0;
	ssize_t n;
	int r = 0;

	while (!r && (n = read(STDIN_FILENO, part, sizeof(part)))) {
		if (n < 0 && errno == EINTR && !pp_interrupted())
			continue;
		all += n > 0 ? (uint64_t)n : 0;
		if (n < 0)
			r = pp_error_set(err, -errno, "%s", strerrordesc_np(errno));
		else if (all > INPUT_BYTES)
			r = pp_error_set(err, -EFBIG, "longer than a file of results may be");
		else if ((r = pp_fd_write(fd, part, (size_t)n)))
			(void)pp_error_set(err, r, "%s", strerrordesc_np(-r));
	}
	return r;
}

static int add_input(struct adding *a, struct pp_error *err)
{
	const char *where = secure_getenv("TMPDIR");
	PP_AUTO_CLOSE int fd =
		open(where && *where == '/' ? where : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[32];
	int r;

	a->added.of_input = true;
	if (fd < 0)
		return pp_error_set(err, -errno, "no place for it: %s", strerrordesc_np(errno));
	r = read_input(fd, err);
	if (r)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = pp_fleet_add_file(a->sql, path, &a->added, err);
	pp_error_drop_name(err, path);
	return r;
}

/* 0 also for a file that was left out; else an exit code. */
static int add_file(struct adding *a, const char *path)
{
	struct pp_error err = {0};
	int r;

	if (pp_interrupted())
		return PP_EXIT_INTERRUPTED;
	a->added.of_input = false;
	r = !strcmp(path, "-") ? add_input(a, &err)
			       : pp_fleet_add_file(a->sql, path, &a->added, &err);
	if (r && pp_interrupted())
		return PP_EXIT_INTERRUPTED;
	if (!r) {
		a->files++;
		return 0;
	}
	if (a->added.of_input) {
		keep_failure(a, path, &err);
		return 0;
	}
	(void)pp_error_prefix(&err, "'%.200s' was not added", path);
	return pp_fleet_failed(a->s->args, r, &err);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && !strcmp(name + n - k, end);
}

static bool is_bundle(const char *path)
{
	char manifest[PATH_MAX];
	struct stat st;

	return snprintf(manifest, sizeof(manifest), "%s/manifest.json", path) <
		       (int)sizeof(manifest) &&
	       !stat(manifest, &st);
}

static int wanted(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static bool is_result(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode))
		return is_bundle(path);
	return ends_with(path, ".tar.zst") || ends_with(path, ".json") || ends_with(path, ".jsonl");
}

/* One level, by name: bundles, *.json, *.jsonl. What else lies there is somebody else's. */
static int add_directory(struct adding *a, const char *path)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, wanted, alphasort), code = 0;
	char file[PATH_MAX];
	size_t before = a->files + a->failed;
	struct pp_error err = {0};

	if (n < 0) {
		(void)pp_error_set(&err, -errno, "%s", strerrordesc_np(errno));
		keep_failure(a, path, &err);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (!code &&
		    snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) <
			    (int)sizeof(file) &&
		    is_result(file))
			code = add_file(a, file);
		free(entries[i]);
	}
	free(entries);
	if (!code && before == a->files + a->failed) {
		(void)pp_error_set(&err, -ENODATA,
				   "no bundle and no *.json or *.jsonl in this directory");
		keep_failure(a, path, &err);
	}
	return code;
}

static int add(struct adding *a, const char *path)
{
	struct stat st;

	if (strcmp(path, "-") != 0 && !stat(path, &st) && S_ISDIR(st.st_mode) && !is_bundle(path))
		return add_directory(a, path);
	return add_file(a, path);
}

static void emit(struct adding *a)
{
	static const struct pp_out_column columns[] = {{"file", "LEFT OUT", true},
						       {"why", "WHY", true}};
	struct pp_out *o = a->s->out;

	pp_out_document(o, "peerpath.fleet/1");
	pp_out_str(o, "view", NULL, "add");
	pp_out_u64(o, "files", "files", a->files);
	pp_out_u64(o, "results", "new results", a->added.results);
	pp_out_u64(o, "known", "there already", a->added.known);
	pp_out_u64(o, "failed", "left out", a->failed);
	if (!pp_out_is_json(o))
		return;
	pp_out_table(o, "left_out", columns, PP_ARRAY_LEN(columns));
	for (const struct failure *f = a->first; f; f = f->next) {
		pp_out_cell(o, f->file);
		pp_out_cell(o, f->why);
	}
	pp_out_table_end(o);
}

int pp_fleet_cmd_add(struct pp_session *s)
{
	struct adding a = {.s = s, .arena = PP_ARENA(16 << 20)};
	size_t n = pp_args_operands(s->args);
	int code;

	a.last = &a.first;
	if (n < 2)
		return pp_complain(s->args, PP_EXIT_USAGE,
				   "'fleet add' needs files or directories, or - for standard "
				   "input");
	code = pp_fleet_database(s->args, PP_SQL_CREATE, &a.sql);
	if (code)
		return code;
	pp_interrupt_catch();
	for (size_t i = 1; i < n && !code; i++)
		code = add(&a, pp_args_operand(s->args, i));
	emit(&a);
	/* What is in is in: it is told whatever came behind it. */
	s->answered = true;
	pp_sql_close(a.sql);
	pp_arena_done(&a.arena);
	return code ? code : a.failed ? PP_EXIT_INPUT : PP_EXIT_PASS;
}
