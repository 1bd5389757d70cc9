/* SPDX-License-Identifier: Apache-2.0 */
#include "node/library.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/banned.h"

enum { MAX_LINKS = 40, MAX_CONF = 64 << 10, MAX_CONF_FILES = 64, MAX_DEPTH = 4 };

struct builder {
	struct pp_source *s;
	struct pp_arena *arena;
	struct pp_library_path *out;
	unsigned int files; /* of ld.so.conf read so far */
};

int pp_library_real(struct pp_source *s, const char *path, char ret[PP_PATH_MAX])
{
	char now[PP_PATH_MAX], head[PP_PATH_MAX], real[PP_PATH_MAX];
	size_t done = 1, end;
	int links = 0, r = pp_path_join("/", path, now);

	if (r)
		return r;
	while (now[done]) {
		end = done + strcspn(now + done, "/");
		memcpy(head, now, end);
		head[end] = '\0';
		r = pp_source_real(s, head, real);
		if (r)
			return r;
		if (!strcmp(real, head)) {
			done = now[end] ? end + 1 : end;
			continue;
		}
		if (++links > MAX_LINKS)
			return -ELOOP;
		r = pp_path_join(real, now[end] ? now + end + 1 : "", head);
		if (r)
			return r;
		memcpy(now, head, strlen(head) + 1);
		done = 1;
	}
	if (!pp_source_exists(s, now))
		return pp_source_cut(s) ? -ENODATA : -ENOENT;
	memcpy(ret, now, strlen(now) + 1);
	return 0;
}

static void add_dir(struct builder *b, const char *dir)
{
	char real[PP_PATH_MAX];

	if (dir[0] != '/' || b->out->n == PP_LIBRARY_DIRS || pp_library_real(b->s, dir, real))
		return;
	for (size_t i = 0; i < b->out->n; i++)
		if (!strcmp(b->out->dir[i], real))
			return;
	b->out->dir[b->out->n++] = pp_arena_str(b->arena, real);
}

static void add_list(struct builder *b, const char *list)
{
	char dir[PP_PATH_MAX];
	size_t len;

	for (; *list; list += len + (list[len] != '\0')) {
		len = strcspn(list, ":;");
		if (len >= sizeof(dir))
			continue;
		memcpy(dir, list, len);
		dir[len] = '\0';
		add_dir(b, dir);
	}
}

static void read_conf(struct builder *b, const char *path, unsigned int depth);

/* Only the last part of an include is a pattern, as all distributions write it. */
static void include(struct builder *b, const char *pattern, unsigned int depth)
{
	char full[PP_PATH_MAX], path[PP_PATH_MAX];
	struct pp_names names;
	char *last;

	if (pp_path_join("/etc", pattern, full))
		return;
	last = strrchr(full, '/');
	*last++ = '\0';
	if (!strpbrk(last, "*?[")) {
		if (!pp_path_join(full, last, path))
			read_conf(b, path, depth);
		return;
	}
	if (pp_source_list(b->s, full[0] ? full : "/", &names))
		return;
	for (size_t i = 0; i < names.n; i++)
		if (!fnmatch(last, names.name[i], FNM_PERIOD) &&
		    !pp_path_join(full, names.name[i], path))
			read_conf(b, path, depth);
	pp_names_done(&names);
}

static void read_conf(struct builder *b, const char *path, unsigned int depth)
{
	char *PP_AUTO_FREE text = malloc(MAX_CONF);
	char *line, *rest = text;

	if (!text || depth > MAX_DEPTH || b->files++ >= MAX_CONF_FILES ||
	    pp_source_text(b->s, path, text, MAX_CONF))
		return;
	while ((line = strsep(&rest, "\n")) != NULL) {
		line[strcspn(line, "#")] = '\0';
		line = pp_trim(line);
		if (!strncmp(line, "include", 7) && strchr(" \t", line[7]))
			include(b, pp_trim(line + 7), depth + 1);
		else
			add_list(b, line);
	}
}

void pp_library_path_init(struct pp_source *s, struct pp_arena *arena, const char *ld_library_path,
			  const char *arch, struct pp_library_path *ret)
{
	static const char *const builtin[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
	static const char *const multiarch[] = {"/lib", "/usr/lib"};
	struct builder b = {.s = s, .arena = arena, .out = ret};
	char dir[PP_PATH_MAX];

	ret->n = 0;
	if (ld_library_path)
		add_list(&b, ld_library_path);
	read_conf(&b, "/etc/ld.so.conf", 0);
	for (size_t i = 0; arch && i < PP_ARRAY_LEN(multiarch); i++) {
		(void)snprintf(dir, sizeof(dir), "%s/%s-linux-gnu", multiarch[i], arch);
		add_dir(&b, dir);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(builtin); i++)
		add_dir(&b, builtin[i]);
}

int pp_library_find(struct pp_source *s, const struct pp_library_path *path, const char *name,
		    size_t *at, char ret[PP_PATH_MAX])
{
	char file[PP_PATH_MAX];

	for (size_t i = *at; i < path->n; i++) {
		if (pp_path_join(path->dir[i], name, file) || pp_library_real(s, file, ret))
			continue;
		*at = i + 1;
		return 0;
	}
	*at = path->n;
	return -ENOENT;
}
