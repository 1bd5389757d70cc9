/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded answers. Every text is scrubbed by what its member's name says; so are the names of
 * members, for a map by GUID or by UUID. Numbers stay.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/scrub_context.h"
#include "bundle/scrub_program.h"
#include "base/banned.h"

enum { TEXT_MAX = 16 << 20 };

static json_t *scrubbed_value(struct pp_scrub_text *s, const char *name, const json_t *v);

/* "NAME=value", as environments are listed: the name says what the value is. */
static size_t variable_name(const char *text, size_t len, char name[64])
{
	size_t n = 0;

	while (n < len && n < 63 &&
	       (pp_scrub_is_word(text[n]) || text[n] == '_' || text[n] == '.')) {
		name[n] = text[n];
		n++;
	}
	name[n] = '\0';
	return n && n < len && text[n] == '=' ? n : 0;
}

static json_t *scrubbed_text(struct pp_scrub_text *s, const char *name, const json_t *v)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(TEXT_MAX);
	const char *text = json_string_value(v);
	size_t len = json_string_length(v), n;
	enum pp_scrub_context context = pp_scrub_context_of_name(name);
	char variable[64];

	n = context == PP_SCRUB_AS_TEXT ? variable_name(text, len, variable) : 0;
	if (n) {
		pp_buf_add(&out, text, n + 1);
		context = pp_scrub_context_of_name(variable);
		n++;
	}
	pp_scrub_value(s, context, text + n, len - n, &out);
	if (out.failed)
		return NULL;
	return json_stringn(pp_buf_text(&out), out.len);
}

static json_t *scrubbed_object(struct pp_scrub_text *s, const json_t *object)
{
	/* {"name": "HOME", "value": "..."}: the name is the value's name */
	const char *named = json_string_value(json_object_get(object, "name"));
	json_t *to = json_object();
	void *at = json_object_iter((json_t *)(uintptr_t)object);

	for (; to && at; at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
		struct pp_buf PP_AUTO_BUF key = PP_BUF(TEXT_MAX);
		const char *name = json_object_iter_key(at);
		json_t *v = scrubbed_value(s, named && !strcmp(name, "value") ? named : name,
					   json_object_iter_value(at));

		pp_scrub_text(s, name, strlen(name), &key);
		if (!v || key.failed || json_object_set_new(to, pp_buf_text(&key), v)) {
			json_decref(to);
			to = NULL;
		}
	}
	return to;
}

static json_t *scrubbed_array(struct pp_scrub_text *s, const char *name, const json_t *array)
{
	json_t *to = json_array();

	for (size_t i = 0; to && i < json_array_size(array); i++) {
		if (json_array_append_new(to, scrubbed_value(s, name, json_array_get(array, i)))) {
			json_decref(to);
			to = NULL;
		}
	}
	return to;
}

/* A new reference; NULL when out of memory. The parser bounds the depth. */
static json_t *scrubbed_value(struct pp_scrub_text *s, const char *name, const json_t *v)
{
	if (json_is_object(v))
		return scrubbed_object(s, v);
	if (json_is_array(v))
		return scrubbed_array(s, name, v);
	if (json_is_string(v))
		return scrubbed_text(s, name, v);
	/* A serial number that is a number. */
	if (json_is_integer(v) && pp_scrub_context_of_name(name) == PP_SCRUB_AS_SERIAL)
		return json_integer(0);
	return json_deep_copy(v);
}

/* {"name": "dma-buf", "data": {"text"}}: its own grammar, and buffers' names in it. */
static int scrub_buffers(struct pp_scrub_text *s, const json_t *document)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(TEXT_MAX);
	const char *name = json_string_value(json_object_get(document, "name"));
	json_t *data = json_object_get(document, "data"), *text = json_object_get(data, "text");

	if (!name || strcmp(name, "dma-buf") != 0 || !json_is_string(text))
		return 0;
	s->replaced +=
		pp_scrub_bufinfo(s->map, json_string_value(text), json_string_length(text), &out);
	text = out.failed ? NULL : json_stringn(pp_buf_text(&out), out.len);
	return json_object_set_new(data, "text", text) ? -ENOMEM : 0;
}

int pp_scrub_json(struct pp_scrub_text *s, const char *text, size_t len, struct pp_buf *out)
{
	json_t *from = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL), *to;
	char *done;

	if (!json_is_object(from)) {
		json_decref(from);
		return -EBADMSG;
	}
	to = scrub_buffers(s, from) ? NULL : scrubbed_object(s, from);
	json_decref(from);
	done = to ? json_dumps(to, JSON_INDENT(1)) : NULL;
	json_decref(to);
	if (!done)
		return -ENOMEM;
	pp_buf_str(out, done);
	free(done);
	return out->failed;
}
