/* SPDX-License-Identifier: Apache-2.0 */
#include "store/result.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "bundle/bundle.h"
#include "bundle/draw.h"
#include "node/node.h"
#include "store/result_read.h"
#include "base/banned.h"

enum { SHORT_BYTES = 1 << 20, CONTAINERS = 1 << 18, VALUES = 1 << 21 };
static const size_t ARENA_BYTES = (size_t)64 << 20;
static const size_t PICTURE_BYTES = (size_t)4 << 20;
/* Of clocks that are not quite alike. */
static const pp_ns AHEAD = 3600 * PP_SECOND;

static const struct {
	const char *name;
	void (*read)(struct pp_reading *in, const json_t *doc);
} kinds[] = {
	{"prove", pp_result_prove},	      {"bench", pp_result_bench},
	{"nccl_run", pp_result_nccl_run},     {"canary", pp_result_canary},
	{"comparison", pp_result_comparison},
};

static void digest(const char *text, size_t len, char ret[65])
{
	uint8_t hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, (const unsigned char *)text, len);
	(void)pp_hex(hash, sizeof(hash), ret);
}

static int new_result(struct pp_result **ret, struct pp_error *err)
{
	struct pp_result *r = calloc(1, sizeof(*r));

	if (!r)
		return pp_error_set(err, -ENOMEM, "out of memory");
	r->arena = PP_ARENA(ARENA_BYTES);
	*ret = r;
	return 0;
}

struct pp_result *pp_result_free(struct pp_result *r)
{
	if (!r)
		return NULL;
	pp_arena_done(&r->arena);
	free(r);
	return NULL;
}

/* "peerpath.prove/1": which kind; -1 after a refusal. */
static int kind_of(struct pp_reading *in, const json_t *doc)
{
	const char *schema = pp_reading_text(in, doc, "schema");
	uint64_t version;
	size_t len;

	if (!schema || strncmp(schema, "peerpath.", 9) != 0) {
		pp_reading_refuse(in, -EBADMSG, "schema", "is none of peerpath's");
		return -1;
	}
	schema += 9;
	len = strcspn(schema, "/");
	for (size_t i = 0; i < PP_ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) != len || strncmp(kinds[i].name, schema, len) != 0)
			continue;
		if (pp_parse_u64(schema + len + !!schema[len], 1, UINT32_MAX, &version))
			break;
		if (version == 1)
			return (int)i;
		pp_reading_refuse(in, -EPROTONOSUPPORT, schema,
				  "is of a newer peerpath than this one");
		return -1;
	}
	pp_reading_refuse(in, -EPROTONOSUPPORT, schema, "is no kind of result that is kept");
	return -1;
}

static void check_time(struct pp_reading *in, const char *text)
{
	pp_ns when;

	if (text && pp_clock_parse(text, &when))
		pp_reading_refuse(in, -EBADMSG, text, "is no time");
	else if (text && when > pp_clock_wall() + AHEAD)
		/* It would be this node's last result until then, whatever comes after it. */
		pp_reading_refuse(in, -EBADMSG, text,
				  "lies more than an hour ahead of the clock here");
}

/* The time of adding would make what is old its node's last: nothing stands in for a time. */
static void check_times(struct pp_reading *in)
{
	check_time(in, in->r->when);
	check_time(in, in->r->judged_at);
	if (!in->r->when)
		in->r->when = in->r->judged_at;
	/* A comparison has none, and says nothing of what a node is. */
	if (!in->failed && !in->r->when && strcmp(in->r->kind, "comparison") != 0)
		pp_reading_refuse(in, -ENODATA, "the result", "does not say when it was measured");
}

/* Whoever cannot be told from others is no node. */
static void check(struct pp_reading *in)
{
	if (!in->failed)
		check_times(in);
	if (!in->failed && !in->r->n_nodes)
		pp_reading_refuse(in, -ENODATA, "the result", "names no node");
	for (size_t i = 0; i < in->r->n_nodes && !in->failed; i++)
		if (!in->r->node[i].n_parts && (!in->r->node[i].host || !*in->r->node[i].host))
			pp_reading_refuse(in, -ENODATA, "the result",
					  "does not say which node it is of: add its bundle");
	if (in->r->arena.failed)
		pp_reading_refuse(in, -EFBIG, "the result", "is too large");
}

static int finish(struct pp_reading *in, struct pp_result **ret)
{
	check(in);
	if (in->failed) {
		pp_result_free(in->r);
		return in->failed;
	}
	*ret = in->r;
	return 0;
}

/*
 * A value in memory is up to a hundred times its text. More of them than a result can have of
 * figures, rows and facts is refused before they are made.
 */
static bool is_dense(const char *text, size_t len)
{
	size_t containers = 0, values = 0;
	bool quoted = false;

	if (len <= SHORT_BYTES)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '"')
			quoted = !quoted;
		else if (quoted)
			i += c == '\\';
		else if (c == '{' || c == '[')
			containers++;
		else if (c == ',' || c == ':')
			values++;
	}
	return containers > CONTAINERS || values > VALUES;
}

static json_t *parse(const char *text, size_t len, struct pp_error *err)
{
	json_error_t at;
	json_t *doc;

	if (!len) {
		(void)pp_error_set(err, -EBADMSG, "empty");
		return NULL;
	}
	if (is_dense(text, len)) {
		(void)pp_error_set(err, -EFBIG, "more values than a result has");
		return NULL;
	}
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	if (!doc)
		(void)pp_error_set(err, -EBADMSG, "no JSON document: line %d: %.160s", at.line,
				   at.text);
	return doc;
}

int pp_result_read(const char *text, size_t len, struct pp_result **ret, struct pp_error *err)
{
	struct pp_reading in = {.err = err};
	json_t *doc;
	int kind, r;

	if (len > PP_RESULT_BYTES)
		return pp_error_set(err, -EFBIG, "longer than a result is");
	doc = parse(text, len, err);
	if (!doc)
		return err->code;
	r = new_result(&in.r, err);
	if (r) {
		json_decref(doc);
		return r;
	}
	kind = kind_of(&in, doc);
	if (kind >= 0) {
		in.r->kind = kinds[kind].name;
		kinds[kind].read(&in, doc);
		digest(text, len, in.r->digest);
	}
	json_decref(doc);
	return finish(&in, ret);
}

/* The picture of the node that the recording replays to; none where it cannot be drawn. */
static void draw(struct pp_reading *in, struct pp_bundle *b)
{
	PP_AUTO_BUF struct pp_buf svg = PP_BUF(PICTURE_BYTES);
	struct pp_record *record = pp_bundle_take_record(b);
	struct pp_source *src = NULL;
	struct pp_node *node = NULL;
	struct pp_error ignored = {0};

	if (!record || pp_source_replay_record(record, &src, &ignored))
		return;
	if (!pp_node_collect(src, &node, &ignored) && !pp_draw_node(node, &svg, &ignored))
		in->r->picture = pp_arena_str(&in->r->arena, pp_buf_text(&svg));
	pp_node_free(node);
	pp_source_free(src);
}

/* Identity of what the bundle holds, archive and directory alike. */
static int digest_of_bundle(const struct pp_bundle *b, char ret[65], struct pp_error *err)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(PP_MANIFEST_BYTES_MAX);
	int r = pp_manifest_write(pp_bundle_manifest(b), &text, err);

	if (!r)
		digest(pp_buf_text(&text), text.len, ret);
	return r;
}

static json_t *member(struct pp_reading *in, struct pp_bundle *b, const char *name)
{
	const struct pp_bundle_file *f = pp_bundle_file(b, name);
	json_t *doc = f && !in->failed ? parse(f->data, f->len, in->err) : NULL;

	if (f && !doc && !in->failed) {
		in->failed = in->err->code;
		pp_error_prefix(in->err, "%s", name);
	}
	return doc;
}

static void read_bundle(struct pp_reading *in, struct pp_bundle *b)
{
	const struct pp_manifest *m = pp_bundle_manifest(b);
	json_t *result = member(in, b, "result.json"), *facts = member(in, b, "facts.json");
	json_t *canary = member(in, b, "canary.json");
	struct pp_result_node *n;

	in->r->kind = result ? "prove" : canary ? "canary" : "capture";
	if (result)
		pp_result_prove(in, result);
	else if (canary)
		pp_result_canary(in, canary);
	/* A canary's own node is one of its nodes; a capture's the only one. */
	n = in->r->n_nodes ? in->r->node : pp_reading_add_node(in);
	if (n && !in->failed && (result || !canary)) {
		*n = (struct pp_result_node){
			.host = n->host, .software = n->software, .topology = n->topology};
		n->host = m->host && strcmp(m->host, "node") != 0
				  ? pp_reading_printf(in, "%s", m->host)
				  : n->host;
		if (json_is_array(json_object_get(facts, "facts")))
			pp_result_facts(in, json_object_get(facts, "facts"), n);
	}
	if (!in->r->when && m->created && strcmp(m->created, "unknown") != 0)
		in->r->when = pp_reading_printf(in, "%s", m->created);
	json_decref(result);
	json_decref(facts);
	json_decref(canary);
}

int pp_result_of_bundle(struct pp_bundle *b, struct pp_result **ret, struct pp_error *err)
{
	struct pp_reading in = {.err = err};
	int r = new_result(&in.r, err);

	if (r)
		return r;
	in.failed = digest_of_bundle(b, in.r->digest, err);
	if (!in.failed)
		read_bundle(&in, b);
	if (!in.failed)
		draw(&in, b);
	return finish(&in, ret);
}
