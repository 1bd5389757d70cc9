/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_text.h"
#include "cli/prove_nodes.h"
#include "cli/repeat_text.h"
#include "judge/known.h"
#include "base/banned.h"

/* Captures: what an archive may hold, with room for the node's own files. */
enum { ARENA_MOST = 64 << 20, CAPTURES_MOST = 192 << 20 };

static const char BENCH[] = "bench.json", BEFORE[] = "before/bench.json";

static void add_file(struct pp_prove_memory *m, const char *path, const char *data, size_t len)
{
	m->file[m->n_files++] = (struct pp_bundle_file){path, data, len};
}

/* Into our bundle, too: without it a replay could not compare. */
static int load_before(const struct pp_args *args, struct pp_prove_memory *m)
{
	const char *path = pp_args_get(args, "after-reboot");
	const struct pp_bundle_file *file;
	struct pp_bundle *bundle = NULL;
	struct pp_error err = {0};
	json_t *document = NULL;
	json_error_t where;
	int r = pp_bundle_open(path, &bundle, &err);

	if (r)
		return pp_complain(args, PP_EXIT_INPUT, "--after-reboot: %s", err.text);
	file = pp_bundle_file(bundle, BENCH);
	if (file)
		document = json_loadb(file->data, file->len, 0, &where);
	if (!document)
		r = pp_complain(args, PP_EXIT_INPUT,
				"--after-reboot: %s holds no run of gate 2 (bench.json)", path);
	else if (pp_bench_read(document, &m->before, &err))
		r = pp_complain(args, PP_EXIT_INPUT, "--after-reboot: %s: %s", path, err.text);
	else
		add_file(m, BEFORE, pp_arena_strn(&m->captures, file->data, file->len), file->len);
	if (m->captures.failed)
		r = pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	json_decref(document);
	pp_bundle_free(bundle);
	return r;
}

/* @file of a bundle. 0, or an exit code after one line. */
static int take_bench(const struct pp_args *args, const struct pp_bundle *b, const char *file,
		      struct pp_prove_memory *m, struct pp_bench **ret)
{
	const struct pp_bundle_file *f = pp_bundle_file(b, file);
	json_t *document = f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct pp_error err = {0};
	int r = f && !document ? pp_error_set(&err, -EBADMSG, "no JSON") : 0;

	if (document)
		r = pp_bench_read(document, ret, &err);
	json_decref(document);
	if (r)
		return pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
				   "%s: %s: %s", pp_args_get(args, "replay"), file, err.text);
	if (f)
		add_file(m, f->path, f->data, f->len);
	return 0;
}

int pp_prove_memory_take(const struct pp_args *args, const struct pp_bundle *replayed,
			 struct pp_prove_memory *m)
{
	int code = take_bench(args, replayed, BENCH, m, &m->child.bench);

	code = code ? code : take_bench(args, replayed, BEFORE, m, &m->before);
	if (!code)
		pp_prove_nodes_keep(replayed, m);
	return code || !m->arena.failed ? code
					: pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
}

int pp_prove_memory_judge(struct pp_session *s, const struct pp_margins *margins,
			  struct pp_prove_memory *m)
{
	struct pp_error err = {0};
	int r = pp_known_load(NULL, &m->known, &err);

	if (r)
		return pp_complain(s->args, PP_EXIT_INTERNAL, "%s", err.text);
	r = pp_transfer_judge(m->child.bench, margins, m->known, &s->node->facts, &m->transfer);
	if (!r && m->before)
		r = pp_repeat_compare(m->before, m->child.bench, margins, &m->repeat);
	return r ? pp_complain(s->args, PP_EXIT_INTERNAL, "cannot judge: %s", strerrordesc_np(-r))
		 : 0;
}

int pp_prove_memory_open(const struct pp_args *args, struct pp_prove_memory *m)
{
	*m = (struct pp_prove_memory){
		.arena = PP_ARENA(ARENA_MOST), .captures = PP_ARENA(CAPTURES_MOST), .n_files = 1};
	return pp_args_has(args, "after-reboot") ? load_before(args, m) : 0;
}

int pp_prove_memory_run(struct pp_session *s, const struct pp_margins *margins, bool keep,
			struct pp_prove_memory *m)
{
	int r = pp_bench_child_run(s->args, keep, &m->child);

	if (r)
		return r;
	if (m->child.status == PP_EXIT_INTERRUPTED)
		return PP_EXIT_INTERRUPTED;
	if (m->child.status == PP_EXIT_USAGE)
		return PP_EXIT_USAGE; /* the child has said why */
	if (!m->child.bench)
		return 0;
	add_file(m, BENCH, m->child.document, strlen(m->child.document));
	pp_prove_nodes_take(m);
	return pp_prove_memory_judge(s, margins, m);
}

static void memory_json(struct pp_out *o, const struct pp_margins *margins,
			const struct pp_prove_memory *m)
{
	pp_out_open(o, "memory");
	pp_bench_write(pp_out_json(o), m->child.bench);
	pp_transfer_write(pp_out_json(o), "transfer", &m->transfer, margins);
	pp_out_close(o);
}

void pp_prove_memory_emit(struct pp_out *o, const struct pp_margins *margins,
			  const struct pp_prove_memory *m)
{
	const struct pp_bench *b = m->child.bench;

	pp_out_heading(o, b && b->simulated ? "Gate 2, simulated" : "Gate 2");
	if (!b && pp_out_is_json(o))
		pp_out_str(o, "not_measured", NULL, m->child.why);
	else if (!b)
		pp_out_para(o, 0, "not measured: %s", m->child.why);
	else if (pp_out_is_json(o))
		memory_json(o, margins, m);
	else
		pp_bench_text(o, b, &m->transfer, margins);
	if (b && m->before)
		pp_repeat_text(o, &m->repeat, m->before);
}

void pp_prove_memory_done(struct pp_prove_memory *m)
{
	pp_repeat_done(&m->repeat);
	pp_transfer_done(&m->transfer);
	pp_known_free(m->known);
	pp_bench_free(m->before);
	pp_bench_child_done(&m->child);
	pp_arena_done(&m->captures);
	pp_arena_done(&m->arena);
}
