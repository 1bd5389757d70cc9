/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a page shows is read from the bundle again: its recording is replayed, and what
 * gates 2 to 4 were judged by is judged. A part that cannot be read is said, and hides no other.
 */
#include "cli/bundle_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/page_bundle.h"
#include "cli/bundle_job.h"
#include "cli/compare_input.h"
#include "cli/output.h"
#include "judge/known.h"
#include "judge/transfer.h"
#include "base/banned.h"

static const size_t PAGE_MOST = (size_t)128 << 20;
enum { WHY = sizeof(((struct pp_error *)0)->text) };

/* One recording while it is looked at. */
struct machine {
	struct pp_bundle *bundle; /* owned; NULL: the page's own */
	struct pp_source *src;
	struct pp_node *node;
	char id[128], why[WHY];
};

struct making {
	struct pp_session *s;
	struct pp_bundle *bundle;
	struct pp_page_sight sight;
	struct machine machine[PP_PAGE_MACHINES];
	struct pp_rules *rules;
	struct pp_findings findings;
	struct pp_known_set *known;
	struct pp_bench *bench;
	struct pp_transfer transfer;
	struct pp_gate_library *library;
	struct pp_trials trial, before;
	struct pp_comparison comparison;
	json_t *result, *job, *records[PP_PAGE_EVIDENCE];
	bool judged, compared;
};

static json_t *load(const struct making *m, const char *path)
{
	const struct pp_bundle_file *f = pp_bundle_file(m->bundle, path);

	return f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

/* One line, and the page is made without that part. */
static void skip_part(const struct making *m, const char *what, const char *why)
{
	(void)pp_complain(m->s->args, 0, "%s is not in the page: %s", what, why);
}

static void look_at(struct machine *k, struct pp_record *record, struct pp_page_machine *ret)
{
	struct pp_error err = {0};

	if (pp_source_replay_record(record, &k->src, &err) ||
	    pp_node_collect(k->src, &k->node, &err))
		(void)snprintf(k->why, sizeof(k->why), "%s", err.text);
	*ret = (struct pp_page_machine){k->id, k->node, *k->why ? k->why : NULL};
}

/* "nodes/ID/capture.tar.zst" */
static bool is_capture(const char *path, char *id, size_t size)
{
	static const char dir[] = "nodes/", name[] = "/capture.tar.zst";
	size_t n = strlen(path), from = sizeof(dir) - 1, tail = sizeof(name) - 1;

	if (n <= from + tail || strncmp(path, dir, from) != 0 ||
	    strcmp(path + n - tail, name) != 0 || n - from - tail >= size)
		return false;
	memcpy(id, path + from, n - from - tail);
	id[n - from - tail] = '\0';
	return !strchr(id, '/');
}

/* What gate 2 has kept of the others; this machine was recorded once more, and is one. */
static void add_machine(struct making *m, const char *path, const char *id)
{
	struct pp_page_sight *s = &m->sight;
	const struct pp_bundle_file *f = pp_bundle_file(m->bundle, path);
	struct machine *k = &m->machine[s->n_machines];
	struct pp_error err = {0};

	if (!f)
		return;
	if (s->n_machines == PP_PAGE_MACHINES) {
		s->more_machines++;
		return;
	}
	if (pp_bundle_open_bytes(path, f->data, f->len, &k->bundle, &err)) {
		skip_part(m, path, err.text);
		return;
	}
	if (!strcmp(pp_bundle_manifest(k->bundle)->host, s->manifest->host)) {
		k->bundle = pp_bundle_free(k->bundle);
		return;
	}
	(void)snprintf(k->id, sizeof(k->id), "%s", id);
	look_at(k, pp_bundle_take_record(k->bundle), &s->machine[s->n_machines]);
	s->n_machines++;
}

static void gather_machines(struct making *m)
{
	struct pp_record *record = pp_bundle_take_record(m->bundle);
	struct pp_page_sight *s = &m->sight;
	char id[128];

	s->raw = pp_record_entries(record, &s->n_raw);
	look_at(&m->machine[0], record, &s->machine[0]);
	s->n_machines = 1;
	for (size_t i = 0; i < s->manifest->n; i++)
		if (is_capture(s->manifest->items[i].path, id, sizeof(id)))
			add_machine(m, s->manifest->items[i].path, id);
}

static void gather_records(struct making *m)
{
	struct pp_page_sight *s = &m->sight;
	static const char tail[] = "/evidence.json";

	for (size_t i = 0; i < s->manifest->n && s->n_records < PP_PAGE_EVIDENCE; i++) {
		const char *path = s->manifest->items[i].path;
		size_t n = strlen(path);
		json_t *document;

		if (strncmp(path, "nodes/", 6) != 0 || n < sizeof(tail) ||
		    strcmp(path + n - (sizeof(tail) - 1), tail) != 0)
			continue;
		document = load(m, path);
		if (!document)
			continue;
		m->records[s->n_records] = document;
		s->records[s->n_records++] = (struct pp_page_records){
			json_string_value(json_object_get(document, "node"))
				? json_string_value(json_object_get(document, "node"))
				: path,
			document};
	}
}

static void judge_machine(struct making *m)
{
	const struct pp_node *node = m->machine[0].node;
	struct pp_error err = {0};

	if (!node)
		return;
	if (pp_rules_load(NULL, &m->rules, &err) ||
	    pp_findings_judge(&node->facts, m->rules, /* policy= */ NULL, &m->findings)) {
		skip_part(m, "what rules find", *err.text ? err.text : "no memory");
		return;
	}
	m->judged = true;
	m->sight.findings = &m->findings;
}

static void gather_memory(struct making *m)
{
	json_t *document = load(m, "bench.json");
	const struct pp_node *node = m->machine[0].node;
	struct pp_error err = {0};
	int r = document ? pp_bench_read(document, &m->bench, &err) : -ENOENT;

	json_decref(document);
	if (r == -ENOENT && !*err.text)
		return;
	r = r ? r : pp_known_load(NULL, &m->known, &err);
	r = r ? r
	      : pp_transfer_judge(m->bench, &pp_margins_default, m->known,
				  node ? &node->facts : NULL, &m->transfer);
	if (r) {
		skip_part(m, "bench.json", *err.text ? err.text : strerrordesc_np(-r));
		m->bench = pp_bench_free(m->bench);
		return;
	}
	m->sight.bench = m->bench;
	m->sight.transfer = &m->transfer;
	m->sight.margins = &pp_margins_default;
}

static void gather_library(struct making *m)
{
	const struct pp_bundle_file *f = pp_bundle_file(m->bundle, "nccl.json");
	struct pp_error err = {0};

	if (f && pp_bundle_job_read(f->data, f->len, &m->library, &err)) {
		skip_part(m, "nccl.json", err.text);
		return;
	}
	if (!f)
		return;
	m->job = load(m, "nccl.json");
	m->sight.library = m->library;
	m->sight.library_simulated = pp_bundle_job_simulated(m->library);
	m->sight.job = m->job;
}

static void gather_application(struct making *m)
{
	const struct pp_bundle_file *f = pp_bundle_file(m->bundle, "canary.json");
	struct pp_page_sight *s = &m->sight;
	struct pp_error err = {0};
	char name[48];

	if (!f)
		return;
	if (pp_trials_take(&m->trial, f->path, f->data, f->len, &err)) {
		skip_part(m, "canary.json", err.text);
		return;
	}
	s->trial = m->trial.trial[0];
	for (size_t i = 0; i < PP_COMPARISON_TRIALS; i++) {
		(void)snprintf(name, sizeof(name), "before/%zu.json", i);
		f = pp_bundle_file(m->bundle, name);
		if (!f || pp_trials_take(&m->before, name, f->data, f->len, &err))
			break;
	}
	s->before = m->before.trial;
	s->n_before = m->before.n;
	if (m->before.n &&
	    !pp_comparison_make(m->before.trial, m->before.n, m->trial.trial, 1, &m->comparison)) {
		m->compared = true;
		s->comparison = &m->comparison;
	}
}

static int write_page(const struct making *m)
{
	PP_AUTO_BUF struct pp_buf content = PP_BUF(PAGE_MOST);
	PP_AUTO_FREE char *page = NULL;
	const struct pp_args *args = m->s->args;
	const char *file = pp_args_get(args, "output");
	struct pp_error err = {0};
	int r = pp_page_bundle(&m->sight, &page);

	if (r)
		return pp_complain(args, PP_EXIT_INTERNAL, "%s",
				   r == -EFBIG ? "the page would be too large" : "out of memory");
	pp_buf_str(&content, page);
	r = content.failed ? content.failed
			   : pp_output_write(file, &content, pp_args_has(args, "force"), &err);
	return r ? pp_complain(args, pp_exit_of_writing(r), "%s",
			       *err.text ? err.text : strerrordesc_np(-r))
		 : PP_EXIT_PASS;
}

static void done(struct making *m)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(m->machine); i++) {
		pp_node_free(m->machine[i].node);
		pp_source_free(m->machine[i].src);
		pp_bundle_free(m->machine[i].bundle);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(m->records); i++)
		json_decref(m->records[i]);
	if (m->compared)
		pp_comparison_done(&m->comparison);
	pp_trials_done(&m->trial);
	pp_trials_done(&m->before);
	free(m->library);
	if (m->sight.transfer)
		pp_transfer_done(&m->transfer);
	pp_bench_free(m->bench);
	pp_known_free(m->known);
	if (m->judged)
		pp_findings_done(&m->findings);
	pp_rules_free(m->rules);
	json_decref(m->job);
	json_decref(m->result);
}

int pp_bundle_page(struct pp_session *s, const char *path, struct pp_bundle *b)
{
	struct making *m = calloc(1, sizeof(*m));
	int code;

	if (!m)
		return pp_complain(s->args, PP_EXIT_INTERNAL, "out of memory");
	m->s = s;
	m->bundle = b;
	m->sight.manifest = pp_bundle_manifest(b);
	m->result = load(m, "result.json");
	m->sight.result = m->result;
	gather_machines(m);
	judge_machine(m);
	gather_memory(m);
	gather_library(m);
	gather_application(m);
	gather_records(m);
	code = write_page(m);
	if (!code) {
		pp_out_str(s->out, "path", NULL, path);
		pp_out_str(s->out, "page", NULL, pp_args_get(s->args, "output"));
	}
	done(m);
	free(m);
	return code;
}
