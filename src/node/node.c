/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

enum { VALUE_BYTES = 4096 };

/* A machine of 4000 PCI functions takes about 4 MiB; the limit keeps hostile trees bounded. */
static const size_t ARENA_LIMIT = (size_t)64 << 20;

/* Later ones read what earlier ones found. */
static pp_collector *const collectors[] = {
	pp_collect_kernel,   pp_collect_pci,   pp_collect_modules, pp_collect_rdma,
	pp_collect_hca,	     pp_collect_roce,  pp_collect_gpu,	   pp_collect_limits,
	pp_collect_software, pp_collect_paths, pp_collect_digests,
};

int pp_node_collect(struct pp_source *src, struct pp_node **ret, struct pp_error *err)
{
	struct pp_node *n = calloc(1, sizeof(*n));
	pp_ns start = pp_clock_monotonic();

	if (!n)
		return pp_error_set(err, -ENOMEM, "out of memory");
	n->src = src;
	n->arena = PP_ARENA(ARENA_LIMIT);
	n->facts.arena = &n->arena;
	n->started =
		pp_source_mode(src) == PP_SOURCE_REPLAY ? pp_source_time(src) : pp_clock_wall();
	n->facts.observed = n->started;
	n->self = pp_object_add(&n->facts, PP_NODE, "node");
	for (size_t i = 0; i < PP_ARRAY_LEN(collectors) && !n->arena.failed; i++)
		collectors[i](n);
	n->took = pp_clock_monotonic() - start;
	if (n->arena.failed) {
		pp_node_free(n);
		return pp_error_set(err, -EFBIG,
				    "facts of this machine need more than %zu MiB: refused",
				    ARENA_LIMIT >> 20);
	}
	*ret = n;
	return 0;
}

struct pp_node *pp_node_free(struct pp_node *n)
{
	if (!n)
		return NULL;
	pp_arena_done(&n->arena);
	free(n);
	return NULL;
}

/* Text to a fact of the table's type. */
static void set(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, const char *text,
		const char *path)
{
	int64_t value;
	bool yes;

	switch (pp_fact_table[id].type) {
	case PP_INT:
		if (!pp_parse_i64(text, INT64_MIN, INT64_MAX, &value))
			return pp_fact_int(&n->facts, o, id, value, path);
		break;
	case PP_BOOL:
		if (!pp_parse_bool(text, &yes))
			return pp_fact_bool(&n->facts, o, id, yes, path);
		break;
	case PP_VERSION:
	case PP_STR:
		if (*text)
			return pp_fact_str(&n->facts, o, id, text, path);
		break;
	case PP_LIST:
		return pp_fact_list(&n->facts, o, id, &text, *text ? 1 : 0, path);
	}
	pp_fact_unknown(&n->facts, o, id, path, "%s: cannot be read as its type: '%.40s'", path,
			text);
}

int pp_node_file(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, const char *path)
{
	char text[VALUE_BYTES];
	int r = pp_source_text(n->src, path, text, sizeof(text));

	if (r)
		pp_fact_unknown(&n->facts, o, id, path, "%s: %s", path, pp_source_why(r));
	else
		set(n, o, id, text, path);
	return r;
}

int pp_node_file_at(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, const char *dir,
		    const char *name)
{
	char path[PP_PATH_MAX];

	if (pp_path_join(dir, name, path)) {
		pp_fact_unknown(&n->facts, o, id, dir, "%s: path too long", dir);
		return -ENAMETOOLONG;
	}
	return pp_node_file(n, o, id, path);
}

const struct pp_object *pp_node_simulated(const struct pp_node *n)
{
	const struct pp_object *hca = NULL;

	while ((hca = pp_object_next(&n->facts, PP_HCA, hca)))
		if (hca->simulated)
			return hca;
	return NULL;
}

void pp_node_write_facts(struct pp_json *j, const char *key, const struct pp_node *n)
{
	const struct pp_object *o;

	pp_json_array(j, key);
	pp_objects_foreach (&n->facts, o)
		for (unsigned int i = 0; i < o->n; i++)
			pp_fact_write(j, o, &o->facts[i], n->started);
	pp_json_end_array(j);
}
