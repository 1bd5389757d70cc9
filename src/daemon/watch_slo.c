/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the application itself: samples of a Prometheus endpoint on this machine, or of a
 * file. "WHERE#NAME" takes the samples of that name, or the one with these very labels; without a
 * name the first 64 are taken, since one threshold will hardly fit more.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/apart.h"
#include "daemon/loopback.h"
#include "daemon/samples.h"
#include "daemon/slo.h"
#include "daemon/watch.h"
#include "base/banned.h"

enum { ANSWER = 4 << 20, MOST = 64 };
static const pp_ns LIMIT = 2 * PP_SECOND;

struct taking {
	struct pp_looks *into;
	const char *wanted; /* NULL: any */
	size_t n;
};

static int take(void *ctx, const char *name, size_t len, size_t bare, double value)
{
	struct taking *t = ctx;
	char object[256];
	size_t wanted = t->wanted ? strlen(t->wanted) : 0;

	if (t->wanted && !(wanted == bare && !memcmp(name, t->wanted, bare)) &&
	    !(wanted == len && !memcmp(name, t->wanted, len)))
		return 0;
	if (t->n == MOST)
		return 0;
	t->n++;
	(void)snprintf(object, sizeof(object), "%.*s", (int)(len < 255 ? len : 255), name);
	if (!isfinite(value))
		return pp_look_unknown(t->into, PP_SIGNAL_SLO, object,
				       "it is no finite number now");
	return pp_look_number(t->into, PP_SIGNAL_SLO, object, NULL, value);
}

static bool is_url(const char *where)
{
	return !strncmp(where, "http://", 7);
}

/* A file, made whole: only then does it name one to a source. */
static int resolve_file(const char *where, bool live, char ret[PP_PATH_MAX], struct pp_error *err)
{
	char dir[PP_PATH_MAX] = "/";

	if (strstr(where, "://"))
		return pp_error_set(err, -EINVAL, "'%.200s': a file, or http://127.0.0.1:PORT/PATH",
				    where);
	if (*where != '/' && !live)
		return pp_error_set(err, -EINVAL,
				    "'%.200s': in a recording, or another root, a file begins with "
				    "'/'",
				    where);
	if (*where != '/' && !getcwd(dir, sizeof(dir)))
		return pp_error_set(err, -EINVAL,
				    "'%.200s': the working directory is not known: %s", where,
				    pp_source_why(-errno));
	return pp_path_join(dir, where, ret)
		       ? pp_error_set(err, -EINVAL, "'%.200s...': too long", where)
		       : 0;
}

int pp_slo_resolve(const char *given, bool live, char ret[PP_SLO_TEXT], struct pp_error *err)
{
	size_t len = strcspn(given, "#");
	char where[PP_SLO_WHERE], path[PP_PATH_MAX];
	struct pp_loopback l;
	int r;

	if (!len)
		return pp_error_set(err, -EINVAL, "'%.200s' names no file and no endpoint", given);
	(void)snprintf(where, sizeof(where), "%.*s", (int)(len < sizeof(where) ? len : 0), given);
	r = !*where	    ? pp_error_set(err, -EINVAL, "'%.200s...': too long", given)
	    : is_url(where) ? pp_loopback_parse(where, &l, err)
			    : resolve_file(where, live, path, err);
	if (r)
		return r;
	if (strlen(is_url(where) ? where : path) >= PP_SLO_WHERE ||
	    snprintf(ret, PP_SLO_TEXT, "%s%s", is_url(where) ? where : path, given + len) >=
		    PP_SLO_TEXT)
		return pp_error_set(err, -EINVAL, "'%.200s...': too long", given);
	return 0;
}

/* Either way the whole text. A recording opens no socket. */
static int fetch(struct pp_watch_context *at, const char *where, struct pp_buf *to,
		 struct pp_error *why)
{
	struct pp_loopback l;
	size_t len = 0;
	char *text;
	int r;

	if (is_url(where)) {
		if (!at->live)
			return pp_error_set(why, -ENODATA, "a recording opens no socket");
		r = pp_loopback_parse(where, &l, why);
		return r ? r : pp_loopback_get(&l, LIMIT, to, why);
	}
	pp_apart_doing("reading", where);
	text = malloc(ANSWER);
	r = text ? pp_source_read(at->source, where, text, ANSWER, &len) : -ENOMEM;
	if (!r)
		pp_buf_add(to, text, len);
	else
		(void)pp_error_set(why, r, "%.200s: %s", where, pp_source_why(r));
	free(text);
	return r ? r : to->failed;
}

static const char *wanted_of(const char *slo)
{
	const char *hash = strchr(slo, '#');

	return hash && hash[1] ? hash + 1 : NULL;
}

static int silent(const struct pp_watch_context *at, struct pp_looks *into, const char *why)
{
	const char *wanted = wanted_of(at->slo);

	return pp_look_unknown(into, PP_SIGNAL_SLO, wanted ? wanted : "application", "%s", why);
}

/* An endpoint has its own deadline, and a recording is no server. */
static const char *apart(const struct pp_watch_context *at)
{
	bool file = at->slo && !is_url(at->slo) && pp_source_mode(at->source) != PP_SOURCE_REPLAY;

	return file ? "application's file" : NULL;
}

static int look_now(struct pp_watch_context *at, struct pp_looks *into)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(ANSWER);
	struct taking taking = {.into = into};
	struct pp_error why = {0};
	char where[PP_SLO_WHERE];
	size_t odd;
	int r;

	if (strcspn(at->slo, "#") >= sizeof(where))
		return pp_look_unknown(into, PP_SIGNAL_SLO, "application",
				       "its address is too long");
	(void)memcpy(where, at->slo, strcspn(at->slo, "#"));
	where[strcspn(at->slo, "#")] = '\0';
	taking.wanted = wanted_of(at->slo);
	r = fetch(at, where, &text, &why);
	if (r == -ENOMEM)
		return r;
	if (r)
		return silent(at, into, why.text);
	r = pp_samples_read(pp_buf_text(&text), text.len, take, &taking, &odd);
	if (!r && !taking.n)
		r = pp_look_unknown(into, PP_SIGNAL_SLO,
				    taking.wanted ? taking.wanted : "application",
				    "%.200s holds no sample of it", where);
	return r;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	int r = at->slo ? look_now(at, into) : 0;

	(void)state;
	return r ? pp_error_set(err, r, "watching the application: %s", pp_source_why(r)) : 0;
}

const struct pp_watcher pp_watch_slo = {
	.name = "slo", .period_ms = 15000, .look = look, .apart = apart, .silent = silent};
