/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/baseline.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bundle/bundle.h"
#include "daemon/watching.h"
#include "node/source.h"
#include "base/parse.h"
#include "base/banned.h"

enum { CANDIDATES = 1024, TRIED = 64, TOOK_MOST_S = 365 * 86400 };

/* What result.json says. */
struct result {
	enum pp_verdict verdict;
	bool simulated;
	struct pp_parts parts;
	struct pp_state_check check[PP_LEDGER_CHECKS];
	size_t n;
};

/* Member "took_s": seconds by gate; what was not measured is not there. */
static int64_t duration_of(const json_t *doc, const char *gate)
{
	double s = json_number_value(json_object_get(json_object_get(doc, "took_s"), gate));

	return s > 0 && s < TOOK_MOST_S ? (int64_t)(s * 1e9) : 0;
}

static void read_gates(const json_t *doc, int64_t run_ns, struct result *ret)
{
	const json_t *gates = json_object_get(doc, "gates"), *row;
	size_t i;

	json_array_foreach(gates, i, row)
	{
		const char *name =
			pp_ledger_check_name(json_string_value(json_object_get(row, "name")));
		const char *word = json_string_value(json_object_get(row, "verdict"));
		struct pp_state_check c = {.name = name,
					   .simulated = ret->simulated,
					   .run_ns = run_ns,
					   .duration_ns = name ? duration_of(doc, name) : 0};

		if (name && word && json_is_true(json_object_get(row, "asked")) &&
		    ret->n < PP_LEDGER_CHECKS && !pp_verdict_parse(word, &c.verdict))
			ret->check[ret->n++] = c;
	}
}

static int check_schema(const char *schema, struct pp_error *err)
{
	static const char OURS[] = "peerpath.prove/";
	uint64_t number = 0;

	if (schema && !strcmp(schema, "peerpath.prove/1"))
		return 0;
	if (schema && !strncmp(schema, OURS, sizeof(OURS) - 1) &&
	    !pp_parse_u64(schema + sizeof(OURS) - 1, 2, UINT32_MAX, &number))
		return pp_error_set(err, -EPROTONOSUPPORT,
				    "its result is %s%llu, newer than this peerpath reads", OURS,
				    (unsigned long long)number);
	return pp_error_set(err, -EBADMSG, "its result.json is none of prove");
}

static int read_result(const struct pp_bundle *b, struct result *ret, struct pp_error *err)
{
	const struct pp_bundle_file *f = pp_bundle_file(b, "result.json");
	json_t *doc = f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *schema = json_string_value(json_object_get(doc, "schema"));
	const char *verdict = json_string_value(json_object_get(doc, "verdict"));
	const char *started = json_string_value(json_object_get(doc, "started"));
	const char *simulation = json_string_value(json_object_get(doc, "simulation"));
	pp_ns run = 0;
	int r = 0;

	*ret = (struct result){.verdict = PP_UNKNOWN};
	ret->simulated = json_is_true(json_object_get(doc, "simulated"));
	if (!f)
		r = pp_error_set(err, -EINVAL, "it holds no result: made by capture, not by prove");
	else
		r = check_schema(schema, err);
	if (!r && (!verdict || pp_verdict_parse(verdict, &ret->verdict)))
		r = pp_error_set(err, -EBADMSG, "its result.json is none of prove");
	/* Nothing is proven by a simulation; that it passed is another word. */
	if (!r && ret->simulated && simulation && !strcmp(simulation, "passed"))
		ret->verdict = PP_PASS;
	if (!r) {
		(void)(started ? pp_clock_parse(started, &run) : 0);
		read_gates(doc, run, ret);
		pp_parts_of_result(json_object_get(doc, "node"), &ret->parts);
	}
	json_decref(doc);
	return r;
}

/* @strict: passed, nothing less. */
static int may_be(const struct pp_baseline_options *o, const struct pp_bundle *b,
		  const struct result *res, bool strict, struct pp_error *err)
{
	if (res->simulated && !o->simulate)
		return pp_error_set(err, -EINVAL, "it is of a simulation; --simulate takes it");
	if (pp_bundle_manifest(b)->scrubbed)
		return pp_error_set(err, -EINVAL, "it is scrubbed: its names are not the node's");
	if (!o->any_node && pp_parts_compare(o->parts, &res->parts) == PP_PARTS_OTHER)
		return pp_error_set(err, -EINVAL,
				    "it is of another node, '%.100s': no GPU and no hca of it is "
				    "here; --any-node takes it",
				    pp_bundle_manifest(b)->host);
	if (res->verdict == PP_PASS || (!strict && res->verdict == PP_DEGRADED))
		return 0;
	return pp_error_set(err, -EINVAL, "its verdict is %s: a baseline is what was good",
			    pp_verdict_name(res->verdict));
}

static int open_one(const struct pp_baseline_options *o, const char *path, bool strict,
		    struct pp_bundle **ret, struct result *ret_result, struct pp_error *err)
{
	struct pp_bundle *b = NULL;
	int r = pp_bundle_open(path, &b, err);

	if (r)
		return r;
	r = read_result(b, ret_result, err);
	if (!r)
		r = may_be(o, b, ret_result, strict, err);
	if (r) {
		pp_error_prefix(err, "baseline '%.300s'", path);
		pp_bundle_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct candidate {
	char *path;
	struct timespec time;
};

static int newer_first(const void *a, const void *b)
{
	const struct candidate *one = a, *two = b;

	if (one->time.tv_sec != two->time.tv_sec)
		return one->time.tv_sec > two->time.tv_sec ? -1 : 1;
	if (one->time.tv_nsec != two->time.tv_nsec)
		return one->time.tv_nsec > two->time.tv_nsec ? -1 : 1;
	return strcmp(two->path, one->path);
}

static bool is_bundle(const char *path, struct stat *st)
{
	char manifest[4200];
	struct stat in;

	if (stat(path, st))
		return false;
	if (S_ISREG(st->st_mode))
		return pp_bundle_is_archive(path);
	(void)snprintf(manifest, sizeof(manifest), "%s/" PP_MANIFEST_NAME, path);
	return S_ISDIR(st->st_mode) && !stat(manifest, &in) && S_ISREG(in.st_mode);
}

static int list_bundles(const char *dir, struct candidate *list, size_t *ret_n,
			struct pp_error *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;
	char path[4096];
	size_t n = 0;
	int r = 0;

	if (!d)
		return pp_error_set(err, -errno, "baseline '%.300s': %s", dir,
				    pp_source_why(-errno));
	while (!r && n < CANDIDATES && (e = readdir(d))) {
		if (*e->d_name == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path) ||
		    !is_bundle(path, &st))
			continue;
		list[n] = (struct candidate){strdup(path), st.st_mtim};
		r = list[n].path ? 0 : pp_error_set(err, -ENOMEM, "out of memory");
		n += !r;
	}
	(void)closedir(d);
	qsort(list, n, sizeof(*list), newer_first);
	*ret_n = n;
	return r;
}

static int newest_passed(const struct pp_baseline_options *o, struct pp_bundle **ret,
			 struct result *ret_result, struct pp_baseline_taken *taken,
			 struct pp_error *err)
{
	struct candidate *PP_AUTO_FREE list = calloc(CANDIDATES, sizeof(*list));
	struct pp_error why = {0};
	size_t n = 0;
	int r = list ? list_bundles(o->path, list, &n, err)
		     : pp_error_set(err, -ENOMEM, "out of memory");
	bool found = false;

	for (size_t i = 0; !r && !found && i < n && i < TRIED; i++) {
		why = (struct pp_error){0};
		found = !open_one(o, list[i].path, true, ret, ret_result, &why);
		if (found)
			(void)snprintf(taken->path, sizeof(taken->path), "%s", list[i].path);
	}
	for (size_t i = 0; i < n; i++)
		free(list[i].path);
	if (r || found)
		return r;
	return pp_error_set(err, -ENOENT, "no bundle in '%.200s' passed%s%.250s", o->path,
			    why.text[0] ? "; the last one tried: " : "", why.text);
}

/* What a bundle said before stands no longer; what it does not say now is the next look's. */
static void forget_bundle(struct pp_ledger *k)
{
	struct pp_subject *e = NULL;

	while ((e = pp_subject_next(k, e))) {
		if (!e->base_bundled)
			continue;
		e->has_base = e->base_bundled = false;
		pp_subject_changed(k, e, PP_NOW);
	}
}

static int take(const struct pp_baseline_options *o, struct pp_bundle *b, struct pp_ledger *k,
		struct pp_baseline_taken *taken, struct pp_error *err)
{
	struct pp_watching w = {.watchers = o->watchers};
	struct pp_source *src = NULL;
	struct pp_round round = {
		.thresholds = o->thresholds, .wall_ns = o->wall_ns, .now_ns = o->now_ns};
	pp_ns seen = 0;
	int r = pp_source_replay_record(pp_bundle_take_record(b), &src, err);

	if (r)
		return r;
	(void)pp_clock_parse(pp_bundle_manifest(b)->created, &seen);
	pp_source_set_time(src, seen);
	w.context = (struct pp_watch_context){
		.source = src, .now_ns = o->now_ns, .wall_ns = seen ? seen : o->wall_ns};
	r = pp_watching_look(&w, &round, err);
	if (!r) {
		forget_bundle(k);
		r = pp_baseline_take(k, &round);
	}
	if (r && !err->code)
		(void)pp_error_set(err, r, "out of memory");
	taken->looks = round.n;
	k->baseline_ns = seen;
	pp_watching_done(&w);
	pp_source_free(src);
	return r;
}

int pp_baseline_read(const struct pp_baseline_options *o, struct pp_ledger *k,
		     struct pp_baseline_taken *ret, struct pp_error *err)
{
	struct pp_baseline_taken taken = {0};
	struct pp_bundle *b = NULL;
	struct result res;
	struct stat st;
	int r;

	(void)snprintf(taken.path, sizeof(taken.path), "%s", o->path);
	if (!stat(o->path, &st) && S_ISDIR(st.st_mode) && !is_bundle(o->path, &st))
		r = newest_passed(o, &b, &res, &taken, err);
	else
		r = open_one(o, o->path, false, &b, &res, err);
	if (r)
		return r;
	(void)snprintf(taken.id, sizeof(taken.id), "%s", pp_bundle_manifest(b)->id);
	(void)snprintf(taken.host, sizeof(taken.host), "%s", pp_bundle_manifest(b)->host);
	taken.verdict = res.verdict;
	taken.simulated = res.simulated;
	taken.like = pp_parts_compare(o->parts, &res.parts);
	r = take(o, b, k, &taken, err);
	pp_bundle_free(b);
	/* A bundle is many times what a monitor may hold: none of it stays. */
	(void)malloc_trim(0);
	if (r)
		return r;
	memcpy(k->check, res.check, sizeof(res.check));
	k->n_checks = res.n;
	(void)snprintf(k->baseline, sizeof(k->baseline), "%s", taken.id);
	*ret = taken;
	return 0;
}
