/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence records of one node to what makes it comparable: parts that name it, the software
 * tuple, and its hardware counted ("8 x NVIDIA H200"), with rails by their position, so that
 * nothing in it is a bus number or a name.
 */
#include "store/result_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/brief.h"
#include "base/banned.h"

enum { RECORDS = 65536, KEPT = 4096 };

struct kept {
	const char *key, *of, *value;
};

struct facts {
	struct kept *list;	    /* as the document has them */
	const struct kept **by_key; /* then by object; the first of equal ones first */
	size_t n;
};

/* As pp_fact_text() writes it: facts.json has types, a brief has texts. */
static const char *value_of(struct pp_reading *in, const json_t *record)
{
	const json_t *v = json_object_get(record, "value"), *one;
	const char *text = "";
	size_t i;

	if (json_is_boolean(v))
		return json_is_true(v) ? "yes" : "no";
	if (json_is_integer(v))
		return pp_reading_printf(in, "%lld", (long long)json_integer_value(v));
	if (!json_is_array(v))
		return pp_reading_text(in, record, "value");
	json_array_foreach(v, i, one)
	{
		if (!json_is_string(one) || i > 16)
			break;
		text = pp_reading_printf(in, "%s%s%s", text, i ? ", " : "", json_string_value(one));
	}
	return text;
}

static void gather(struct pp_reading *in, const json_t *facts, struct facts *to)
{
	const json_t *record;
	const char *key, *of, *value;
	size_t i;

	json_array_foreach(facts, i, record)
	{
		key = json_string_value(json_object_get(record, "fact"));
		if (!key || !pp_brief_holds(key) ||
		    json_is_true(json_object_get(record, "simulated")))
			continue;
		of = pp_reading_text(in, record, "of");
		value = value_of(in, record);
		if (in->failed || !of || !value)
			continue;
		if (to->n == KEPT) {
			pp_reading_refuse(in, -EBADMSG, "facts", "are more than are read");
			return;
		}
		to->list[to->n++] = (struct kept){pp_reading_printf(in, "%s", key), of, value};
	}
}

static int by_key(const void *a, const void *b)
{
	const struct kept *x = *(const struct kept *const *)a, *y = *(const struct kept *const *)b;
	int r = strcmp(x->key, y->key);

	r = r ? r : strcmp(x->of, y->of);
	return r ? r : (x > y) - (x < y);
}

static void sort(struct facts *f)
{
	for (size_t i = 0; i < f->n; i++)
		f->by_key[i] = &f->list[i];
	qsort(f->by_key, f->n, sizeof(const struct kept *), by_key);
}

static const char *find(const struct facts *f, const char *key, const char *of)
{
	size_t low = 0, high = f->n, at;

	while (low < high) {
		int r;

		at = low + (high - low) / 2;
		r = strcmp(f->by_key[at]->key, key);
		r = r ? r : strcmp(f->by_key[at]->of, of);
		if (r < 0)
			low = at + 1;
		else
			high = at;
	}
	if (low == f->n || strcmp(f->by_key[low]->key, key) || strcmp(f->by_key[low]->of, of))
		return NULL;
	return f->by_key[low]->value;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "2 x A, 6 x B" of every object that has the first key; the others stand behind it. */
static void count(struct pp_reading *in, const struct facts *f, const char *as,
		  const char *const keys[4], struct pp_result_node *n)
{
	const char *text[PP_RESULT_PARTS], *all = "";
	size_t m = 0, same;

	for (size_t i = 0; i < f->n && m < PP_ARRAY_LEN(text); i++) {
		if (strcmp(f->list[i].key, keys[0]) != 0)
			continue;
		text[m] = f->list[i].value;
		for (size_t k = 1; k < 4 && keys[k]; k++) {
			const char *more = find(f, keys[k], f->list[i].of);

			text[m] = pp_reading_printf(in, "%s %s", text[m], more ? more : "unknown");
		}
		m++;
	}
	if (!m || in->failed)
		return;
	qsort(text, m, sizeof(*text), by_text);
	for (size_t i = 0; i < m; i += same) {
		for (same = 1; i + same < m && !strcmp(text[i], text[i + same]); same++)
			;
		all = pp_reading_printf(in, "%s%s%zu x %s", all, i ? ", " : "", same, text[i]);
	}
	pp_reading_add_fact(in, n, as, all);
}

static int by_object(const void *a, const void *b)
{
	const struct kept *x = *(const struct kept *const *)a, *y = *(const struct kept *const *)b;

	return strcmp(x->of, y->of);
}

/* The i-th gpu by address has rail i. */
static void rails(struct pp_reading *in, const struct facts *f, struct pp_result_node *n)
{
	const struct kept *rail[32];
	size_t m = 0;

	for (size_t i = 0; i < f->n && m < PP_ARRAY_LEN(rail); i++)
		if (!strcmp(f->list[i].key, "pair.rail") && !strcmp(f->list[i].value, "yes"))
			rail[m++] = &f->list[i];
	qsort(rail, m, sizeof(*rail), by_object);
	for (size_t i = 0; i < m; i++) {
		const char *distance = find(f, "pair.distance", rail[i]->of);
		const char *route = find(f, "pair.route", rail[i]->of);
		const char *redirect = find(f, "pair.acs_redirect", rail[i]->of);

		pp_reading_add_fact(
			in, n, pp_reading_printf(in, "rail %02zu", i),
			pp_reading_printf(in, "%s, %s%s", distance ? distance : "unknown",
					  route ? route : "unknown",
					  redirect && !strcmp(redirect, "yes") ? ", ACS redirects"
									       : ""));
	}
}

static void take(struct pp_reading *in, const struct facts *f, struct pp_result_node *n)
{
	static const struct {
		const char *as, *keys[4];
	} counted[] = {
		{"gpus", {"gpu.name", "gpu.vbios", NULL}},
		{"gpus' BAR1", {"gpu.bar1_total_bytes", NULL}},
		{"gpus' IOMMU", {"gpu.iommu_type", NULL}},
		{"hcas", {"hca.board_id", "hca.firmware", NULL}},
		{"hcas' IOMMU", {"hca.iommu_type", NULL}},
		{"ports", {"port.state", "port.rate_mbps", "port.link_layer", NULL}},
		{"links", {"link.width", "link.speed_mts", NULL}},
	};

	for (size_t i = 0; i < f->n && !in->failed; i++) {
		const struct kept *k = &f->list[i];

		if (!strcmp(k->key, "gpu.uuid"))
			pp_reading_add_part(in, n, "gpu", k->value);
		else if (!strcmp(k->key, "hca.node_guid"))
			pp_reading_add_part(in, n, "hca", k->value);
		else if (!strcmp(k->key, "digest.software"))
			n->software = k->value;
		else if (!strcmp(k->key, "digest.topology"))
			n->topology = k->value;
		else if (!strcmp(k->of, "node"))
			pp_reading_add_fact(in, n, k->key, k->value);
	}
	n->flavour = find(f, "nvidia.flavour", "node");
	for (size_t i = 0; i < PP_ARRAY_LEN(counted); i++)
		count(in, f, counted[i].as, counted[i].keys, n);
	rails(in, f, n);
}

void pp_result_facts(struct pp_reading *in, const json_t *facts, struct pp_result_node *n)
{
	struct facts own = {0};

	if (json_array_size(facts) > RECORDS) {
		pp_reading_refuse(in, -EBADMSG, "facts", "are more than are read");
		return;
	}
	own.list = calloc(KEPT, sizeof(*own.list));
	own.by_key = calloc(KEPT, sizeof(const struct kept *));
	if (own.list && own.by_key)
		gather(in, facts, &own);
	else
		pp_reading_refuse(in, -ENOMEM, "the result", "does not fit into memory");
	if (!in->failed) {
		sort(&own);
		take(in, &own, n);
	}
	n->whole = true;
	free(own.list);
	free(own.by_key);
}
