/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gates 0 and 1 stand on: what rules found, and each fact beside the text that it was read
 * from. Bounded: a machine of any size makes a page that opens.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/page_bundle.h"
#include "bundle/sheet.h"
#include "base/banned.h"

enum {
	FINDINGS_SHOWN = 200,
	SOURCES_SHOWN = 1500,
	RAW_MOST = 8 << 10,	 /* of one file */
	RAW_ALL = 4 << 20,	 /* of all of them */
	ANSWER_MOST = 256 << 10, /* of one answer */
};

static void seen_facts(struct pp_buf *out, const struct pp_facts *facts, const struct pp_finding *f)
{
	static const char *const heads[] = {"Fact", "Of", "What was seen", "Read from", NULL};
	struct pp_seen seen[PP_RULE_FACTS];
	unsigned int n = pp_finding_facts(facts, f, seen);
	char text[512];

	pp_sheet_table(out, heads);
	for (unsigned int i = 0; i < n; i++) {
		const struct pp_fact *fact = seen[i].fact;

		pp_sheet_row(out);
		pp_sheet_text(out, "td", "%s", pp_fact_table[seen[i].id].key);
		pp_sheet_text(out, "td", "%s", seen[i].of ? seen[i].of->id : "");
		pp_sheet_text(out, "td", "%s",
			      fact ? pp_fact_text(fact, text, sizeof(text)) : "not observed");
		pp_sheet_text(out, "td", "%s", fact && fact->source ? fact->source : "");
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
}

static void finding(struct pp_buf *out, const struct pp_facts *facts, const struct pp_finding *f)
{
	bool open = f->state == PP_OPEN;
	const char *word = f->counts ? pp_verdict_name(f->verdict) : "advice";

	/* What a missing fact leaves open has not been found. */
	pp_sheet_detail(out, "%s%s: %s (%s)%s", open ? "not known whether" : word,
			open && !f->counts ? " (advice)" : "", f->what, f->of->id,
			f->blocked ? "; its fix is forbidden here" : "");
	if (f->rule->cause)
		pp_sheet_text(out, "p", "%s", f->rule->cause);
	if (f->rule->fix)
		pp_sheet_text(out, "p", "Fix: %s", f->rule->fix);
	seen_facts(out, facts, f);
	pp_sheet_detail_end(out);
}

void pp_page_findings(struct pp_buf *out, const struct pp_page_sight *s)
{
	const struct pp_findings *all = s->findings;
	size_t shown = 0;

	if (!all)
		return;
	pp_sheet_text(out, "h3", "What is wrong, or not known");
	pp_sheet_text(out, "p class=\"quiet\"",
		      "By the %zu rules of the program that made this page, on the facts of the "
		      "bundle.",
		      all->rules);
	for (; shown < all->n && shown < FINDINGS_SHOWN; shown++)
		finding(out, &s->machine[0].node->facts, &all->list[shown]);
	if (!all->n)
		pp_sheet_text(out, "p", "No rule found anything.");
	if (shown < all->n)
		pp_sheet_text(out, "p", "%zu more are not shown.", all->n - shown);
}

/* A fact, of whom, for sorting by what it was read from. */
struct read_fact {
	const struct pp_fact *fact;
	const struct pp_object *of;
	size_t order;
};

static int by_source(const void *a, const void *b)
{
	const struct read_fact *x = a, *y = b;
	const char *p = x->fact->source ? x->fact->source : "";
	const char *q = y->fact->source ? y->fact->source : "";
	int r = strcmp(p, q);

	return r ? r : (x->order > y->order) - (x->order < y->order);
}

static struct read_fact *gather(const struct pp_facts *facts, size_t *ret_n)
{
	const struct pp_object *o;
	struct read_fact *all;
	size_t n = 0;

	pp_objects_foreach (facts, o)
		n += o->n;
	all = calloc(n + 1, sizeof(*all));
	n = 0;
	if (all)
		pp_objects_foreach (facts, o)
			for (unsigned int i = 0; i < o->n; i++) {
				all[n] = (struct read_fact){&o->facts[i], o, n};
				n++;
			}
	if (all)
		qsort(all, n, sizeof(*all), by_source);
	*ret_n = n;
	return all;
}

static const struct pp_entry *entry_of(const struct pp_page_sight *s, const char *path)
{
	for (size_t i = 0; i < s->n_raw; i++)
		if (s->raw[i].kind == PP_ENTRY_FILE && !strcmp(s->raw[i].path, path))
			return &s->raw[i];
	return NULL;
}

/* Of some facts the source is "/path: what of it" or "/a, /b". */
static const struct pp_entry *text_behind(const struct pp_page_sight *s, const char *source)
{
	const struct pp_entry *e = entry_of(s, source);
	char path[PP_PATH_MAX];
	size_t n = strcspn(source, " :,");

	if (e || *source != '/' || n >= sizeof(path))
		return e;
	memcpy(path, source, n);
	path[n] = '\0';
	return entry_of(s, path);
}

static void rows(struct pp_buf *out, const struct read_fact *f, size_t n)
{
	static const char *const heads[] = {"Fact", "Of", "Value", "Witness", NULL};
	char text[1024];

	pp_sheet_table(out, heads);
	for (size_t i = 0; i < n; i++) {
		const struct pp_fact_info *info = &pp_fact_table[f[i].fact->id];

		pp_sheet_row(out);
		pp_sheet_text(out, "td", "%s", info->key);
		pp_sheet_text(out, "td", "%s%s", f[i].of->id,
			      pp_object_simulated(f[i].of) ? " (simulated)" : "");
		pp_sheet_text(out, "td", "%s", pp_fact_text(f[i].fact, text, sizeof(text)));
		pp_sheet_text(out, "td", "%s", pp_witness_name(info->witness));
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
}

static void source(struct pp_buf *out, const struct pp_page_sight *s, const struct read_fact *f,
		   size_t n, size_t *room)
{
	const char *name = f->fact->source ? f->fact->source : "no source was kept";
	const struct pp_entry *e = text_behind(s, name);
	size_t most = *room < RAW_MOST ? *room : RAW_MOST;

	pp_sheet_detail(out, "%s: %zu fact%s", name, n, n == 1 ? "" : "s");
	rows(out, f, n);
	if (e && most)
		pp_sheet_raw(out, e->content, e->len, most);
	else if (e)
		pp_sheet_text(out, "p", "Its text, %zu bytes, is in the bundle.", e->len);
	if (e)
		*room -= e->len < most ? e->len : most;
	pp_sheet_detail_end(out);
}

static void answers(struct pp_buf *out, const struct pp_page_sight *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_raw; i++)
		n += s->raw[i].kind == PP_ENTRY_ANSWER;
	if (!n)
		return;
	pp_sheet_detail(out, "What drivers and libraries answered: %zu answers", n);
	for (size_t i = 0; i < s->n_raw; i++) {
		const struct pp_entry *e = &s->raw[i];

		if (e->kind != PP_ENTRY_ANSWER)
			continue;
		pp_sheet_detail(out, "%s: %zu bytes", e->path, e->len);
		pp_sheet_raw(out, e->content, e->len, ANSWER_MOST);
		pp_sheet_detail_end(out);
	}
	pp_sheet_detail_end(out);
}

void pp_page_facts(struct pp_buf *out, const struct pp_page_sight *s)
{
	const struct pp_node *node = s->n_machines ? s->machine[0].node : NULL;
	size_t n = 0, room = RAW_ALL, shown = 0, same, i;
	struct read_fact *PP_AUTO_FREE all = node ? gather(&node->facts, &n) : NULL;

	if (!all)
		return;
	pp_sheet_detail(out, "All %zu facts, by what each was read from", n);
	for (i = 0; i < n && shown < SOURCES_SHOWN; i += same, shown++) {
		const char *name = all[i].fact->source;

		for (same = 1; i + same < n; same++) {
			const char *other = all[i + same].fact->source;

			if (!name != !other || (name && strcmp(name, other) != 0))
				break;
		}
		source(out, s, &all[i], same, &room);
	}
	if (i < n)
		pp_sheet_text(out, "p", "%zu more facts are in the bundle.", n - i);
	pp_sheet_detail_end(out);
	answers(out, s);
}
