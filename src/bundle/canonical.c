/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical paths. A collector may read "/sys/class/net/eth0/mtu"; once the link
 * "/sys/class/net/eth0" is recorded, the file belongs below the link's target: a directory tree
 * cannot hold a file below a link.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/parse.h"
#include "bundle/plan.h"
#include "node/source.h"
#include "base/banned.h"

enum { MAX_LINKS = 40 };

static const size_t RAW_LIMIT = (size_t)256 << 20;

/* Follows the links that the record knows among the directories of @path, not its last part. */
static int real_dir(const struct pp_record *r, const char *path, char now[PP_PATH_MAX])
{
	char dir[PP_PATH_MAX], next[PP_PATH_MAX];
	const struct pp_entry *e;
	size_t done = 1, end;
	int links = 0;

	memcpy(now, path, strlen(path) + 1);
	for (;;) {
		end = done + strcspn(now + done, "/");
		if (!now[end])
			return 0;
		now[end] = '\0';
		e = pp_record_get(r, now);
		now[end] = '/';
		if (!e || e->kind != PP_ENTRY_LINK) {
			done = end + 1;
			continue;
		}
		if (++links > MAX_LINKS)
			return -ELOOP;
		memcpy(dir, now, done - 1);
		dir[done - 1] = '\0';
		if (pp_path_join(dir, e->content, next) || pp_path_join(next, now + end + 1, dir))
			return -ENAMETOOLONG;
		memcpy(now, dir, strlen(dir) + 1);
		done = 1;
	}
}

/* JSON and pax hold UTF-8 only; raw.errors is made of lines. */
static bool can_hold(const char *text)
{
	json_t *v;
	bool ok;

	if (!pp_is_text(text, strlen(text)) || strpbrk(text, "\n\r\t"))
		return false;
	for (const char *p = text; *p; p++) {
		if (!((unsigned char)*p & 0x80))
			continue;
		v = json_string(text);
		ok = v != NULL;
		json_decref(v);
		return ok;
	}
	return true;
}

static int put_parents(struct pp_record *to, const char *path)
{
	char dir[PP_PATH_MAX];
	int r = 0;

	memcpy(dir, path, strlen(path) + 1);
	for (char *slash = strchr(dir + 1, '/'); !r && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = pp_record_put(to, PP_ENTRY_DIR, dir, NULL, 0, 0);
		*slash = '/';
	}
	return r;
}

static int put_entry(struct pp_record *to, const struct pp_record *from, const struct pp_entry *e)
{
	char path[PP_PATH_MAX];
	int r = 0;

	if (!can_hold(e->path) || (e->kind == PP_ENTRY_LINK && (!e->len || !can_hold(e->content))))
		return -EBADMSG;
	if (e->kind == PP_ENTRY_ANSWER)
		return pp_record_put(to, e->kind, e->path, e->content, e->len, 0);
	if (real_dir(from, e->path, path))
		return -EBADMSG;
	/* An error answers for the path that was asked, too: replay looks it up before links. */
	if (e->kind == PP_ENTRY_ERROR && strcmp(path, e->path) != 0)
		r = pp_record_put(to, e->kind, e->path, NULL, 0, e->error);
	if (!r)
		r = put_parents(to, path);
	if (!r)
		r = pp_record_put(to, e->kind, path, e->content, e->len, e->error);
	return r;
}

int pp_plan_canonical(struct pp_record *record, struct pp_record **ret, size_t *ret_dropped,
		      struct pp_error *err)
{
	struct pp_record *to = NULL;
	const struct pp_entry *e;
	size_t n, dropped = 0;
	int r;

	if (pp_record_new(RAW_LIMIT, &to))
		return pp_error_set(err, -ENOMEM, "out of memory");
	e = pp_record_entries(record, &n);
	for (size_t i = 0; i < n; i++) {
		r = put_entry(to, record, &e[i]);
		if (r == -EBADMSG || r == -EINVAL) {
			dropped++;
		} else if (r) {
			pp_record_free(to);
			return pp_error_set(err, r, "what was recorded is over %zu MiB",
					    RAW_LIMIT >> 20);
		}
	}
	*ret_dropped = dropped;
	*ret = to;
	return 0;
}
