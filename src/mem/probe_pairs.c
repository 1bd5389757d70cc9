/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/probe_pairs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "mem/probe_gpu.h"
#include "node/ask.h"
#include "base/banned.h"

/* The first question, and one more for each hca that a question before it got stuck in. */
enum { TRIES = 3 };

/* "probe-gpu-0000-3b-00-0", "probe-gpu-0000-3b-00-0-2" */
static void question_name(const char *gpu, unsigned int turn, char *name, size_t size)
{
	if (turn)
		(void)snprintf(name, size, "probe-gpu-%s-%u", gpu, turn + 1);
	else
		(void)snprintf(name, size, "probe-gpu-%s", gpu);
	for (char *p = name; *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
}

static void say(struct pp_probe_result *row, const char *text)
{
	(void)snprintf(row->note, sizeof(row->note), "%s", text);
	pp_sanitize(row->note, /* keep_lines= */ false);
}

static void say_all(struct pp_probe_pairs *p, const char *text)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->row[i]->note[0])
			say(p->row[i], text);
}

/* What one way came to; false when the answer is not well-formed. */
static bool judge(struct pp_probe_result *row, const json_t *way)
{
	const char *refused = pp_answer_str(way, "refused");
	bool simulated = false;
	int64_t error, took;

	if (pp_answer_i64(way, "errno", &error) || error < 0 || error > 4095 ||
	    pp_answer_i64(way, "took_ns", &took) || took < 0 || (error && !refused))
		return false;
	(void)pp_answer_bool(way, "simulated", &simulated);
	row->simulated = row->simulated || simulated;
	row->error = (int)error;
	row->took = took;
	row->verdict = error ? PP_FAIL : PP_PASS;
	say(row, error ? refused : "64 KiB of GPU memory registered and deregistered");
	return true;
}

static const json_t *way_of(const json_t *pair, enum pp_probe_method method)
{
	enum pp_registration how =
		method == PP_PROBE_GPU_DMABUF ? PP_REGISTERED_DMABUF : PP_REGISTERED_PEERMEM;
	const json_t *way;
	const char *its;
	size_t i;

	json_array_foreach(json_object_get(pair, "ways"), i, way)
	{
		its = pp_answer_str(way, "registration");
		if (its && !strcmp(its, pp_registration_name(how)))
			return way;
	}
	return NULL;
}

static void take(struct pp_probe_result *row, const json_t *data)
{
	const json_t *pair;
	const char *its, *failure;
	size_t i;

	json_array_foreach(json_object_get(data, "pairs"), i, pair)
	{
		its = pp_answer_str(pair, "device");
		if (!its || strcmp(its, row->name) != 0)
			continue;
		failure = pp_answer_str(pair, "failure");
		if (failure)
			say(row, failure);
		else if (!judge(row, way_of(pair, row->method)))
			say(row, "the answer does not say what came of it");
		return;
	}
	say(row, "the answer does not name this hca");
}

/* Names of the hcas whose rows are open; each once. */
static size_t devices(const struct pp_probe_pairs *p, const char **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (!p->row[i]->note[0] && (!n || strcmp(ret[n - 1], p->row[i]->name) != 0))
			ret[n++] = p->row[i]->name;
	return n;
}

/* An hca that the reason names, "ibv_reg_mr (mlx5_3) did not ...": its rows are closed with it. */
static bool blame(struct pp_probe_pairs *p, const char *why)
{
	const char *open = strchr(why, '('), *close = open ? strchr(open, ')') : NULL;
	size_t len = close ? (size_t)(close - open) - 1 : 0;
	bool found = false;

	for (size_t i = 0; i < p->n && len; i++) {
		struct pp_probe_result *row = p->row[i];

		if (row->note[0] || strlen(row->name) != len ||
		    memcmp(row->name, open + 1, len) != 0)
			continue;
		say(row, why);
		found = true;
	}
	return found;
}

/* True when it is worth asking again. */
static bool ask(struct pp_probe_pairs *p, const char **names, unsigned int turn)
{
	struct pp_probe_gpu gpu = {.gpu = p->gpu, .devices = names, .n = devices(p, names)};
	struct pp_answer answer;
	char name[80];
	struct pp_question q = {
		.name = name, .run = pp_probe_gpu_run, .arg = &gpu, .deadline = p->deadline};
	bool again = false;

	if (!gpu.n)
		return false;
	if (pp_clock_monotonic() > p->end) {
		say_all(p, "not asked: the probe's time is used up");
		return false;
	}
	question_name(p->gpu, turn, name, sizeof(name));
	if (pp_ask(p->source, &q, &answer)) {
		say_all(p, "not asked: out of memory");
		return false;
	}
	if (!answer.answered)
		again = blame(p, answer.detail);
	if (answer.answered)
		for (size_t i = 0; i < p->n; i++)
			if (!p->row[i]->note[0])
				take(p->row[i], answer.data);
	if (!answer.answered && (!again || turn + 1 == TRIES))
		say_all(p, answer.detail);
	pp_answer_done(&answer);
	return again;
}

void pp_probe_pairs_ask(struct pp_probe_pairs *p)
{
	const char **names = calloc(p->n, sizeof(*names));

	if (!names) {
		say_all(p, "not asked: out of memory");
		return;
	}
	for (unsigned int turn = 0; turn < TRIES && ask(p, names, turn); turn++)
		;
	free(names);
}
