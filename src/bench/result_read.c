/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document back into struct pp_bench. Bundles come from strangers: each number is in its range,
 * each list below its maximum, each reference to an end or node points at one, and all of it fits
 * the arena. What an older peerpath did not write is unknown, never none.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/result_fields.h"
#include "base/banned.h"

enum { TEXT_MAX = 64 << 10, PLACE_TEXT = 200 };

/* Where in the document: a chain on the stack, spelled only for a message. */
struct place {
	const struct place *up;
	const char *key; /* NULL: an element */
	unsigned int index;
};

struct reading {
	struct pp_arena *arena;
	struct pp_error *err;
};

#define MEMBER(type, object, offset) (*(type *)((char *)(object) + (offset)))

static int read_object(struct reading *r, const struct place *up, const json_t *from,
		       const struct pp_field_table *table, void *object);

static void spell(const struct place *p, char *text, size_t size)
{
	char before[PLACE_TEXT] = "";

	if (p->up)
		spell(p->up, before, sizeof(before));
	if (p->key)
		(void)snprintf(text, size, "%s%s%s", before, *before ? "." : "", p->key);
	else
		(void)snprintf(text, size, "%.*s[%u]", PLACE_TEXT - 16, before, p->index);
}

static int refuse(struct reading *r, const struct place *p, const char *what)
{
	char text[PLACE_TEXT];

	spell(p, text, sizeof(text));
	return pp_error_set(r->err, -EBADMSG, "%s %s", text, what);
}

static int no_memory(struct reading *r)
{
	return pp_error_set(r->err, -ENOMEM, "out of memory, or a result of more than 256 MiB");
}

static int read_text(struct reading *r, const struct place *p, const json_t *from, const char **ret)
{
	if (!from || json_is_null(from)) {
		*ret = NULL;
		return 0;
	}
	if (!json_is_string(from))
		return refuse(r, p, "is no text");
	if (json_string_length(from) > TEXT_MAX)
		return refuse(r, p, "is too long");
	if (strlen(json_string_value(from)) != json_string_length(from))
		return refuse(r, p, "has a NUL byte in it");
	*ret = pp_arena_str(r->arena, json_string_value(from));
	return r->arena->failed ? no_memory(r) : 0;
}

static int read_integer(struct reading *r, const struct place *p, const json_t *from, int64_t min,
			int64_t max, int64_t *ret)
{
	int64_t value = json_integer_value(from);

	if (!from)
		return refuse(r, p, "is missing");
	if (!json_is_integer(from))
		return refuse(r, p, "is no whole number");
	if (value < min || value > max)
		return refuse(r, p, "is out of range");
	*ret = value;
	return 0;
}

/* Numbers of a measurement: never negative, never infinite. */
static int read_double(struct reading *r, const struct place *p, const json_t *from, double instead,
		       double *ret)
{
	double value = json_number_value(from);

	if (!from || json_is_null(from))
		value = instead;
	else if (!json_is_number(from))
		return refuse(r, p, "is no number");
	else if (!isfinite(value) || value < 0)
		return refuse(r, p, "is out of range");
	*ret = value;
	return 0;
}

static int read_time(struct reading *r, const struct place *p, const json_t *from, pp_ns *ret)
{
	const char *text = json_string_value(from);

	*ret = 0;
	if (!from || json_is_null(from))
		return 0;
	return text && !pp_clock_parse(text, ret) ? 0 : refuse(r, p, "is no time");
}

static int read_word(struct reading *r, const struct place *p, const json_t *from,
		     const struct pp_field_words *words, unsigned int *ret)
{
	const char *text = json_string_value(from);

	if (!from)
		return refuse(r, p, "is missing");
	for (unsigned int i = 0; text && i < words->n; i++) {
		if (strcmp(text, words->name(i)) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return refuse(r, p, "is no word that this version knows");
}

static int read_length(struct reading *r, const struct place *p, const json_t *from,
		       unsigned int max, unsigned int *ret)
{
	if (!from)
		return refuse(r, p, "is missing");
	if (!json_is_array(from))
		return refuse(r, p, "is no list");
	if (json_array_size(from) > max)
		return refuse(r, p, "has too many elements");
	*ret = (unsigned int)json_array_size(from);
	return 0;
}

static int read_list(struct reading *r, const struct place *p, const json_t *from,
		     const struct pp_result_field *f, void *o)
{
	unsigned int n;
	char *list;
	int e = read_length(r, p, from, f->max, &n);

	if (e || !n)
		return e;
	list = pp_arena_array(r->arena, n, f->of->size);
	if (!list)
		return no_memory(r);
	for (unsigned int i = 0; i < n && !e; i++) {
		struct place at = {p, NULL, i};

		e = read_object(r, &at, json_array_get(from, i), f->of, list + i * f->of->size);
	}
	MEMBER(void *, o, f->at) = list;
	MEMBER(unsigned int, o, f->count) = n;
	return e;
}

static int read_two(struct reading *r, const struct place *p, const json_t *from,
		    const struct pp_result_field *f, void *o)
{
	unsigned int n;
	int e = read_length(r, p, from, 2, &n);

	if (!e && n != 2)
		e = refuse(r, p, "has not two elements");
	for (unsigned int i = 0; i < 2 && !e; i++) {
		struct place at = {p, NULL, i};
		const json_t *one = json_array_get(from, i);

		if (f->type == PP_FIELD_TWO)
			e = read_object(r, &at, one, f->of, (char *)o + f->at + i * f->of->size);
		else if (f->type == PP_FIELD_STRS || f->type == PP_FIELD_STRS_OR)
			e = read_text(r, &at, one, &MEMBER(const char *, o, f->at) + i);
		else if (f->type == PP_FIELD_DOUBLES_OR)
			e = read_double(r, &at, one, NAN, &MEMBER(double, o, f->at) + i);
		else if (json_is_null(one))
			(&MEMBER(int64_t, o, f->at))[i] = -1;
		else
			e = read_integer(r, &at, one, 0, INT64_MAX, &MEMBER(int64_t, o, f->at) + i);
	}
	return e;
}

/* A rung that the document does not have: whether it was asked for is not known. */
static int read_rungs(struct reading *r, const struct place *p, const json_t *from,
		      const struct pp_result_field *f, struct pp_bench_rung *rung)
{
	bool seen[PP_RUNGS] = {false};
	unsigned int n;
	int e = read_length(r, p, from, PP_RUNGS, &n);

	for (unsigned int i = 0; i < PP_RUNGS; i++)
		rung[i] = (struct pp_bench_rung){.rung = (enum pp_rung)i,
						 .state = PP_BENCH_NOT_REACHED,
						 .why = "not in the document"};
	for (unsigned int i = 0; !e && i < n; i++) {
		struct place at = {p, NULL, i};
		struct pp_bench_rung one = {0};

		e = read_object(r, &at, json_array_get(from, i), f->of, &one);
		if (!e && seen[one.rung])
			e = refuse(r, &at, "is there twice");
		if (e)
			return e;
		seen[one.rung] = true;
		rung[one.rung] = one;
	}
	return e;
}

static int read_samples(struct reading *r, const struct place *up, const json_t *object,
			const struct pp_result_field *f, struct pp_bench_cell *cell)
{
	struct place p = {up, pp_result_samples_key(cell), 0};
	const json_t *from = json_object_get(object, p.key);
	unsigned int n;
	int e = read_length(r, &p, from, f->max, &n);

	if (e || !n)
		return e;
	cell->sample = pp_arena_array(r->arena, n, sizeof(*cell->sample));
	if (!cell->sample)
		return no_memory(r);
	for (unsigned int i = 0; i < n && !e; i++) {
		struct place at = {&p, NULL, i};

		e = read_double(r, &at, json_array_get(from, i), NAN, &cell->sample[i]);
	}
	cell->n_samples = n;
	return e;
}

static int read_number(struct reading *r, const struct place *p, const json_t *from,
		       const struct pp_result_field *f, void *o)
{
	bool is_int = f->type == PP_FIELD_INT || f->type == PP_FIELD_INT_OR;
	bool none = !from || json_is_null(from);
	int64_t value = -1;
	int e = 0;

	if (f->type == PP_FIELD_DOUBLE_OR || f->type == PP_FIELD_DOUBLE_ZERO)
		return read_double(r, p, from, f->type == PP_FIELD_DOUBLE_OR ? NAN : 0.0,
				   &MEMBER(double, o, f->at));
	if (!(none && (f->type == PP_FIELD_INT_OR || f->type == PP_FIELD_I64_OR)))
		e = read_integer(r, p, from, f->type == PP_FIELD_I64 ? INT64_MIN : 0,
				 is_int			    ? INT32_MAX
				 : f->type == PP_FIELD_UINT ? UINT32_MAX
							    : INT64_MAX,
				 &value);
	if (e)
		return e;
	if (is_int)
		MEMBER(int, o, f->at) = (int)value;
	else if (f->type == PP_FIELD_UINT)
		MEMBER(unsigned int, o, f->at) = (unsigned int)value;
	else
		MEMBER(int64_t, o, f->at) = value;
	return 0;
}

static int read_field(struct reading *r, const struct place *up, const json_t *object,
		      const struct pp_result_field *f, void *o)
{
	struct place p = {up, f->key, 0};
	const json_t *from = json_object_get(object, f->key);

	switch (f->type) {
	case PP_FIELD_STR:
		return read_text(r, &p, from, &MEMBER(const char *, o, f->at));
	case PP_FIELD_BOOL:
		MEMBER(bool, o, f->at) = json_is_true(from);
		return json_is_boolean(from) ? 0 : refuse(r, &p, "is missing, or no boolean");
	case PP_FIELD_TIME_OR:
		return read_time(r, &p, from, &MEMBER(pp_ns, o, f->at));
	case PP_FIELD_WORD:
		return read_word(r, &p, from, f->words, &MEMBER(unsigned int, o, f->at));
	case PP_FIELD_SAMPLES:
		return read_samples(r, up, object, f, o);
	case PP_FIELD_LIST_OR:
		if (!from)
			return 0;
		return read_list(r, &p, from, f, o);
	case PP_FIELD_LIST:
		return read_list(r, &p, from, f, o);
	case PP_FIELD_RUNGS:
		return read_rungs(r, &p, from, f, ((struct pp_bench_pair *)o)->rung);
	case PP_FIELD_STRS_OR:
		return from ? read_two(r, &p, from, f, o) : 0;
	case PP_FIELD_TWO:
	case PP_FIELD_DOUBLES_OR:
	case PP_FIELD_I64S_OR:
	case PP_FIELD_STRS:
		return read_two(r, &p, from, f, o);
	default:
		return read_number(r, &p, from, f, o);
	}
}

static int read_object(struct reading *r, const struct place *up, const json_t *from,
		       const struct pp_field_table *table, void *object)
{
	int e = json_is_object(from) ? 0 : refuse(r, up, "is no object");

	for (unsigned int i = 0; i < table->n && !e; i++)
		e = read_field(r, up, from, &table->field[i], object);
	return e;
}

static int check_ends(struct reading *r, const struct place *p, const struct pp_bench *b,
		      const struct pp_bench_pair *pair)
{
	bool good = pair->end[0].node < b->n_nodes && pair->end[1].node < b->n_nodes;

	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		good &= pair->rung[i].end < 2;
		for (unsigned int k = 0; k < pair->rung[i].n_evidence; k++)
			good &= pair->rung[i].evidence[k].end < 2;
		for (unsigned int k = 0; k < pair->rung[i].n_attempts; k++)
			good &= pair->rung[i].attempts[k].end < 2;
	}
	for (unsigned int i = 0; i < pair->n_cells; i++) {
		good &= pair->cells[i].end < 2;
		for (unsigned int k = 0; k < pair->cells[i].n_counters; k++)
			good &= pair->cells[i].counters[k].end < 2;
	}
	return good ? 0 : refuse(r, p, "names an end or a node that is not there");
}

int pp_bench_read(const json_t *document, struct pp_bench **ret, struct pp_error *err)
{
	struct pp_bench *b = NULL;
	int e = pp_bench_new(&b);
	struct reading r = {.err = err};
	struct place top = {NULL, "pairs", 0};

	if (e)
		return pp_error_set(err, e, "out of memory");
	r.arena = b->arena;
	if (!json_is_object(document))
		e = pp_error_set(err, -EBADMSG, "the result is no object");
	for (unsigned int i = 0; i < pp_result_table.n && !e; i++)
		e = read_field(&r, NULL, document, &pp_result_table.field[i], b);
	for (unsigned int i = 0; i < b->n_pairs && !e; i++) {
		struct place at = {&top, NULL, i};

		e = check_ends(&r, &at, b, &b->pairs[i]);
	}
	if (e)
		b = pp_bench_free(b);
	else
		*ret = b;
	return e;
}
