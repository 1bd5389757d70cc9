/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bench between two nodes on this machine, as a document: the coordinator and its agents,
 * without the verb. bench_run KEY=VALUE...
 *
 *   rungs, ops, measures   lists: tcp,host,dmabuf,staged  write,read,send  bandwidth,latency
 *   sizes                  list of bytes
 *   repeats, each_ms, messages, qps, depth, segments, inside, nodes, seed, stop_ms   numbers
 *   pattern, memory        words
 *   negative, witness, rails, cm    flags
 *
 * The document has "transfer", the verdict on it, besides. Exit: 0 and the document on standard
 * output; 3 and a line on standard error.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "bench/agent.h"
#include "bench/coordinator.h"
#include "cli/trace_soft.h"
#include "judge/transfer.h"
#include "base/banned.h"

static pp_ns stop_at;

static bool stopped(void)
{
	return stop_at && pp_clock_monotonic() > stop_at;
}

static void progress(unsigned int done, unsigned int all, const char *what)
{
	(void)fprintf(stderr, "%u/%u %s\n", done, all, what);
}

static int give_up(const char *what, const char *text)
{
	(void)fprintf(stderr, "%s: %s\n", what, text);
	return 3;
}

static const char *rung(unsigned int i)
{
	return pp_rung_name((enum pp_rung)i);
}

static const char *operation(unsigned int i)
{
	return pp_operation_name((enum pp_operation)i);
}

static const char *measure(unsigned int i)
{
	return pp_measure_name((enum pp_measure)i);
}

static void read_words(const char *text, const char *(*name)(unsigned int), unsigned int n,
		       bool *set)
{
	size_t len;

	for (; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		for (unsigned int i = 0; i < n; i++)
			if (strlen(name(i)) == len && !strncmp(name(i), text, len))
				set[i] = true;
	}
}

static void read_sizes(const char *text, struct pp_bench_options *o)
{
	char word[32];
	size_t len;

	for (; *text && o->n_sizes < PP_BENCH_SIZES; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		(void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
		if (!pp_parse_size(word, (uint64_t)1 << 30, &o->size[o->n_sizes]))
			o->n_sizes++;
	}
}

struct settings {
	struct pp_bench_options o;
	unsigned int nodes;
};

static bool read_number(struct settings *s, const char *key, const char *value)
{
	const struct {
		const char *key;
		unsigned int *to;
	} numbers[] = {
		{"repeats", &s->o.repeats},   {"messages", &s->o.latency_messages},
		{"qps", &s->o.qps},	      {"depth", &s->o.depth},
		{"segments", &s->o.segments}, {"nodes", &s->nodes},
	};
	uint64_t n;

	if (pp_parse_u64(value, 0, UINT32_MAX, &n))
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++)
		if (!strcmp(numbers[i].key, key))
			*numbers[i].to = (unsigned int)n;
	if (!strcmp(key, "each_ms"))
		s->o.each = (pp_ns)n * PP_MILLISECOND;
	if (!strcmp(key, "inside"))
		s->o.inside = n;
	if (!strcmp(key, "seed"))
		s->o.seed = n;
	if (!strcmp(key, "stop_ms"))
		stop_at = pp_clock_monotonic() + (pp_ns)n * PP_MILLISECOND;
	return true;
}

static void read_one(struct settings *s, const char *key, const char *value)
{
	if (!strcmp(key, "sizes"))
		read_sizes(value, &s->o);
	else if (read_number(s, key, value))
		return;
	else if (!strcmp(key, "rungs"))
		read_words(value, rung, PP_RUNGS, s->o.rung);
	else if (!strcmp(key, "ops"))
		read_words(value, operation, PP_OPERATIONS, s->o.op);
	else if (!strcmp(key, "measures"))
		read_words(value, measure, PP_MEASURES, s->o.measure);
	else if (!strcmp(key, "pattern"))
		(void)pp_pattern_parse(value, &s->o.pattern);
	else if (!strcmp(key, "memory"))
		(void)pp_memory_kind_parse(value, &s->o.gpu_memory);
}

static void read_arguments(int argc, char **argv, struct settings *s)
{
	char key[32];
	size_t len;

	for (int i = 1; i < argc; i++) {
		len = strcspn(argv[i], "=");
		(void)snprintf(key, sizeof(key), "%.*s", (int)len, argv[i]);
		if (argv[i][len])
			read_one(s, key, argv[i] + len + 1);
		s->o.negative |= !strcmp(argv[i], "negative");
		s->o.second_witness |= !strcmp(argv[i], "witness");
		s->o.cm |= !strcmp(argv[i], "cm");
		s->o.all_rails |= !strcmp(argv[i], "rails");
	}
}

/* What was written is what a reader takes. */
static int read_back(const struct pp_buf *text)
{
	json_t *document = json_loadb(text->data, text->len, 0, NULL);
	struct pp_error err = {0};
	struct pp_bench *again;
	int r = document ? pp_bench_read(document, &again, &err) : -EBADMSG;

	if (!r)
		pp_bench_free(again);
	json_decref(document);
	return r ? give_up("reading it back", err.text) : 0;
}

static int print(const struct pp_bench *b)
{
	int r;
	struct pp_buf text = PP_BUF((size_t)64 << 20);
	struct pp_json j = PP_JSON(&text, true);
	struct pp_transfer t;

	if (pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t))
		return give_up("verdict", "no memory");
	pp_json_object(&j, NULL);
	pp_bench_write(&j, b);
	pp_transfer_write(&j, "transfer", &t, &pp_margins_default);
	pp_transfer_done(&t);
	pp_json_end_object(&j);
	if (text.failed)
		return give_up("document", "too long");
	(void)puts(pp_buf_text(&text));
	r = read_back(&text);
	pp_buf_done(&text);
	return r;
}

int main(int argc, char **argv)
{
	struct settings s = {.o = {.gid_index = -1,
				   .gpu_memory = PP_MEMORY_CUDA,
				   .simulate = true,
				   .busy_ok = true,
				   .stopped = stopped,
				   .progress = progress},
			     .nodes = 2};
	static const struct pp_agent_options agents = {.registry = pp_trace_soft_ask};
	struct pp_party_options p = {.local = 2,
				     .token = "token of bench_run",
				     .service = {.agent = pp_agent_serve, .arg = &agents},
				     .stopped = stopped};
	struct pp_error err = {0};
	struct pp_party *party;
	struct pp_bench *b;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	read_arguments(argc, argv, &s);
	p.local = s.nodes;
	if (pp_party_gather(&p, &party, &err))
		return give_up("party", err.text);
	r = pp_bench_run(party, &s.o, &b, &err) ? give_up("bench", err.text) : 0;
	if (!r) {
		r = print(b);
		pp_bench_free(b);
	}
	pp_party_free(party);
	return r;
}
