/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be read: the same answers as the command line's, as JSON, and pictures.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "store/serve_parts.h"
#include "base/banned.h"

static const size_t PICTURE_BYTES = (size_t)8 << 20;

struct asking {
	struct pp_serve *s;
	struct MHD_Connection *c;
	struct pp_out *o;
	bool simulated;
	struct pp_error err;
};

/* A parameter of the query; empty ones are none. */
static const char *parameter(const struct asking *a, const char *name)
{
	const char *v = pp_web.lookup_connection_value(a->c, MHD_GET_ARGUMENT_KIND, name);

	return v && *v ? v : NULL;
}

static int number(struct asking *a, const char *name, unsigned int *ret)
{
	const char *text = parameter(a, name);
	uint64_t n = 0;

	if (text && pp_parse_u64(text, 0, 10000000, &n))
		return pp_error_set(&a->err, -EINVAL, "'%s' takes a number up to 10000000", name);
	*ret = (unsigned int)n;
	return 0;
}

static int nodes(struct asking *a)
{
	struct pp_fleet_filter f = {.text = parameter(a, "text"),
				    .verdict = parameter(a, "verdict"),
				    .flavour = parameter(a, "module"),
				    .topology = parameter(a, "wiring"),
				    .software = parameter(a, "software"),
				    .silent_after = PP_FLEET_SILENT_AFTER};
	int r = number(a, "offset", &f.offset);

	r = r ? r : number(a, "limit", &f.limit);
	return r ? r : pp_fleet_list(a->s->sql, a->simulated, &f, a->o, &a->err);
}

static int needs(struct asking *a, const char *what)
{
	return pp_error_set(&a->err, -EINVAL, "'%s' is missing", what);
}

static int node(struct asking *a)
{
	const char *called = parameter(a, "node");

	return called ? pp_fleet_show(a->s->sql, a->simulated, called, a->o, &a->err)
		      : needs(a, "node");
}

static int classes(struct asking *a)
{
	return pp_fleet_classes(a->s->sql, a->simulated, a->o, &a->err);
}

static int odd(struct asking *a)
{
	size_t found;

	return pp_fleet_odd(a->s->sql, a->simulated, PP_FLEET_SILENT_AFTER, a->o, &found, &a->err);
}

static int rails(struct asking *a)
{
	size_t found;

	return pp_fleet_rails(a->s->sql, a->simulated, a->o, &found, &a->err);
}

static int diff(struct asking *a)
{
	const char *x = parameter(a, "a"), *y = parameter(a, "b");

	return x && y ? pp_fleet_diff(a->s->sql, a->simulated, x, y, a->o, &a->err)
		      : needs(a, x ? "b" : "a");
}

static int history(struct asking *a)
{
	const struct pp_history_filter f = {.node = parameter(a, "node"),
					    .what = parameter(a, "what"),
					    .topology = parameter(a, "wiring"),
					    .software = parameter(a, "software")};

	return pp_fleet_history(a->s->sql, a->simulated, &f, a->o, &a->err);
}

static const struct {
	const char *path, *view;
	int (*ask)(struct asking *a);
} paths[] = {
	{"/api/nodes", "list", nodes},	      {"/api/node", "show", node},
	{"/api/classes", "classes", classes}, {"/api/odd", "odd", odd},
	{"/api/rails", "rails", rails},	      {"/api/diff", "diff", diff},
	{"/api/history", "history", history},
};

static unsigned int status_of(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENODATA:
		return MHD_HTTP_NOT_FOUND;
	case -EINVAL:
	case -ENOTUNIQ:
		return MHD_HTTP_BAD_REQUEST;
	default:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	}
}

/* The document in @ret_text, malloc'ed. */
static int write_answer(struct asking *a, size_t path, char **ret_text, size_t *ret_len)
{
	FILE *f = open_memstream(ret_text, ret_len);
	int r;

	a->o = f ? pp_out_new(true, f, 0, false) : NULL;
	if (!a->o) {
		if (f)
			(void)fclose(f);
		return pp_error_set(&a->err, -ENOMEM, "out of memory");
	}
	pp_out_document(a->o, "peerpath.fleet/1");
	pp_out_str(a->o, "view", NULL, paths[path].view);
	pp_out_bool(a->o, "simulated", NULL, a->simulated);
	r = paths[path].ask(a);
	if (!r)
		r = pp_out_finish(a->o);
	pp_out_free(a->o);
	if (fclose(f) && !r)
		r = -ENOMEM;
	return r;
}

/* Of the database that the path names now, not of one that was moved away or deleted. */
static bool has_database(struct asking *a, enum MHD_Result *ret)
{
	if (!pp_fleet_renew(a->s->sql, &a->err))
		return true;
	*ret = pp_serve_refuse(a->c, MHD_HTTP_SERVICE_UNAVAILABLE, a->err.text);
	return false;
}

static enum MHD_Result answer(struct asking *a, size_t path)
{
	struct MHD_Response *response;
	char *text = NULL;
	size_t len = 0;
	int r = write_answer(a, path, &text, &len);

	if (r) {
		free(text);
		return pp_serve_refuse(a->c, status_of(r),
				       a->err.code ? a->err.text : "out of memory");
	}
	response = pp_web.create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	(void)pp_web.add_response_header(response, "Content-Type", "application/json");
	return pp_serve_answer(a->c, MHD_HTTP_OK, response);
}

/* An image for <img>, and a page of its own that may do nothing. */
static enum MHD_Result picture(struct asking *a)
{
	PP_AUTO_BUF struct pp_buf svg = PP_BUF(PICTURE_BYTES);
	const char *called = parameter(a, "node");
	struct MHD_Response *response;
	int r = called ? pp_fleet_picture(a->s->sql, a->simulated, called, &svg, &a->err)
		       : needs(a, "node");

	if (r)
		return pp_serve_refuse(a->c, status_of(r), a->err.text);
	response = pp_web.create_response_from_buffer(svg.len, svg.data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	(void)pp_web.add_response_header(response, "Content-Type", "image/svg+xml");
	(void)pp_web.add_response_header(response, "Content-Security-Policy",
					 "default-src 'none'; style-src 'unsafe-inline'; sandbox");
	return pp_serve_answer(a->c, MHD_HTTP_OK, response);
}

static enum MHD_Result health(struct asking *a)
{
	static const char text[] = "ok\n";
	struct MHD_Response *response;

	if (pp_fleet_alive(a->s->sql, &a->err))
		return pp_serve_refuse(a->c, MHD_HTTP_SERVICE_UNAVAILABLE, a->err.text);
	response = pp_web.create_response_from_buffer(sizeof(text) - 1, (void *)(uintptr_t)text,
						      MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	(void)pp_web.add_response_header(response, "Content-Type", "text/plain");
	return pp_serve_answer(a->c, MHD_HTTP_OK, response);
}

bool pp_serve_get(struct pp_serve *s, struct MHD_Connection *c, const char *path,
		  enum MHD_Result *ret)
{
	struct asking a = {.s = s, .c = c};

	a.simulated = parameter(&a, "simulated") != NULL;
	if (!strcmp(path, PP_SERVE_HEALTH)) {
		*ret = health(&a);
		return true;
	}
	if (!strcmp(path, "/picture.svg")) {
		if (has_database(&a, ret))
			*ret = picture(&a);
		return true;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(paths); i++) {
		if (strcmp(paths[i].path, path) != 0)
			continue;
		if (has_database(&a, ret))
			*ret = answer(&a, i);
		return true;
	}
	return false;
}
