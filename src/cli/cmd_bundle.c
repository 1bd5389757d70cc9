/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a bundle back: verify says whether it is whole, show says what it is, html makes a page.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/parse.h"
#include "bundle/bundle.h"
#include "cli/bundle_page.h"
#include "cli/session.h"
#include "base/banned.h"

enum { GATES_SHOWN = 16 };

static void sizes(struct pp_out *o, const struct pp_manifest *m)
{
	size_t n[3] = {0};
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->n; i++) {
		n[m->items[i].kind]++;
		bytes += m->items[i].bytes;
	}
	pp_out_u64(o, "files", "files", n[PP_MEMBER_FILE]);
	pp_out_u64(o, "links", "links", n[PP_MEMBER_LINK]);
	pp_out_u64(o, "directories", "directories", n[PP_MEMBER_DIR]);
	pp_out_u64(o, "bytes", "bytes", bytes);
}

static void identity(struct pp_out *o, const char *path, const struct pp_manifest *m,
		     const struct pp_bundle *b)
{
	pp_out_str(o, "path", "bundle", path);
	pp_out_str(o, "kind", "kind",
		   pp_bundle_file(b, "result.json") ? "prove: verdict and evidence" : "capture");
	pp_out_str(o, "id", "id", m->id);
	pp_out_str(o, "host", "host", m->host);
	pp_out_str(o, "created", "created", m->created);
	pp_out_str(o, "version", "written by peerpath", m->version);
	pp_out_bool(o, "scrubbed", "scrubbed", m->scrubbed);
	pp_out_bool(o, "complete", "complete", m->complete);
	sizes(o, m);
}

/* Text of a bundle must not drive the terminal. */
static const char *safe(const json_t *v, char *buf, size_t size)
{
	const char *text = json_string_value(v);

	if (!text)
		return NULL;
	(void)snprintf(buf, size, "%s", text);
	pp_sanitize(buf, false);
	return buf;
}

/* "0 identity" from a gate that is text, a number, or both. */
static void gate_cell(struct pp_out *o, const json_t *row)
{
	const json_t *gate = json_object_get(row, "gate");
	char buf[128];
	const char *name = safe(json_object_get(row, "name"), buf, sizeof(buf));

	if (json_is_integer(gate))
		pp_out_cellf(o, "%lld %s", (long long)json_integer_value(gate), name ? name : "");
	else
		pp_out_cell(o, safe(gate, buf, sizeof(buf)));
}

/* A result is data of another program's run: shown as text, never trusted as a verdict. */
static void verdict_cell(struct pp_out *o, const json_t *row)
{
	const char *text = json_string_value(json_object_get(row, "verdict"));
	enum pp_verdict v;

	if (text && !pp_verdict_parse(text, &v))
		pp_out_cell_verdict(o, v);
	else
		pp_out_cell(o, NULL);
}

static void verdicts(struct pp_out *o, const struct pp_bundle *b)
{
	static const struct pp_out_column columns[] = {
		{"gate", "GATE", false}, {"verdict", "VERDICT", false}, {"claim", "CLAIM", true}};
	const struct pp_bundle_file *f = pp_bundle_file(b, "result.json");
	json_t *top = f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *gates = json_object_get(top, "gates"), *row;
	char buf[1024];
	const char *overall = safe(json_object_get(top, "verdict"), buf, sizeof(buf));

	if (overall)
		pp_out_str(o, "verdict", "verdict", overall);
	if (json_is_array(gates) && json_array_size(gates)) {
		if (!pp_out_is_json(o))
			pp_out_raw(o, "\n");
		pp_out_table(o, "gates", columns, PP_ARRAY_LEN(columns));
		for (size_t i = 0; i < json_array_size(gates) && i < GATES_SHOWN; i++) {
			row = json_array_get(gates, i);
			gate_cell(o, row);
			verdict_cell(o, row);
			pp_out_cell(o, safe(json_object_get(row, "claim"), buf, sizeof(buf)));
		}
		pp_out_table_end(o);
	}
	json_decref(top);
}

static int verify(struct pp_session *s, const char *path, struct pp_bundle *b)
{
	const struct pp_manifest *m = pp_bundle_manifest(b);

	pp_out_str(s->out, "path", NULL, path);
	pp_out_bool(s->out, "verified", NULL, true);
	pp_out_str(s->out, "id", NULL, m->id);
	pp_out_u64(s->out, "members", NULL, m->n);
	pp_out_para(s->out, 2, "%s: whole: %zu members, id %s", path, m->n, m->id);
	return PP_EXIT_PASS;
}

static int show(struct pp_session *s, const char *path, struct pp_bundle *b)
{
	identity(s->out, path, pp_bundle_manifest(b), b);
	verdicts(s->out, b);
	return PP_EXIT_PASS;
}

static int html(struct pp_session *s, const char *path, struct pp_bundle *b)
{
	return pp_bundle_page(s, path, b);
}

static const struct {
	const char *name;
	int (*run)(struct pp_session *s, const char *path, struct pp_bundle *b);
} actions[] = {{"show", show}, {"verify", verify}, {"html", html}};

/* What says where a page goes says nothing without one. */
static int check_options(const struct pp_args *args, bool page)
{
	static const char *const of_page[] = {"output", "force"};

	if (page && !pp_args_has(args, "output"))
		return pp_complain(args, PP_EXIT_USAGE, "html needs -o FILE; - is standard output");
	if (page && pp_args_has(args, "json") && !strcmp(pp_args_get(args, "output"), "-"))
		return pp_complain(args, PP_EXIT_USAGE,
				   "-o - puts the page where --json has its document");
	for (size_t i = 0; !page && i < PP_ARRAY_LEN(of_page); i++)
		if (pp_args_has(args, of_page[i]))
			return pp_complain(args, PP_EXIT_USAGE, "--%s goes with html", of_page[i]);
	return 0;
}

int pp_cmd_bundle(const struct pp_args *args)
{
	const char *action = pp_args_operand(args, 0), *path = pp_args_operand(args, 1);
	struct pp_near near = PP_NEAR(action);
	struct pp_bundle *b = NULL;
	struct pp_error err = {0};
	struct pp_session s;
	size_t i = 0;
	int code, r;

	while (i < PP_ARRAY_LEN(actions) && strcmp(actions[i].name, action) != 0)
		pp_near_offer(&near, actions[i++].name);
	if (i == PP_ARRAY_LEN(actions))
		return pp_complain(args, PP_EXIT_USAGE,
				   "unknown action '%.60s'%s%s%s; there are show, verify and html",
				   action, near.best ? ", did you mean '" : "",
				   near.best ? near.best : "", near.best ? "'" : "");
	code = check_options(args, actions[i].run == html);
	if (code)
		return code;
	code = pp_session_open_output(args, &s);
	if (code)
		return pp_session_close(&s, code);
	r = pp_bundle_open(path, &b, &err);
	if (r)
		return pp_session_close(
			&s, pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
					err.text));
	pp_out_document(s.out, "peerpath.bundle/1");
	code = actions[i].run(&s, path, b);
	pp_bundle_free(b);
	return pp_session_close(&s, code);
}
