/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bundle says of its node, for a rollout: read whole, verified, never believed beyond that.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "bundle/bundle.h"
#include "profile/rollout.h"
#include "base/banned.h"

/* Text of somebody's file, for a terminal; NULL for what is no text. */
static const char *text_of(struct pp_rollout *r, const json_t *v)
{
	const char *text = json_string_value(v);
	char buf[1024];

	if (!text || !*text)
		return NULL;
	(void)snprintf(buf, sizeof(buf), "%s", text);
	pp_sanitize(buf, false);
	return pp_arena_str(&r->arena, buf);
}

static json_t *document(const struct pp_bundle *b, const char *path)
{
	const struct pp_bundle_file *f = pp_bundle_file(b, path);

	return f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static void take_gates(struct pp_rollout_bundle *row, const json_t *gates)
{
	for (size_t i = 0; i < json_array_size(gates); i++) {
		const json_t *g = json_array_get(gates, i);
		const json_t *number = json_object_get(g, "gate");
		const char *verdict = json_string_value(json_object_get(g, "verdict"));
		json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;

		if (n < 0 || n >= PP_GATES || !verdict ||
		    pp_verdict_parse(verdict, &row->verdict[n]))
			continue;
		row->asked[n] = json_is_true(json_object_get(g, "asked"));
	}
}

static const char *take_result(struct pp_rollout *r, struct pp_rollout_bundle *row,
			       const struct pp_bundle *b)
{
	json_t *top = document(b, "result.json");

	if (!top)
		return "holds no verdict: it is a capture, not of 'peerpath prove'";
	for (unsigned int i = 0; i < PP_GATES; i++)
		row->verdict[i] = PP_UNKNOWN;
	row->simulated = json_is_true(json_object_get(top, "simulated"));
	row->topology = text_of(r, json_object_get(top, "topology_class"));
	row->software = text_of(r, json_object_get(top, "software_fingerprint"));
	take_gates(row, json_object_get(top, "gates"));
	json_decref(top);
	return NULL;
}

static bool is_fact(const json_t *fact, const char *key)
{
	const char *name = json_string_value(json_object_get(fact, "fact"));

	return name && !strcmp(name, key);
}

/* GUIDs stay where names move; those of all hcas, in the order of the facts. */
static void take_facts(struct pp_rollout *r, struct pp_rollout_bundle *row,
		       const struct pp_bundle *b)
{
	json_t *top = document(b, "facts.json");
	const json_t *facts = json_object_get(top, "facts");
	struct pp_buf PP_AUTO_BUF guids = PP_BUF(4096);

	for (size_t i = 0; i < json_array_size(facts); i++) {
		const json_t *fact = json_array_get(facts, i), *v = json_object_get(fact, "value");

		if (is_fact(fact, "nvidia.flavour"))
			row->flavour = text_of(r, v);
		else if (is_fact(fact, "kernel.boot_id"))
			row->boot = text_of(r, v);
		else if (is_fact(fact, "hca.node_guid") && json_is_string(v))
			pp_buf_printf(&guids, "%s ", json_string_value(v));
	}
	json_decref(top);
	row->node = guids.len && !guids.failed ? pp_arena_str(&r->arena, pp_buf_text(&guids))
					       : row->host;
}

static void read_one(struct pp_rollout *r, struct pp_rollout_bundle *row, const char *dir)
{
	struct pp_bundle *b = NULL;
	struct pp_error err = {0};
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s%s", *row->path == '/' ? "" : dir,
		       *row->path == '/' ? "" : "/", row->path);
	if (pp_bundle_open(path, &b, &err)) {
		row->error = pp_arena_printf(&r->arena, "cannot be used: %s", err.text);
		return;
	}
	row->host = pp_arena_str(&r->arena, pp_bundle_manifest(b)->host);
	row->id = pp_arena_str(&r->arena, pp_bundle_manifest(b)->id);
	row->error = take_result(r, row, b);
	if (!row->error)
		take_facts(r, row, b);
	/* Scrubbing gives one boot another id in each bundle. */
	if (pp_bundle_manifest(b)->scrubbed)
		row->boot = NULL;
	if (!row->error && row->simulated && !r->simulation)
		row->error = "is of a simulation: it proves nothing";
	pp_bundle_free(b);
}

int pp_rollout_read(struct pp_rollout *r, const char *dir, struct pp_error *err)
{
	for (unsigned int i = 0; i < r->n; i++)
		read_one(r, &r->bundle[i], dir);
	return r->arena.failed ? pp_error_set(err, -ENOMEM, "out of memory") : 0;
}
