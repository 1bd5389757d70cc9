/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_logs.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bundle/log_hide.h"
#include "nccl/run_judge.h"
#include "nccl/run_logs.h"
#include "base/banned.h"

enum { ARENA_MOST = 80 << 20 };

static const char INDEX[] = "nccl/logs.json", SCHEMA[] = "peerpath.nccl_logs/1";

static const char *const words[] = {"none", "kept", "judged again, the same",
				    "judged again, they differ", "cut"};

void pp_prove_logs_init(struct pp_prove_logs *l)
{
	*l = (struct pp_prove_logs){.arena = PP_ARENA(ARENA_MOST)};
}

void pp_prove_logs_done(struct pp_prove_logs *l)
{
	pp_arena_done(&l->arena);
}

/* Logs of one arm on their way into the bundle. */
struct taking {
	struct pp_prove_logs *l;
	enum pp_nccl_arm arm;
	const char *token;
	struct pp_buf text; /* of the file that comes in */
};

static void end_file(struct taking *t)
{
	struct pp_prove_logs *l = t->l;
	struct pp_prove_logs_arm *a = &l->arm[t->arm];
	PP_AUTO_BUF struct pp_buf out = PP_BUF(2 * PP_PROVE_LOG_ARM);
	const char *data;

	if (!t->text.len)
		return;
	a->hidden += pp_log_hide(pp_buf_text(&t->text), t->text.len, t->token, &out);
	data = pp_arena_strn(&l->arena, pp_buf_text(&out), out.len);
	if (t->text.failed || out.failed || l->n_files > PP_PROVE_LOG_FILES || !data) {
		a->dropped += t->text.len;
	} else {
		l->file[l->n_files++] = (struct pp_bundle_file){
			pp_arena_printf(&l->arena, "nccl/%s/%04" PRIu64 ".log",
					pp_nccl_arm_name(t->arm), a->files),
			data, out.len};
		a->files++;
		a->bytes += out.len;
	}
	pp_buf_done(&t->text);
	t->text = PP_BUF(PP_PROVE_LOG_ARM);
}

static void take_piece(void *ctx, const char *name, const char *bytes, size_t len)
{
	struct taking *t = ctx;

	if (name)
		end_file(t);
	if (bytes)
		pp_buf_add(&t->text, bytes, len);
}

static void ignore(void *ctx, const char *name, const char *bytes, size_t len)
{
	(void)name;
	(void)len;
	if (!bytes)
		++*(uint64_t *)ctx;
}

/* A directory that is not there holds nothing. */
static void take_dir(struct taking *t, const char *dir, uint64_t room)
{
	struct pp_nccl_log_count count = {0};
	uint64_t n = 0, most;

	(void)pp_nccl_logs_read(dir, 0, ignore, &n, &count);
	most = n * PP_PROVE_LOG_RANK < room ? n * PP_PROVE_LOG_RANK : room;
	count = (struct pp_nccl_log_count){0};
	(void)pp_nccl_logs_read(dir, most, take_piece, t, &count);
	end_file(t);
	t->l->arm[t->arm].dropped += count.dropped;
}

static void take_arm(struct pp_prove_logs *l, const char *dir, enum pp_nccl_arm arm,
		     const char *token)
{
	struct taking t = {.l = l, .arm = arm, .token = token, .text = PP_BUF(PP_PROVE_LOG_ARM)};
	struct pp_prove_logs_arm *a = &l->arm[arm];
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, pp_nccl_arm_name(arm));
	take_dir(&t, path, PP_PROVE_LOG_ARM / 4);
	(void)snprintf(path, sizeof(path), "%s/%s-others", dir, pp_nccl_arm_name(arm));
	take_dir(&t, path, PP_PROVE_LOG_ARM / 4 * 3);
	pp_buf_done(&t.text);
	a->word = a->dropped ? PP_PROVE_LOGS_CUT : a->files ? PP_PROVE_LOGS_KEPT : a->word;
}

static void write_arms(struct pp_json *j, const struct pp_prove_logs *l)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		const struct pp_prove_logs_arm *a = &l->arm[i];

		if (a->word == PP_PROVE_LOGS_NONE)
			continue;
		pp_json_object(j, NULL);
		pp_json_str(j, "arm", pp_nccl_arm_name((enum pp_nccl_arm)i));
		pp_json_str(j, "logs", words[a->word]);
		pp_json_u64(j, "files", a->files);
		pp_json_u64(j, "bytes", a->bytes);
		pp_json_u64(j, "dropped_bytes", a->dropped);
		pp_json_u64(j, "hidden", a->hidden);
		pp_json_end_object(j);
	}
}

int pp_prove_logs_take(struct pp_prove_logs *l, const char *dir, const struct pp_nccl_runs *runs,
		       const char *token)
{
	PP_AUTO_BUF struct pp_buf out = PP_BUF(64 << 10);
	struct pp_json j = PP_JSON(&out, true);

	l->n_files = 1;
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		if (runs->arm[i])
			take_arm(l, dir, (enum pp_nccl_arm)i, token);
	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", SCHEMA);
	pp_json_array(&j, "arms");
	write_arms(&j, l);
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	pp_buf_char(&out, '\n');
	l->file[0] = (struct pp_bundle_file){
		INDEX, pp_arena_strn(&l->arena, pp_buf_text(&out), out.len), out.len};
	return out.failed || !l->file[0].data ? -ENOMEM : 0;
}

/* ── from a bundle ── */

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* Into the bundle that a replay writes they go as they came. */
static int keep_files(struct pp_prove_logs *l, const struct pp_bundle *b, enum pp_nccl_arm arm,
		      struct pp_error *err)
{
	for (uint64_t i = 0; i < l->arm[arm].files; i++) {
		const char *path = pp_arena_printf(&l->arena, "nccl/%s/%04" PRIu64 ".log",
						   pp_nccl_arm_name(arm), i);
		const struct pp_bundle_file *f = path ? pp_bundle_file(b, path) : NULL;

		if (!path)
			return pp_error_set(err, -ENOMEM, "out of memory");
		if (!f)
			return pp_error_set(err, -EBADMSG, "%s is not there", path);
		l->file[l->n_files++] = (struct pp_bundle_file){path, f->data, f->len};
	}
	return 0;
}

/* Of the arm whose files were kept last. */
static void feed_files(struct pp_nccl_feed *feed, const struct pp_prove_logs *l, uint64_t files)
{
	for (size_t i = l->n_files - files; i < l->n_files; i++) {
		pp_nccl_log_to_feed(feed, l->file[i].path, NULL, 0);
		pp_nccl_feed_push(feed, l->file[i].data, l->file[i].len);
	}
	pp_nccl_feed_end(feed);
}

/* What logs say of a run is replaced; what other witnesses saw stays. */
static int judge_run(struct pp_nccl_feed *feed, struct pp_nccl_run *r)
{
	char root[PP_NCCL_TEXT];

	r->networks[0] = '\0';
	r->in_network[0] = '\0';
	r->speed = (struct pp_nccl_run_speed){0};
	return pp_nccl_run_judge(feed, r, root, sizeof(root));
}

static bool is_same(const struct pp_nccl_run *a, const struct pp_nccl_judgement *j,
		    const char *networks)
{
	const struct pp_nccl_judgement *k = &a->judgement;

	return k->path == j->path && k->claim_gdr == j->claim_gdr && k->mechanism == j->mechanism &&
	       k->claim_mechanism == j->claim_mechanism && k->coverage == j->coverage &&
	       k->ends.gdr == j->ends.gdr && k->ends.staged == j->ends.staged &&
	       k->ends.socket == j->ends.socket && !strcmp(a->networks, networks);
}

static int judge_arm(struct pp_prove_logs *l, enum pp_nccl_arm arm, struct pp_nccl_run *r,
		     struct pp_error *err)
{
	struct pp_prove_logs_arm *a = &l->arm[arm];
	struct pp_nccl_judgement *before = malloc(sizeof(*before));
	char networks[sizeof(r->networks)];
	struct pp_nccl_feed feed;
	int e = pp_nccl_feed_init(&feed);

	if (!before)
		e = -ENOMEM;
	if (!e) {
		feed_files(&feed, l, a->files);
		*before = r->judgement;
		(void)snprintf(networks, sizeof(networks), "%s", r->networks);
		e = judge_run(&feed, r);
	}
	if (!e)
		a->word = is_same(r, before, networks) ? PP_PROVE_LOGS_SAME : PP_PROVE_LOGS_DIFFER;
	pp_nccl_feed_done(&feed);
	free(before);
	return e == -ENOMEM ? pp_error_set(err, e, "out of memory") : e;
}

static int read_arm(struct pp_prove_logs *l, const json_t *object, const struct pp_bundle *b,
		    struct pp_nccl_runs *runs, struct pp_error *err)
{
	const char *name = json_string_value(json_object_get(object, "arm"));
	struct pp_prove_logs_arm *a;
	enum pp_nccl_arm arm;
	int e;

	if (!name || pp_nccl_arm_parse(name, &arm) || !runs->arm[arm])
		return pp_error_set(err, -EBADMSG, "%s names an arm that did not run", INDEX);
	a = &l->arm[arm];
	if (a->word != PP_PROVE_LOGS_NONE)
		return pp_error_set(err, -EBADMSG, "%s names an arm twice", INDEX);
	*a = (struct pp_prove_logs_arm){.word = PP_PROVE_LOGS_CUT,
					.files = number_of(object, "files"),
					.bytes = number_of(object, "bytes"),
					.dropped = number_of(object, "dropped_bytes"),
					.hidden = number_of(object, "hidden")};
	if (a->files > PP_PROVE_LOG_FILES + 1 - l->n_files)
		return pp_error_set(err, -EBADMSG, "%s: too many files", INDEX);
	e = keep_files(l, b, arm, err);
	return e || a->dropped ? e : judge_arm(l, arm, runs->arm[arm], err);
}

int pp_prove_logs_judge(struct pp_prove_logs *l, const struct pp_bundle *b,
			struct pp_nccl_runs *runs, struct pp_error *err)
{
	const struct pp_bundle_file *f = pp_bundle_file(b, INDEX);
	json_t *top = f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *arms = json_object_get(top, "arms");
	const char *schema = json_string_value(json_object_get(top, "schema"));
	int e = 0;

	if (f && (!schema || strcmp(schema, SCHEMA) != 0 || json_array_size(arms) > PP_NCCL_ARMS))
		e = pp_error_set(err, -EBADMSG, "%s is none of this version's", INDEX);
	if (f && !e)
		l->file[l->n_files++] = (struct pp_bundle_file){INDEX, f->data, f->len};
	for (size_t i = 0; !e && i < json_array_size(arms); i++)
		e = read_arm(l, json_array_get(arms, i), b, runs, err);
	json_decref(top);
	return e;
}

/* ── said ── */

static void say(struct pp_out *o, const struct pp_prove_logs *l, unsigned int i)
{
	const struct pp_prove_logs_arm *a = &l->arm[i];
	const char *arm = pp_nccl_arm_name((enum pp_nccl_arm)i);

	if (a->word == PP_PROVE_LOGS_CUT)
		pp_out_para(o, 2,
			    "logs of %s: %" PRIu64
			    " bytes cut from the bundle's copy: a replay judges "
			    "by nccl.json",
			    arm, a->dropped);
	if (a->word == PP_PROVE_LOGS_DIFFER)
		pp_out_para(o, 2, "logs of %s: they say otherwise than nccl.json: judged by them",
			    arm);
	if (a->hidden)
		pp_out_para(o, 2, "logs of %s: %" PRIu64 " values hidden by their names", arm,
			    a->hidden);
}

void pp_prove_logs_emit(struct pp_out *o, const struct pp_prove_logs *l)
{
	bool any = false;

	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		any |= l->arm[i].word != PP_PROVE_LOGS_NONE;
	if (any && pp_out_is_json(o)) {
		pp_json_array(pp_out_json(o), "logs");
		write_arms(pp_out_json(o), l);
		pp_json_end_array(pp_out_json(o));
	}
	for (unsigned int i = 0; any && !pp_out_is_json(o) && i < PP_NCCL_ARMS; i++)
		say(o, l, i);
}
