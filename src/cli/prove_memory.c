/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_text.h"
#include "cli/input.h"
#include "cli/repeat_text.h"
#include "judge/known.h"
#include "base/banned.h"

static const char ARCHIVE[] = ".tar.zst";

enum { ARENA_MOST = 64 << 20, CAPTURE_MOST = 32 << 20 };

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
	file = pp_bundle_file(bundle, "bench.json");
	if (file)
		document = json_loadb(file->data, file->len, 0, &where);
	if (!document)
		r = pp_complain(args, PP_EXIT_INPUT,
				"--after-reboot: %s holds no run of gate 2 (bench.json)", path);
	else if (pp_bench_read(document, &m->before, &err))
		r = pp_complain(args, PP_EXIT_INPUT, "--after-reboot: %s: %s", path, err.text);
	json_decref(document);
	pp_bundle_free(bundle);
	return r;
}

int pp_prove_memory_open(const struct pp_args *args, struct pp_prove_memory *m)
{
	*m = (struct pp_prove_memory){.arena = PP_ARENA(ARENA_MOST), .n_files = 1};
	return pp_args_has(args, "after-reboot") ? load_before(args, m) : 0;
}

static void add_file(struct pp_prove_memory *m, const char *path, const char *data, size_t len)
{
	if (path && data && m->n_files < PP_PROVE_FILES)
		m->file[m->n_files++] = (struct pp_bundle_file){path, data, len};
}

/* An archive that the child left, of node @name: as nodes/<id>/capture.tar.zst. */
static void add_capture(struct pp_prove_memory *m, const char *dir, const char *name)
{
	PP_AUTO_BUF struct pp_buf content = PP_BUF(CAPTURE_MOST);
	size_t stem = strlen(name) - strlen(ARCHIVE);
	struct pp_error err = {0};
	char *data;

	if (pp_input_read(pp_arena_printf(&m->arena, "%s/%s", dir, name), &content, &err))
		return;
	data = pp_arena_alloc(&m->arena, content.len + 1);
	if (!data)
		return;
	memcpy(data, pp_buf_text(&content), content.len);
	add_file(m, pp_arena_printf(&m->arena, "nodes/%.*s/capture%s", (int)stem, name, ARCHIVE),
		 data, content.len);
}

static int is_archive(const struct dirent *e)
{
	const char *dot = strstr(e->d_name, ARCHIVE);

	return dot && dot != e->d_name && !dot[strlen(ARCHIVE)];
}

static void take_files(struct pp_prove_memory *m)
{
	struct dirent **list = NULL;
	int n = m->child.kept.path[0] ? scandir(m->child.kept.path, &list, is_archive, alphasort)
				      : 0;

	add_file(m, "bench.json", m->child.document,
		 m->child.document ? strlen(m->child.document) : 0);
	for (int i = 0; i < n; i++) {
		add_capture(m, m->child.kept.path, list[i]->d_name);
		free(list[i]);
	}
	free(list);
}

static int judge(struct pp_session *s, const struct pp_margins *margins, struct pp_prove_memory *m)
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
	take_files(m);
	return judge(s, margins, m);
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
	pp_arena_done(&m->arena);
}
