/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_bench into a document. Floating point numbers have six significant digits: what is
 * read back writes the same document again.
 */
#include <string.h>

#include "bench/result_fields.h"
#include "base/banned.h"

/* A member of an object of the table, by its offset. */
#define MEMBER(type, object, offset) (*(type const *)((const char *)(object) + (offset)))

static void write_object(struct pp_json *j, const char *key, const struct pp_field_table *table,
			 const void *object);

static void write_list(struct pp_json *j, const struct pp_result_field *f, const char *first,
		       unsigned int n)
{
	pp_json_array(j, f->key);
	for (unsigned int i = 0; i < n; i++)
		write_object(j, NULL, f->of, first + i * f->of->size);
	pp_json_end_array(j);
}

/* Each under its own word, whatever a coordinator that failed early left in it. */
static void write_rungs(struct pp_json *j, const struct pp_result_field *f,
			const struct pp_bench_rung *rung)
{
	pp_json_array(j, f->key);
	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		struct pp_bench_rung one = rung[i];

		one.rung = (enum pp_rung)i;
		write_object(j, NULL, f->of, &one);
	}
	pp_json_end_array(j);
}

static void write_samples(struct pp_json *j, const struct pp_bench_cell *cell)
{
	pp_json_array(j, pp_result_samples_key(cell));
	for (unsigned int i = 0; i < cell->n_samples; i++)
		pp_json_double(j, NULL, cell->sample[i]);
	pp_json_end_array(j);
}

static void write_i64_or(struct pp_json *j, const char *key, int64_t value)
{
	if (value == -1)
		pp_json_null(j, key);
	else
		pp_json_i64(j, key, value);
}

static void write_time(struct pp_json *j, const char *key, pp_ns when)
{
	char text[32];

	pp_json_str(j, key, when ? pp_clock_format(when, text, sizeof(text)) : NULL);
}

/* Two values of one member, one for each end. */
static void write_two(struct pp_json *j, const struct pp_result_field *f, const void *o)
{
	pp_json_array(j, f->key);
	for (unsigned int i = 0; i < 2; i++) {
		if (f->type == PP_FIELD_STRS || f->type == PP_FIELD_STRS_OR)
			pp_json_str(j, NULL, (&MEMBER(const char *, o, f->at))[i]);
		else if (f->type == PP_FIELD_I64S_OR)
			write_i64_or(j, NULL, (&MEMBER(int64_t, o, f->at))[i]);
		else
			pp_json_double(j, NULL, (&MEMBER(double, o, f->at))[i]);
	}
	pp_json_end_array(j);
}

static void write_number(struct pp_json *j, const struct pp_result_field *f, const void *o)
{
	switch (f->type) {
	case PP_FIELD_UINT:
		return pp_json_u64(j, f->key, MEMBER(unsigned int, o, f->at));
	case PP_FIELD_U64:
		return pp_json_u64(j, f->key, MEMBER(uint64_t, o, f->at));
	case PP_FIELD_INT:
		return pp_json_i64(j, f->key, MEMBER(int, o, f->at));
	case PP_FIELD_INT_OR:
		return write_i64_or(j, f->key, MEMBER(int, o, f->at));
	case PP_FIELD_I64_OR:
		return write_i64_or(j, f->key, MEMBER(int64_t, o, f->at));
	case PP_FIELD_DOUBLE_OR:
		return pp_json_double(j, f->key, MEMBER(double, o, f->at));
	case PP_FIELD_DOUBLE_ZERO:
		if (MEMBER(double, o, f->at) > 0)
			return pp_json_double(j, f->key, MEMBER(double, o, f->at));
		return pp_json_null(j, f->key);
	default:
		return pp_json_i64(j, f->key, MEMBER(int64_t, o, f->at));
	}
}

static void write_field(struct pp_json *j, const struct pp_result_field *f, const void *o)
{
	const char *at = (const char *)o + f->at;

	switch (f->type) {
	case PP_FIELD_STR:
		return pp_json_str(j, f->key, MEMBER(const char *, o, f->at));
	case PP_FIELD_BOOL:
		return pp_json_bool(j, f->key, MEMBER(bool, o, f->at));
	case PP_FIELD_TIME_OR:
		return write_time(j, f->key, MEMBER(pp_ns, o, f->at));
	case PP_FIELD_WORD:
		return pp_json_str(j, f->key, f->words->name(MEMBER(unsigned int, o, f->at)));
	case PP_FIELD_SAMPLES:
		return write_samples(j, o);
	case PP_FIELD_LIST:
	case PP_FIELD_LIST_OR:
		return write_list(j, f, MEMBER(const char *, o, f->at),
				  MEMBER(unsigned int, o, f->count));
	case PP_FIELD_TWO:
		return write_list(j, f, at, 2);
	case PP_FIELD_RUNGS:
		return write_rungs(j, f, ((const struct pp_bench_pair *)o)->rung);
	case PP_FIELD_DOUBLES_OR:
	case PP_FIELD_I64S_OR:
	case PP_FIELD_STRS:
	case PP_FIELD_STRS_OR:
		return write_two(j, f, o);
	default:
		return write_number(j, f, o);
	}
}

static void write_object(struct pp_json *j, const char *key, const struct pp_field_table *table,
			 const void *object)
{
	pp_json_object(j, key);
	for (unsigned int i = 0; i < table->n; i++)
		write_field(j, &table->field[i], object);
	pp_json_end_object(j);
}

void pp_bench_write(struct pp_json *j, const struct pp_bench *b)
{
	for (unsigned int i = 0; i < pp_result_table.n; i++)
		write_field(j, &pp_result_table.field[i], b);
}

static void write_record(struct pp_json *j, const struct pp_bench_pair *p, unsigned int rung,
			 const struct pp_bench_evidence *e)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "pair", p->name);
	pp_json_str(j, "rung", pp_rung_name((enum pp_rung)rung));
	for (unsigned int i = 0; i < pp_result_evidence.n; i++)
		write_field(j, &pp_result_evidence.field[i], e);
	pp_json_end_object(j);
}

unsigned int pp_bench_write_evidence(struct pp_json *j, const struct pp_bench *b, unsigned int node)
{
	unsigned int n = 0;

	pp_json_object(j, NULL);
	pp_json_str(j, "schema", "peerpath.evidence/1");
	pp_json_str(j, "node", b->nodes[node].id);
	pp_json_array(j, "evidence");
	for (unsigned int i = 0; i < b->n_pairs; i++) {
		const struct pp_bench_pair *p = &b->pairs[i];

		for (unsigned int r = 0; r < PP_RUNGS; r++)
			for (unsigned int k = 0; k < p->rung[r].n_evidence; k++) {
				if (p->end[p->rung[r].evidence[k].end].node != node)
					continue;
				write_record(j, p, r, &p->rung[r].evidence[k]);
				n++;
			}
	}
	pp_json_end_array(j);
	pp_json_end_object(j);
	return n;
}
