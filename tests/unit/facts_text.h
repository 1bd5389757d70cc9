/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts from text, for tests of what judges them. One fact a line, in INI sections:
 *
 *   kernel.release = 5.4.0                                  of the node
 *   0000:01:00.0 gpu.dmabuf_supported = no                  of an object by its id
 *   0000:02:00.0/1 port.state = ACTIVE                      a port; makes its hca
 *   0000:01:00.0/0000:02:00.0 pair.distance = SYS           a pair; makes its gpu and hca
 *   gpu.uuid = ? permission denied                          unknown, with the reason
 *
 * Lists are separated by ", "; "none" is the empty list.
 */
#ifndef PP_TESTS_FACTS_TEXT_H
#define PP_TESTS_FACTS_TEXT_H

#include "unit.h"

#include "base/ini.h"
#include "base/parse.h"
#include "node/fact.h"

struct machine {
	struct pp_arena arena;
	struct pp_facts facts;
};

static inline struct pp_object *machine_object(struct machine *m, enum pp_kind kind, const char *id)
{
	struct pp_object *o = pp_object_find(&m->facts, kind, id);
	char first[64];
	const char *cut;

	if (o)
		return o;
	cut = strchr(id, '/');
	(void)snprintf(first, sizeof(first), "%.*s", cut ? (int)(cut - id) : 0, id);
	o = pp_object_add(&m->facts, kind, id);
	assert_non_null(o);
	if (kind == PP_PORT)
		o->parent = machine_object(m, PP_HCA, first);
	if (kind == PP_PAIR) {
		assert_non_null(cut);
		o->parent = machine_object(m, PP_GPU, first);
		o->peer = machine_object(m, PP_HCA, cut + 1);
	}
	return o;
}

static inline void machine_list(struct machine *m, struct pp_object *o, enum pp_fact_id id,
				const char *value)
{
	char copy[1024], *at = copy, *comma;
	const char *items[64];
	size_t n = 0;

	(void)snprintf(copy, sizeof(copy), "%s", value);
	for (; *at && strcmp(value, "none") != 0; at = comma) {
		comma = at + strcspn(at, ",");
		if (*comma)
			*comma++ = '\0';
		items[n++] = pp_trim(at);
	}
	pp_fact_list(&m->facts, o, id, items, n, "test");
}

/* @where: "fact.key" of the node, or "id fact.key". */
static inline void machine_set(struct machine *m, const char *where, const char *value)
{
	const char *blank = strchr(where, ' '), *key = blank ? blank + 1 : where;
	char name[64] = "node";
	enum pp_fact_id id;
	struct pp_object *o;
	int64_t number;
	bool flag;

	if (pp_fact_find(key, &id))
		fail_msg("no fact '%s'", key);
	if (blank)
		(void)snprintf(name, sizeof(name), "%.*s", (int)(blank - where), where);
	o = machine_object(m, pp_fact_table[id].kind, name);
	if (*value == '?') {
		pp_fact_unknown(&m->facts, o, id, "test", "%s", value[1] ? value + 2 : "not seen");
		return;
	}
	switch (pp_fact_table[id].type) {
	case PP_STR:
	case PP_VERSION:
		pp_fact_str(&m->facts, o, id, value, "test");
		break;
	case PP_INT:
		assert_int_equal(pp_parse_i64(value, INT64_MIN, INT64_MAX, &number), 0);
		pp_fact_int(&m->facts, o, id, number, "test");
		break;
	case PP_BOOL:
		assert_int_equal(pp_parse_bool(value, &flag), 0);
		pp_fact_bool(&m->facts, o, id, flag, "test");
		break;
	case PP_LIST:
		machine_list(m, o, id, value);
		break;
	}
}

static inline void machine_init(struct machine *m)
{
	*m = (struct machine){.arena = PP_ARENA(4 << 20)};
	m->facts.arena = &m->arena;
	(void)machine_object(m, PP_NODE, "node");
}

static inline void machine_done(struct machine *m)
{
	pp_arena_done(&m->arena);
}

struct machine_section {
	struct machine *m;
	const char *name;
	unsigned int n; /* facts that were set */
};

static inline int machine_take(void *arg, const char *section, const char *key, const char *value,
			       unsigned int line, struct pp_error *err)
{
	struct machine_section *s = arg;

	(void)line;
	(void)err;
	if (!key || strcmp(section, s->name) != 0)
		return 0;
	machine_set(s->m, key, value);
	s->n++;
	return 0;
}

/* Sets the facts of one section of @text; returns their number. */
static inline unsigned int machine_read(struct machine *m, const char *text, const char *section)
{
	struct machine_section s = {m, section, 0};
	struct pp_error err;

	if (pp_ini_parse("facts", text, strlen(text), machine_take, &s, &err))
		fail_msg("%s", err.text);
	return s.n;
}

#endif
