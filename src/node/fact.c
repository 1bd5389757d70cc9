/* SPDX-License-Identifier: Apache-2.0 */
#include "node/fact.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/banned.h"

const struct pp_fact_info pp_fact_table[PP_FACTS] = {
#define F(id, key, kind, type, about, witness, doc, how) \
	[PP_F_##id] = {key, kind, type, about, witness, doc, how},
#include "node/facts.def"
#undef F
};

static const char *const kinds[PP_KINDS] = {
	[PP_NODE] = "node", [PP_GPU] = "gpu",	[PP_HCA] = "hca",
	[PP_PORT] = "port", [PP_LINK] = "link", [PP_PAIR] = "pair",
};

const char *pp_kind_name(enum pp_kind kind)
{
	return kinds[kind];
}

int pp_kind_parse(const char *text, enum pp_kind *ret)
{
	for (size_t i = 0; i < PP_KINDS; i++) {
		if (strcmp(text, kinds[i]) != 0)
			continue;
		*ret = (enum pp_kind)i;
		return 0;
	}
	return -EINVAL;
}

struct pp_object *pp_object_add(struct pp_facts *f, enum pp_kind kind, const char *id)
{
	struct pp_object *o = pp_arena_alloc(f->arena, sizeof(*o));

	if (!o)
		return NULL;
	o->kind = kind;
	o->id = pp_arena_str(f->arena, id);
	o->pci = -1;
	if (f->last)
		f->last->next = o;
	else
		f->first = o;
	f->last = o;
	f->count[kind]++;
	return o;
}

struct pp_object *pp_object_find(const struct pp_facts *f, enum pp_kind kind, const char *id)
{
	struct pp_object *o;

	pp_objects_foreach (f, o)
		if (o->kind == kind && !strcmp(o->id, id))
			return o;
	return NULL;
}

struct pp_object *pp_object_next(const struct pp_facts *f, enum pp_kind kind,
				 const struct pp_object *after)
{
	struct pp_object *o = after ? after->next : f->first;

	while (o && o->kind != kind)
		o = o->next;
	return o;
}

/* The fact's place in its object, made when it is new; NULL when the arena is exhausted. */
static struct pp_fact *place(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id,
			     const char *source)
{
	struct pp_fact *fact, *grown;
	unsigned int cap, i = 0;

	if (!o)
		return NULL;
	while (i < o->n && o->facts[i].id != id)
		i++;
	if (i == o->cap) {
		cap = o->cap ? o->cap * 2 : 16;
		grown = pp_arena_array(f->arena, cap, sizeof(*grown));
		if (!grown)
			return NULL;
		if (o->n)
			memcpy(grown, o->facts, o->n * sizeof(*grown));
		o->facts = grown;
		o->cap = cap;
	}
	if (i == o->n)
		o->n++;
	fact = &o->facts[i];
	*fact = (struct pp_fact){.id = id,
				 .source = source ? pp_arena_str(f->arena, source) : NULL};
	return fact;
}

void pp_fact_str(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id, const char *value,
		 const char *source)
{
	struct pp_fact *fact = place(f, o, id, source);

	if (!fact)
		return;
	fact->known = true;
	fact->str = pp_arena_str(f->arena, value);
}

void pp_fact_int(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id, int64_t value,
		 const char *source)
{
	struct pp_fact *fact = place(f, o, id, source);

	if (!fact)
		return;
	fact->known = true;
	fact->i64 = value;
}

void pp_fact_bool(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id, bool value,
		  const char *source)
{
	pp_fact_int(f, o, id, value, source);
}

void pp_fact_list(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id,
		  const char *const *values, size_t n, const char *source)
{
	struct pp_fact *fact = place(f, o, id, source);
	const char **list = pp_arena_array(f->arena, n + 1, sizeof(*list));

	if (!fact || !list)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = pp_arena_str(f->arena, values[i]);
	fact->known = true;
	fact->list = list;
}

void pp_fact_unknown(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id,
		     const char *source, const char *why_fmt, ...)
{
	struct pp_fact *fact = place(f, o, id, source);
	char why[512];
	va_list ap;

	if (!fact)
		return;
	va_start(ap, why_fmt);
	(void)vsnprintf(why, sizeof(why), why_fmt, ap);
	va_end(ap);
	fact->why = pp_arena_str(f->arena, why);
}

const struct pp_fact *pp_fact_get(const struct pp_object *o, enum pp_fact_id id)
{
	for (unsigned int i = 0; o && i < o->n; i++)
		if (o->facts[i].id == id)
			return &o->facts[i];
	return NULL;
}

const char *pp_fact_str_or(const struct pp_object *o, enum pp_fact_id id, const char *otherwise)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	return fact && fact->known ? fact->str : otherwise;
}

int64_t pp_fact_int_or(const struct pp_object *o, enum pp_fact_id id, int64_t otherwise)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	return fact && fact->known ? fact->i64 : otherwise;
}

bool pp_fact_is(const struct pp_object *o, enum pp_fact_id id)
{
	return pp_fact_int_or(o, id, 0) != 0;
}

int pp_fact_find(const char *key, enum pp_fact_id *ret)
{
	for (size_t i = 0; i < PP_FACTS; i++) {
		if (strcmp(key, pp_fact_table[i].key) != 0)
			continue;
		*ret = (enum pp_fact_id)i;
		return 0;
	}
	return -ENOENT;
}

static void list_text(const char *const *list, char *buf, size_t size)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF((size_t)1 << 20);

	for (size_t i = 0; list[i]; i++)
		pp_buf_printf(&text, "%s%s", i ? ", " : "", list[i]);
	(void)snprintf(buf, size, "%s", list[0] ? pp_buf_text(&text) : "none");
}

const char *pp_fact_text(const struct pp_fact *fact, char *buf, size_t size)
{
	if (!fact || !fact->known) {
		(void)snprintf(buf, size, "unknown: %s", fact ? fact->why : "not observed");
		return buf;
	}
	switch (pp_fact_table[fact->id].type) {
	case PP_STR:
	case PP_VERSION:
		(void)snprintf(buf, size, "%s", fact->str);
		break;
	case PP_INT:
		(void)snprintf(buf, size, "%" PRId64, fact->i64);
		break;
	case PP_BOOL:
		(void)snprintf(buf, size, "%s", fact->i64 ? "yes" : "no");
		break;
	case PP_LIST:
		list_text(fact->list, buf, size);
		break;
	}
	return buf;
}

static void write_value(struct pp_json *j, const struct pp_fact *fact)
{
	if (!fact->known) {
		pp_json_null(j, "value");
		pp_json_str(j, "unknown", fact->why);
		pp_json_str(j, "how", pp_fact_table[fact->id].how);
		return;
	}
	switch (pp_fact_table[fact->id].type) {
	case PP_STR:
	case PP_VERSION:
		pp_json_str(j, "value", fact->str);
		break;
	case PP_INT:
		pp_json_i64(j, "value", fact->i64);
		break;
	case PP_BOOL:
		pp_json_bool(j, "value", fact->i64);
		break;
	case PP_LIST:
		pp_json_array(j, "value");
		for (size_t i = 0; fact->list[i]; i++)
			pp_json_str(j, NULL, fact->list[i]);
		pp_json_end_array(j);
		break;
	}
}

bool pp_object_simulated(const struct pp_object *o)
{
	return o &&
	       (o->simulated || pp_object_simulated(o->parent) || pp_object_simulated(o->peer));
}

void pp_fact_write(struct pp_json *j, const struct pp_object *o, const struct pp_fact *fact,
		   pp_ns observed)
{
	char when[32];
	const struct pp_fact_info *info = &pp_fact_table[fact->id];

	pp_json_object(j, NULL);
	pp_json_str(j, "fact", info->key);
	pp_json_str(j, "of", o->id);
	write_value(j, fact);
	pp_json_str(j, "about", pp_about_name(info->about));
	pp_json_str(j, "witness", pp_witness_name(info->witness));
	pp_json_str(j, "scope", pp_scope_name(info->kind == PP_PAIR ? PP_OF_PAIR : PP_OF_NODE));
	if (fact->source)
		pp_json_str(j, "source", fact->source);
	pp_json_str(j, "observed", observed ? pp_clock_format(observed, when, sizeof(when)) : NULL);
	pp_json_bool(j, "simulated", pp_object_simulated(o));
	pp_json_end_object(j);
}
