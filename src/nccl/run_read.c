/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document back into runs. Documents come from strangers: each number is in its range, each list
 * below its maximum; a text is cut to its room and drives no terminal.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "nccl/run_fields.h"
#include "base/banned.h"

enum { TEXT_MAX = 64 << 10, PLACE_TEXT = 200 };
static const char SCHEMA[] = "peerpath.nccl_run/";

/* Where in the document: a chain on the stack, spelled only for a message. */
struct place {
	const struct place *up;
	const char *key; /* NULL: an element */
	size_t index;
};

#define MEMBER(type, object, offset) (*(type *)((char *)(object) + (offset)))

static int read_object(const json_t *from, const struct pp_run_table *table, const struct place *up,
		       void *object, struct pp_error *err);

static void spell(const struct place *p, char *text, size_t size)
{
	char before[PLACE_TEXT] = "";

	if (p->up)
		spell(p->up, before, sizeof(before));
	if (p->key)
		(void)snprintf(text, size, "%s%s%s", before, *before ? "." : "", p->key);
	else
		(void)snprintf(text, size, "%.*s[%zu]", PLACE_TEXT - 24, before, p->index);
}

static int refuse(const struct place *p, const char *what, struct pp_error *err)
{
	char text[PLACE_TEXT];

	spell(p, text, sizeof(text));
	return pp_error_set(err, -EBADMSG, "%s %s", text, what);
}

static int read_text(const json_t *from, const struct pp_run_field *f, const struct place *p,
		     char *ret, struct pp_error *err)
{
	const char *text = json_string_value(from);
	size_t n;

	if (json_is_null(from))
		return 0;
	if (!text)
		return refuse(p, "is no text", err);
	if (json_string_length(from) > TEXT_MAX || strlen(text) != json_string_length(from))
		return refuse(p, "is too long, or has a NUL byte in it", err);
	n = pp_utf8_fit(text, strlen(text), f->size - 1);
	memcpy(ret, text, n);
	ret[n] = '\0';
	pp_sanitize(ret, false);
	return 0;
}

static int read_integer(const json_t *from, const struct place *p, int64_t max, int64_t *ret,
			struct pp_error *err)
{
	if (!json_is_integer(from))
		return refuse(p, "is no whole number", err);
	if (json_integer_value(from) < 0 || json_integer_value(from) > max)
		return refuse(p, "is out of range", err);
	*ret = json_integer_value(from);
	return 0;
}

static int read_double(const json_t *from, const struct place *p, double *ret, struct pp_error *err)
{
	if (!json_is_number(from))
		return refuse(p, "is no number", err);
	if (!isfinite(json_number_value(from)) || json_number_value(from) < 0)
		return refuse(p, "is out of range", err);
	*ret = json_number_value(from);
	return 0;
}

static int read_word(const json_t *from, const struct pp_run_words *words, const struct place *p,
		     unsigned int *ret, struct pp_error *err)
{
	const char *text = json_string_value(from);

	for (unsigned int i = 0; text && i < words->n; i++) {
		if (strcmp(text, words->name(i)) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return refuse(p, "is no word that this version knows", err);
}

static int read_elements(const json_t *from, const struct pp_run_field *f, const struct place *p,
			 void *object, struct pp_error *err)
{
	size_t n = json_array_size(from);
	char *first = (char *)object + f->at;
	int r = 0;

	if (!json_is_array(from))
		return refuse(p, "is no list", err);
	if (n > f->size)
		return refuse(p, "has too many elements", err);
	if (f->type == PP_RUN_OWNED) {
		first = n ? calloc(n, f->of->size) : NULL;
		if (n && !first)
			return pp_error_set(err, -ENOMEM, "out of memory");
		MEMBER(void *, object, f->at) = first;
	}
	MEMBER(uint32_t, object, f->count) = (uint32_t)n;
	for (size_t i = 0; i < n && !r; i++) {
		struct place at = {p, NULL, i};

		r = read_object(json_array_get(from, i), f->of, &at, first + i * f->of->size, err);
	}
	return r;
}

static int read_each(const json_t *from, const struct pp_run_field *f, const struct place *p,
		     char *first, struct pp_error *err)
{
	int r = json_is_object(from) ? 0 : refuse(p, "is no object", err);

	for (unsigned int i = 0; i < f->words->n && !r; i++) {
		struct place at = {p, f->words->name(i), 0};

		r = read_object(json_object_get(from, at.key), f->of, &at, first + i * f->of->size,
				err);
	}
	return r;
}

static int read_number(const json_t *from, const struct pp_run_field *f, const struct place *p,
		       void *at, struct pp_error *err)
{
	bool narrow = f->type == PP_RUN_U32 || f->type == PP_RUN_U32_OR;
	int64_t value = 0;
	int r = 0;

	if (!json_is_null(from) || (f->type != PP_RUN_U32_OR && f->type != PP_RUN_U64_OR))
		r = read_integer(from, p,
				 narrow			 ? UINT32_MAX
				 : f->type == PP_RUN_INT ? INT32_MAX
							 : INT64_MAX,
				 &value, err);
	if (narrow)
		MEMBER(uint32_t, at, 0) = (uint32_t)value;
	else if (f->type == PP_RUN_INT)
		MEMBER(int, at, 0) = (int)value;
	else if (f->type == PP_RUN_BYTES)
		MEMBER(double, at, 0) = (double)value;
	else
		MEMBER(int64_t, at, 0) = value;
	return r;
}

static int read_field(const json_t *from, const struct pp_run_field *f, const struct place *p,
		      void *object, struct pp_error *err)
{
	char *at = (char *)object + f->at;

	switch (f->type) {
	case PP_RUN_STR:
		return read_text(from, f, p, at, err);
	case PP_RUN_KNOWN: /* a reason that was lost makes nothing known */
		if (json_is_false(from) && !*at)
			(void)snprintf(at, f->size, "no reason is given");
		return json_is_boolean(from) ? 0 : refuse(p, "is no boolean", err);
	case PP_RUN_BOOL:
		MEMBER(bool, at, 0) = json_is_true(from);
		return json_is_boolean(from) ? 0 : refuse(p, "is no boolean", err);
	case PP_RUN_DOUBLE_OR:
		if (json_is_null(from))
			return 0;
		return read_double(from, p, &MEMBER(double, at, 0), err);
	case PP_RUN_DOUBLE:
		return read_double(from, p, &MEMBER(double, at, 0), err);
	case PP_RUN_WORD:
		return read_word(from, f->words, p, &MEMBER(unsigned int, at, 0), err);
	case PP_RUN_OBJECT:
		return read_object(from, f->of, p, at, err);
	case PP_RUN_EACH:
		return read_each(from, f, p, at, err);
	case PP_RUN_LIST:
	case PP_RUN_OWNED:
		return read_elements(from, f, p, object, err);
	default:
		return read_number(from, f, p, at, err);
	}
}

/* What stands behind a guard is known when none of it is null. */
static bool is_known(const json_t *from, const struct pp_run_table *table, size_t guard)
{
	for (unsigned int i = 0; i < table->n; i++)
		if (table->field[i].guard == guard &&
		    json_is_null(json_object_get(from, table->field[i].key)))
			return false;
	return true;
}

static int read_object(const json_t *from, const struct pp_run_table *table, const struct place *up,
		       void *object, struct pp_error *err)
{
	int r = json_is_object(from) ? 0 : refuse(up, "is missing, or no object", err);

	for (unsigned int i = 0; i < table->n && !r; i++) {
		const struct pp_run_field *f = &table->field[i];
		const json_t *member = json_object_get(from, f->key);
		struct place p = {up, f->key, 0};
		bool known = !f->guard || is_known(from, table, f->guard);

		if (!member)
			r = refuse(&p, "is missing", err);
		else if (known)
			r = read_field(member, f, &p, object, err);
		if (f->guard)
			MEMBER(bool, object, f->guard - 1) = known;
	}
	return r;
}

static int read_run(const json_t *object, const struct place *p, struct pp_nccl_run **ret,
		    struct pp_error *err)
{
	struct pp_nccl_run *run = NULL;
	int r = pp_nccl_run_new(PP_NCCL_ARM_UNCHANGED, 0, &run);

	if (r || !run)
		return pp_error_set(err, -ENOMEM, "out of memory");
	r = read_object(object, &pp_run_table, p, run, err);
	if (r) {
		pp_nccl_run_free(run);
		return r;
	}
	/* The mark of a simulation stands at several places: one of them is enough. */
	run->simulated |= run->judgement.simulated;
	for (uint32_t i = 0; i < run->n_nodes; i++)
		run->simulated |= run->node[i].simulated;
	*ret = run;
	return 0;
}

int pp_nccl_run_read(const json_t *object, struct pp_nccl_run **ret, struct pp_error *err)
{
	struct place p = {NULL, "run", 0};

	return read_run(object, &p, ret, err);
}

static int check_schema(const json_t *document, struct pp_error *err)
{
	const char *schema = json_string_value(json_object_get(document, "schema"));
	uint64_t version;

	if (!schema || strncmp(schema, SCHEMA, sizeof(SCHEMA) - 1) != 0 ||
	    pp_parse_u64(schema + sizeof(SCHEMA) - 1, 1, UINT32_MAX, &version))
		return pp_error_set(err, -EBADMSG, "no document of 'peerpath nccl run --json'");
	if (version > 1)
		return pp_error_set(err, -ENOTSUP,
				    "written by a newer peerpath (schema %s1 is read here, not "
				    "%" PRIu64 ")",
				    SCHEMA, version);
	return 0;
}

static int take_runs(const json_t *list, struct pp_nccl_runs *ret, struct pp_error *err)
{
	struct place top = {NULL, "runs", 0};
	int r = 0;

	if (!json_is_array(list) || json_array_size(list) > PP_NCCL_ARMS)
		return refuse(&top, "is missing, or no list of one run for each arm", err);
	for (size_t i = 0; i < json_array_size(list) && !r; i++) {
		struct place at = {&top, NULL, i};
		struct pp_nccl_run *run = NULL;

		r = read_run(json_array_get(list, i), &at, &run, err);
		if (r)
			break;
		if (ret->arm[run->arm]) {
			r = refuse(&at, "is of an arm that another one is of, too", err);
			pp_nccl_run_free(run);
		} else {
			ret->arm[run->arm] = run;
		}
	}
	return r;
}

int pp_nccl_runs_read(const char *text, size_t len, struct pp_nccl_runs *ret, struct pp_error *err)
{
	struct pp_nccl_runs runs = {{NULL}};
	json_error_t where;
	json_t *document = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	int r;

	/* a parser that ran out of memory has no line to name */
	if (!document && (!where.text[0] || json_error_code(&where) == json_error_out_of_memory))
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (!document)
		return pp_error_set(err, -EBADMSG, "no JSON: line %d: %s", where.line, where.text);
	r = check_schema(document, err);
	if (!r)
		r = take_runs(json_object_get(document, "runs"), &runs, err);
	json_decref(document);
	if (r)
		pp_nccl_runs_done(&runs);
	else
		*ret = runs;
	return r;
}

void pp_nccl_runs_done(struct pp_nccl_runs *r)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		r->arm[i] = pp_nccl_run_free(r->arm[i]);
}
