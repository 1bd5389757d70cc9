/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_nodes.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "cli/input.h"
#include "base/banned.h"

/* Why it could not be had is a line. */
enum { CAPTURE_MOST = 32 << 20, WHY_MOST = 4096, EVIDENCE_MOST = 8 << 20 };

static const char ERRORS[] = "nodes.errors";

static void lose(struct pp_prove_memory *m, const char *node, const char *why)
{
	struct pp_prove_lost *l = &m->lost[m->n_lost];
	char text[512];

	(void)snprintf(text, sizeof(text), "%s", why);
	pp_sanitize(text, false);
	*l = (struct pp_prove_lost){.node = node, .why = pp_arena_str(&m->arena, text)};
	m->n_lost++;
}

/* What `bench` has left in place of the capture. */
static void lose_as_told(struct pp_prove_memory *m, const char *node)
{
	PP_AUTO_BUF struct pp_buf why = PP_BUF(WHY_MOST);
	struct pp_error err = {0};
	const char *file = pp_arena_printf(&m->arena, "%s/%s.why", m->child.kept.path, node);

	lose(m, node,
	     !pp_input_read(file, &why, &err) && why.len ? pp_buf_text(&why) : "it gave none");
}

/* A bundle of its own, whole: one that does not verify proves nothing, and would not replay. */
static int read_capture(struct pp_arena *arena, const char *file, struct pp_bundle_file *ret,
			struct pp_error *err)
{
	PP_AUTO_BUF struct pp_buf content = PP_BUF(CAPTURE_MOST);
	struct pp_bundle *bundle = NULL;
	char *data;
	int r = pp_input_read(file, &content, err);

	if (!r)
		r = pp_bundle_open(file, &bundle, err);
	pp_bundle_free(bundle);
	if (r)
		return r;
	data = pp_arena_alloc(arena, content.len + 1);
	if (!data)
		return pp_error_set(err, -ENOMEM, "%zu bytes: no room beside the others",
				    content.len);
	memcpy(data, pp_buf_text(&content), content.len);
	*ret = (struct pp_bundle_file){.data = data, .len = content.len};
	return 0;
}

static void take_one(struct pp_prove_memory *m, const char *node)
{
	struct pp_bundle_file f;
	struct pp_error err = {0};
	char file[PATH_MAX];

	/* The document is a stranger's. */
	if (strchr(node, '/') || node[0] == '.' ||
	    (size_t)snprintf(file, sizeof(file), "%s/%s.tar.zst", m->child.kept.path, node) >=
		    sizeof(file)) {
		lose(m, node, "its name is none of a file");
	} else if (access(file, F_OK) && errno == ENOENT) {
		lose_as_told(m, node);
	} else if (read_capture(&m->captures, file, &f, &err)) {
		lose(m, node, err.text);
	} else {
		f.path = pp_arena_printf(&m->arena, "nodes/%s/capture.tar.zst", node);
		m->file[m->n_files++] = f;
	}
}

/* What was seen of its memory while gate 2 moved it; of a run that nobody looked at nothing. */
static void take_evidence(struct pp_prove_memory *m, unsigned int i)
{
	const struct pp_bench *b = m->child.bench;
	const char *node = b->nodes[i].id, *text;
	PP_AUTO_BUF struct pp_buf out = PP_BUF(EVIDENCE_MOST);
	struct pp_json j = PP_JSON(&out, true);

	/* what is no name of a file was told of the capture */
	if (!node || strchr(node, '/') || node[0] == '.' || !pp_bench_write_evidence(&j, b, i))
		return;
	pp_buf_char(&out, '\n');
	text = pp_arena_strn(&m->arena, pp_buf_text(&out), out.len);
	if (out.failed || m->arena.failed) {
		lose(m, node, "no room for the evidence of its memory");
		return;
	}
	m->file[m->n_files++] = (struct pp_bundle_file){
		pp_arena_printf(&m->arena, "nodes/%s/evidence.json", node), text, out.len};
}

/* "NODE\tWHY" lines, as raw.errors has them. */
static void add_errors(struct pp_prove_memory *m)
{
	const char *text = "";

	for (size_t i = 0; i < m->n_lost; i++)
		text = pp_arena_printf(&m->arena, "%s%s\t%s\n", text, m->lost[i].node,
				       m->lost[i].why);
	if (m->n_lost)
		m->file[m->n_files++] = (struct pp_bundle_file){ERRORS, text, strlen(text)};
}

void pp_prove_nodes_take(struct pp_prove_memory *m)
{
	const struct pp_bench *b = m->child.bench;

	if (!m->child.kept.path[0])
		return;
	for (unsigned int i = 0; i < b->n_nodes && i < PP_PROVE_NODES; i++) {
		take_one(m, b->nodes[i].id);
		take_evidence(m, i);
	}
	add_errors(m);
}

/* What add_errors() wrote. A stranger's may be anything: what is no such line is told of nobody. */
static void read_errors(const struct pp_bundle_file *f, struct pp_prove_memory *m)
{
	const char *line = f ? f->data : NULL, *end = f ? f->data + f->len : NULL, *tab, *next;
	char node[256];

	for (; line < end && m->n_lost < PP_ARRAY_LEN(m->lost); line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		tab = memchr(line, '\t', (size_t)(next - line));
		if (!tab)
			continue;
		(void)snprintf(node, sizeof(node), "%.*s",
			       (int)(tab - line < 255 ? tab - line : 255), line);
		pp_sanitize(node, false);
		lose(m, pp_arena_str(&m->arena, node),
		     pp_arena_strn(&m->arena, tab + 1, (size_t)(next - tab - 1)));
	}
}

void pp_prove_nodes_keep(const struct pp_bundle *b, struct pp_prove_memory *m)
{
	static const char *const of_a_node[] = {"nodes/*/capture.tar.zst", "nodes/*/evidence.json"};
	const struct pp_manifest *all = pp_bundle_manifest(b);
	const struct pp_bundle_file *f;
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		for (size_t k = 0; k < PP_ARRAY_LEN(of_a_node); k++) {
			if (fnmatch(of_a_node[k], all->items[i].path, FNM_PATHNAME))
				continue;
			f = pp_bundle_file(b, all->items[i].path);
			if (f && n++ < 2 * PP_PROVE_NODES)
				m->file[m->n_files++] = *f;
		}
	f = pp_bundle_file(b, ERRORS);
	if (f)
		m->file[m->n_files++] = *f;
	read_errors(f, m);
}

void pp_prove_nodes_emit(struct pp_out *o, const struct pp_prove_memory *m)
{
	static const struct pp_out_column columns[] = {{"node", NULL, false}, {"why", NULL, false}};

	if (!m->n_lost)
		return;
	if (pp_out_is_json(o))
		pp_out_table(o, "nodes_left_out", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < m->n_lost; i++) {
		if (!pp_out_is_json(o)) {
			pp_out_para(o, 2, "no capture of node %s in the bundle: %s",
				    m->lost[i].node, m->lost[i].why);
			continue;
		}
		pp_out_cell(o, m->lost[i].node);
		pp_out_cell(o, m->lost[i].why);
	}
	if (pp_out_is_json(o))
		pp_out_table_end(o);
}
