/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run as JSON, by the table of its members.
 */
#include <string.h>

#include "nccl/run_fields.h"
#include "base/banned.h"

#define MEMBER(type, object, offset) (*(type const *)((const char *)(object) + (offset)))

static void write_object(struct pp_json *j, const char *key, const struct pp_run_table *table,
			 const void *object);

static uint64_t within(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : value;
}

static uint64_t whole(double bytes)
{
	return bytes >= 0x1p63 ? INT64_MAX : bytes > 0 ? (uint64_t)bytes : 0;
}

static void write_number(struct pp_json *j, const struct pp_run_field *f, uint64_t value, bool or)
{
	if (or &&!value)
		pp_json_null(j, f->key);
	else
		pp_json_u64(j, f->key, within(value));
}

static void write_elements(struct pp_json *j, const struct pp_run_field *f, const char *first,
			   uint32_t n)
{
	pp_json_array(j, f->key);
	for (uint32_t i = 0; i < n; i++)
		write_object(j, NULL, f->of, first + i * f->of->size);
	pp_json_end_array(j);
}

static void write_each(struct pp_json *j, const struct pp_run_field *f, const char *first)
{
	pp_json_object(j, f->key);
	for (unsigned int i = 0; i < f->words->n; i++)
		write_object(j, f->words->name(i), f->of, first + i * f->of->size);
	pp_json_end_object(j);
}

static void write_double(struct pp_json *j, const struct pp_run_field *f, double value)
{
	if (f->type == PP_RUN_BYTES)
		pp_json_u64(j, f->key, whole(value));
	else if (f->type == PP_RUN_DOUBLE_OR && !(value > 0))
		pp_json_null(j, f->key);
	else
		pp_json_double(j, f->key, value > 0 ? value : 0);
}

static void write_field(struct pp_json *j, const struct pp_run_field *f, const void *o)
{
	const char *at = (const char *)o + f->at;

	switch (f->type) {
	case PP_RUN_STR:
		pp_json_str(j, f->key, *at ? at : NULL);
		break;
	case PP_RUN_KNOWN:
		pp_json_bool(j, f->key, !*at);
		break;
	case PP_RUN_BOOL:
		pp_json_bool(j, f->key, MEMBER(bool, at, 0));
		break;
	case PP_RUN_U32:
	case PP_RUN_U32_OR:
		write_number(j, f, MEMBER(uint32_t, at, 0), f->type == PP_RUN_U32_OR);
		break;
	case PP_RUN_U64:
	case PP_RUN_U64_OR:
		write_number(j, f, MEMBER(uint64_t, at, 0), f->type == PP_RUN_U64_OR);
		break;
	case PP_RUN_I64:
		pp_json_i64(j, f->key, MEMBER(int64_t, at, 0) > 0 ? MEMBER(int64_t, at, 0) : 0);
		break;
	case PP_RUN_INT:
		pp_json_i64(j, f->key, MEMBER(int, at, 0) > 0 ? MEMBER(int, at, 0) : 0);
		break;
	case PP_RUN_DOUBLE:
	case PP_RUN_DOUBLE_OR:
	case PP_RUN_BYTES:
		write_double(j, f, MEMBER(double, at, 0));
		break;
	case PP_RUN_WORD:
		pp_json_str(j, f->key, f->words->name(MEMBER(unsigned int, at, 0)));
		break;
	case PP_RUN_OBJECT:
		write_object(j, f->key, f->of, at);
		break;
	case PP_RUN_EACH:
		write_each(j, f, at);
		break;
	case PP_RUN_LIST:
		write_elements(j, f, at, MEMBER(uint32_t, o, f->count));
		break;
	case PP_RUN_OWNED:
		write_elements(j, f, MEMBER(char *, at, 0), MEMBER(uint32_t, o, f->count));
		break;
	}
}

static void write_object(struct pp_json *j, const char *key, const struct pp_run_table *table,
			 const void *object)
{
	pp_json_object(j, key);
	for (unsigned int i = 0; i < table->n; i++) {
		const struct pp_run_field *f = &table->field[i];

		if (f->guard && !MEMBER(bool, object, f->guard - 1))
			pp_json_null(j, f->key);
		else
			write_field(j, f, object);
	}
	pp_json_end_object(j);
}

void pp_nccl_run_write(struct pp_json *j, const char *key, const struct pp_nccl_run *r)
{
	write_object(j, key, &pp_run_table, r);
}

void pp_nccl_runs_write(struct pp_json *j, const struct pp_nccl_runs *runs)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "schema", "peerpath.nccl_run/1");
	pp_json_array(j, "runs");
	for (unsigned int a = 0; a < PP_NCCL_ARMS; a++)
		if (runs->arm[a])
			pp_nccl_run_write(j, NULL, runs->arm[a]);
	pp_json_end_array(j);
	pp_json_end_object(j);
}
