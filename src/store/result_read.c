/* SPDX-License-Identifier: Apache-2.0 */
#include "store/result_read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "base/banned.h"

void pp_reading_refuse(struct pp_reading *in, int code, const char *what, const char *why)
{
	if (!in->failed)
		in->failed = pp_error_set(in->err, code, "%s %s", what, why);
}

static const char *keep(struct pp_reading *in, const char *text, size_t len)
{
	char own[PP_RESULT_TEXT + 1];
	const char *kept;

	len = pp_utf8_fit(text, len, PP_RESULT_TEXT);
	memcpy(own, text, len);
	own[len] = '\0';
	pp_sanitize(own, false);
	kept = pp_arena_str(&in->r->arena, own);
	/* At once: what is "" for want of room must not be read as what it should have been. */
	if (in->r->arena.failed)
		pp_reading_refuse(in, -EFBIG, "the result", "is too large");
	return kept;
}

const char *pp_reading_text(struct pp_reading *in, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	if (!v || json_is_null(v))
		return NULL;
	if (!json_is_string(v)) {
		pp_reading_refuse(in, -EBADMSG, key, "is no text");
		return NULL;
	}
	return keep(in, json_string_value(v), json_string_length(v));
}

bool pp_reading_truth(struct pp_reading *in, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	if (!json_is_boolean(v))
		pp_reading_refuse(in, -EBADMSG, key, "is neither true nor false");
	return json_is_true(v);
}

double pp_reading_number(struct pp_reading *in, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	if (!v || json_is_null(v))
		return NAN;
	if (!json_is_number(v) || !isfinite(json_number_value(v))) {
		pp_reading_refuse(in, -EBADMSG, key, "is no finite number");
		return NAN;
	}
	return json_number_value(v);
}

int64_t pp_reading_count(struct pp_reading *in, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	if (!v || json_is_null(v))
		return -1;
	if (!json_is_integer(v) || json_integer_value(v) < -1) {
		pp_reading_refuse(in, -EBADMSG, key, "is no count");
		return -1;
	}
	return json_integer_value(v);
}

const json_t *pp_reading_list(struct pp_reading *in, const json_t *from, const char *key,
			      size_t most)
{
	const json_t *v = json_object_get(from, key);

	if (!v || json_is_null(v))
		return NULL;
	if (json_is_array(v) && json_array_size(v) <= most)
		return v;
	pp_reading_refuse(in, -EBADMSG, key, "is no list, or a longer one than is read");
	return NULL;
}

bool pp_reading_verdict(struct pp_reading *in, const json_t *from, const char *key,
			enum pp_verdict *ret)
{
	const char *word = json_string_value(json_object_get(from, key));

	if (word && !pp_verdict_parse(word, ret))
		return true;
	pp_reading_refuse(in, -EBADMSG, key, "is no verdict");
	return false;
}

const char *pp_reading_printf(struct pp_reading *in, const char *fmt, ...)
{
	char own[PP_RESULT_TEXT + 1];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(own, sizeof(own), fmt, ap);
	va_end(ap);
	return keep(in, own, strlen(own));
}

/* Arrays in the arena grow by halves again; what they leave behind is the arena's. */
static void *one_more(struct pp_reading *in, void *array, size_t n, size_t size, size_t most,
		      const char *what)
{
	void *grown;

	if (in->failed)
		return NULL;
	if (n == most) {
		pp_reading_refuse(in, -EBADMSG, what, "are more than are read");
		return NULL;
	}
	/* Full at powers of two from 4 on. */
	if (n && (n < 4 || (n & (n - 1))))
		return array;
	grown = pp_arena_array(&in->r->arena, n < 4 ? 4 : 2 * n, size);
	if (!grown)
		pp_reading_refuse(in, -ENOMEM, "the result", "does not fit into memory");
	else if (n)
		memcpy(grown, array, n * size);
	return grown;
}

struct pp_result_node *pp_reading_add_node(struct pp_reading *in)
{
	struct pp_result *r = in->r;
	void *a = one_more(in, r->node, r->n_nodes, sizeof(*r->node), PP_RESULT_NODES, "nodes");

	if (!a)
		return NULL;
	r->node = a;
	return &r->node[r->n_nodes++];
}

struct pp_result_figure *pp_reading_add_figure(struct pp_reading *in)
{
	struct pp_result *r = in->r;
	void *a = one_more(in, r->figure, r->n_figures, sizeof(*r->figure), PP_RESULT_FIGURES,
			   "figures");

	if (!a)
		return NULL;
	r->figure = a;
	r->figure[r->n_figures] = (struct pp_result_figure){.rail = -1, .size_bytes = -1};
	return &r->figure[r->n_figures++];
}

struct pp_result_gain *pp_reading_add_gain(struct pp_reading *in)
{
	struct pp_result *r = in->r;
	void *a = one_more(in, r->gain, r->n_gains, sizeof(*r->gain), PP_RESULT_GAINS, "gains");

	if (!a)
		return NULL;
	r->gain = a;
	r->gain[r->n_gains] = (struct pp_result_gain){
		.size_bytes = -1, .with = NAN, .without = NAN, .ratio = NAN};
	return &r->gain[r->n_gains++];
}

/* An id of zeros is what scrubbing and drivers without one write: everybody's. */
static bool tells(const char *id)
{
	for (; *id; id++)
		if (*id >= '1' && *id <= '9')
			return true;
		else if (*id >= 'a' && *id <= 'f')
			return true;
	return false;
}

void pp_reading_add_part(struct pp_reading *in, struct pp_result_node *n, const char *kind,
			 const char *id)
{
	if (in->failed || !id || !tells(id))
		return;
	for (size_t i = 0; i < n->n_parts; i++)
		if (!strcmp(n->part[i] + strlen(kind) + 1, id))
			return;
	if (n->n_parts == PP_RESULT_PARTS) {
		pp_reading_refuse(in, -EBADMSG, "parts of a node", "are more than are read");
		return;
	}
	n->part[n->n_parts++] = pp_reading_printf(in, "%s %s", kind, id);
}

void pp_reading_add_fact(struct pp_reading *in, struct pp_result_node *n, const char *key,
			 const char *value)
{
	size_t at = n->n_facts;

	if (in->failed || !value)
		return;
	if (n->n_facts == PP_RESULT_FACTS) {
		pp_reading_refuse(in, -EBADMSG, "facts of a node", "are more than are read");
		return;
	}
	while (at && strcmp(n->fact[at - 1].key, key) > 0) {
		n->fact[at] = n->fact[at - 1];
		at--;
	}
	n->fact[at] = (struct pp_result_fact){key, value};
	n->n_facts++;
}
