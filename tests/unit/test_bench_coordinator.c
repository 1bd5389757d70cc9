/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator against agents that are doubles: each answers as its scenario says, also what no
 * agent of ours would. What must come of it is in the headers: a failure is its way's alone, what
 * was measured stays, what was not says why, a late node is named.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "bench/coordinator.h"

enum { LATE_MS = 30, REPEATS = 3, MIB = 1 << 20 };

enum scenario {
	SOUND,
	NO_DEVICE,
	BUSY,
	NO_LOOK,
	REFUSES_DMABUF,
	WRONG_BYTES,
	LATE,
	DIES_IN_RUN,
	NONSENSE,
	NOT_REFUSED,
	CHANGES_BYTES,
	TRACES,
	TRACES_NOTHING_KNOWN,
	TRACES_NONSENSE,
	DIES_IN_TRACE,
};

static const char END[] = "{\"device\":\"soft0\",\"hca\":\"virtual/soft0\",\"port\":1,"
			  "\"simulated\":true,\"numa\":-1,\"address\":\"127.0.0.1\"%s}";
static const char OPENED[] =
	"\"keys\":[{\"start\":0,\"length\":1048576,\"address\":4096,\"key\":7}],"
	"\"addresses\":[],\"tcp_port\":1,\"nonce\":\"x\",\"memory\":\"sim\",\"simulated\":true,"
	"\"attempts\":[{\"how\":\"dmabuf\",\"call\":\"ibv_reg_dmabuf_mr\",\"arguments\":\"offset "
	"0\","
	"\"error\":%d,\"cuda\":false,\"took_ns\":5,\"bar1_before\":-1,\"bar1_after\":-1}]";
static const char RAN[] = "\"messages\":100,\"bytes\":409600,\"took_ns\":1000000,\"cpu_ns\":500000,"
			  "\"copies\":0,\"latency_ns\":[3000,1000,2000],"
			  "\"counters\":{\"out_of_sequence\":2,\"port_xmit_data\":9}";
/* What no agent says. */
static const char NONSENSE_RAN[] =
	"\"messages\":-1,\"bytes\":9223372036854775807,\"took_ns\":-5,\"cpu_ns\":\"much\","
	"\"copies\":-3,\"latency_ns\":[\"a\",-7,null,1e99],\"gpu_mhz\":-9,\"throttle\":\"\\u001b["
	"2J\","
	"\"counters\":{\"\\u001b[31m\":1,\"\":2,\"good\":9223372036854775807,"
	"\"0123456789012345678901234567890123456789012345678901234567890123456789\":4}";

struct double_agent {
	enum scenario scenario;
	bool direct; /* what is open is no host memory */
	unsigned int end;
};

static const char *word(const json_t *m, const char *key)
{
	const char *text = json_string_value(json_object_get(m, key));

	return text ? text : "";
}

static void look(const struct double_agent *d, struct pp_buf *out)
{
	if (d->scenario == NO_DEVICE) {
		pp_buf_str(out, "\"ends\":[],\"none\":\"no RDMA device\"");
		return;
	}
	pp_buf_str(out, "\"fingerprint\":\"f\",\"ends\":[");
	pp_buf_printf(out, END,
		      d->scenario == BUSY ? ",\"busy\":\"process 7 has uverbs0 open\"" : "");
	for (int i = 0; d->scenario == NONSENSE && i < 200; i++)
		pp_buf_str(out, ",[],7,{\"device\":5,\"port\":-1,\"numa\":1e9}");
	pp_buf_str(out, "]");
}

static bool answer_open(struct double_agent *d, const json_t *m, struct pp_buf *out)
{
	bool refuse;

	d->direct = !strcmp(word(m, "rung"), "dmabuf");
	d->end = (unsigned int)json_integer_value(json_object_get(m, "end"));
	refuse = d->scenario == REFUSES_DMABUF && d->direct;
	pp_buf_printf(out, OPENED, refuse ? 524 : 0);
	pp_buf_printf(out, ",\"pid\":%d,\"lkeys\":[7]", getpid());
	if (refuse)
		pp_buf_str(out, ",\"error\":524,\"status\":0,\"call\":\"ibv_reg_dmabuf_mr\","
				"\"text\":\"refused\"");
	return !refuse;
}

static void answer_check(const struct double_agent *d, const json_t *m, struct pp_buf *out)
{
	bool of_negative = !json_integer_value(json_object_get(m, "size"));
	int wrong = (d->scenario == WRONG_BYTES && d->direct) ||
				    (d->scenario == CHANGES_BYTES && of_negative)
			    ? 5
			    : 0;

	pp_buf_printf(out, "\"bytes\":1048576,\"wrong\":%d,\"first\":%d", wrong, wrong ? 4096 : 0);
}

/* A region under its key and one under another, and the process: of each that is asked for. */
static void trace_one(long long pid, struct pp_buf *out)
{
	static const int lkeys[] = {7, 8};

	for (size_t i = 0; i < 2; i++)
		pp_buf_printf(
			out,
			"{\"about\":\"registration\",\"witness\":\"kernel\",\"scope\":\"mr\","
			"\"registration\":\"dmabuf\",\"state\":\"proven\",\"gpu_memory\":true,"
			"\"pid\":%lld,\"comm\":\"a\",\"lkey\":%d,\"length_bytes\":4096,"
			"\"sightings\":[{\"surface\":\"bufinfo\",\"registration\":\"dmabuf\","
			"\"sufficient\":true,\"raw\":\"00001000\"}],\"missing\":[\"keys\"],"
			"\"why\":\"so\",\"simulated\":false},",
			pid, lkeys[i]);
	pp_buf_printf(
		out,
		"{\"about\":\"registration\",\"witness\":\"kernel\",\"scope\":\"process\","
		"\"registration\":null,\"state\":\"unproven\",\"pid\":%lld,\"why\":\"of all\"},"
		"{\"about\":\"capability\",\"scope\":\"mr\",\"pid\":%lld,\"state\":\"proven\"}",
		pid, pid);
}

static void trace(const json_t *m, struct pp_buf *out)
{
	const json_t *pids = json_object_get(m, "pids");

	pp_buf_str(out,
		   "\"looked\":\"2026-11-30T08:00:00Z\",\"took_ns\":5,"
		   "\"surfaces\":[{\"surface\":\"keys\",\"state\":\"refused\",\"why\":\"EPERM\","
		   "\"how\":\"run as root\"}],\"evidence\":[");
	for (size_t i = 0; i < json_array_size(pids); i++) {
		pp_buf_str(out, i ? "," : "");
		trace_one(json_integer_value(json_array_get(pids, i)), out);
	}
	/* of a process that nobody asked for */
	pp_buf_str(out, ",{\"about\":\"registration\",\"scope\":\"mr\",\"pid\":1,"
			"\"state\":\"proven\",\"registration\":\"host\"}]");
}

static void trace_nonsense(const json_t *m, struct pp_buf *out)
{
	long long pid = json_integer_value(json_array_get(json_object_get(m, "pids"), 0));

	pp_buf_str(out, "\"looked\":7,\"took_ns\":-9,\"surfaces\":{},\"evidence\":[7,[],{},null");
	for (int i = 0; i < 500; i++)
		pp_buf_printf(out,
			      ",{\"about\":\"registration\",\"scope\":\"mr\",\"pid\":%lld,"
			      "\"registration\":\"\\u001b[2J\",\"state\":\"surely\",\"lkey\":-4,"
			      "\"missing\":[\"x\",\"keys\",5],\"sightings\":[[],7,{\"raw\":9}]}",
			      pid);
	pp_buf_str(out, "]");
}

static bool answer_trace(const struct double_agent *d, const json_t *m, struct pp_buf *out)
{
	if (d->scenario == TRACES)
		trace(m, out);
	else if (d->scenario == TRACES_NONSENSE)
		trace_nonsense(m, out);
	else if (d->scenario == TRACES_NOTHING_KNOWN) /* an older one */
		pp_buf_str(out, "\"error\":74,\"text\":\"no such command\"");
	else
		pp_buf_str(out, "\"did\":\"trace\"");
	return d->scenario != TRACES_NOTHING_KNOWN;
}

/* Members of the answer; false: it is a refusal. */
static bool answer(struct double_agent *d, const json_t *m, struct pp_buf *out)
{
	const char *what = word(m, "do");

	if (!strcmp(what, "look"))
		look(d, out);
	else if (!strcmp(what, "open"))
		return answer_open(d, m, out);
	else if (!strcmp(what, "run"))
		pp_buf_str(out, d->scenario == NONSENSE ? NONSENSE_RAN : RAN);
	else if (!strcmp(what, "check"))
		answer_check(d, m, out);
	else if (!strcmp(what, "trace"))
		return answer_trace(d, m, out);
	else if (!strcmp(what, "restrict"))
		pp_buf_printf(out, OPENED, 0);
	else if (!strcmp(what, "negative"))
		pp_buf_printf(out, "\"status_name\":\"%s\",\"refused\":%s,\"decided\":true",
			      d->scenario == NOT_REFUSED ? "IBV_WC_SUCCESS"
							 : "IBV_WC_REM_ACCESS_ERR",
			      d->scenario == NOT_REFUSED ? "false" : "true");
	else
		pp_buf_str(out, "\"did\":\"it\"");
	return true;
}

static int serve(struct pp_channel *c, const void *arg)
{
	struct double_agent d = {.scenario = *(const enum scenario *)arg};
	struct pp_buf out = PP_BUF((size_t)1 << 20);
	struct pp_error err;
	json_t *m;
	bool good;

	while (!pp_channel_receive(c, INT64_MAX, NULL, &m, &err)) {
		if (d.scenario == DIES_IN_RUN && d.direct && !strcmp(word(m, "do"), "run"))
			_exit(0);
		if (d.scenario == DIES_IN_TRACE && !strcmp(word(m, "do"), "trace"))
			_exit(0);
		if (d.scenario == NO_LOOK && !strcmp(word(m, "do"), "look"))
			_exit(0);
		if (d.scenario == LATE && d.end && !strcmp(word(m, "do"), "ready"))
			(void)poll(NULL, 0, LATE_MS);
		pp_buf_reset(&out);
		pp_buf_str(&out, "{");
		good = answer(&d, m, &out);
		pp_buf_printf(&out, ",\"ok\":%s}", good ? "true" : "false");
		json_decref(m);
		if (pp_channel_send(c, pp_buf_text(&out), out.len, &err))
			break;
	}
	pp_buf_done(&out);
	return 0;
}

static struct pp_bench_options asked(void)
{
	return (struct pp_bench_options){.rung = {[PP_RUNG_HOST] = true, [PP_RUNG_DMABUF] = true},
					 .op = {[PP_WRITE] = true},
					 .measure = {[PP_BANDWIDTH] = true, [PP_LATENCY] = true},
					 .size = {4096},
					 .n_sizes = 1,
					 .repeats = REPEATS,
					 .each = PP_MILLISECOND,
					 .gid_index = -1,
					 .gpu_memory = PP_MEMORY_CUDA,
					 .simulate = true,
					 .seed = 1};
}

static int run(enum scenario scenario, const struct pp_bench_options *o, struct pp_bench **ret,
	       struct pp_error *err)
{
	const struct pp_party_options options = {.local = 2,
						 .token = "eight characters",
						 .service = {.agent = serve, .arg = &scenario}};
	struct pp_party *party;
	int r;

	*ret = NULL;
	assert_int_equal(pp_party_gather(&options, &party, err), 0);
	r = pp_bench_run(party, o, ret, err);
	pp_party_free(party);
	return r;
}

static struct pp_bench *ran(enum scenario scenario, bool negative)
{
	struct pp_bench_options o = asked();
	struct pp_error err = {0};
	struct pp_bench *b;

	o.negative = negative;
	if (run(scenario, &o, &b, &err))
		fail_msg("%s", err.text);
	assert_int_equal(b->n_nodes, 2);
	assert_int_equal(b->n_pairs, 1);
	assert_int_equal(b->pairs[0].n_cells, 4);
	return b;
}

static const struct pp_bench_cell *cell(const struct pp_bench *b, enum pp_rung r, enum pp_measure m)
{
	for (unsigned int i = 0; i < b->pairs[0].n_cells; i++)
		if (b->pairs[0].cells[i].rung == r && b->pairs[0].cells[i].measure == m)
			return &b->pairs[0].cells[i];
	fail_msg("no such cell");
	return &b->pairs[0].cells[0];
}

static void a_sound_run(void **state)
{
	struct pp_bench *b = ran(SOUND, false);
	const struct pp_bench_cell *c = cell(b, PP_RUNG_HOST, PP_BANDWIDTH);

	(void)state;
	assert_true(b->whole && b->simulated);
	assert_int_equal(c->state, PP_BENCH_RUN);
	assert_int_equal(c->n_samples, REPEATS);
	/* 409600 bytes in 1 ms are 409.6 MB/s; 0.5 ms of CPU for each end and 0.0004096 GB */
	for (unsigned int i = 0; i < REPEATS; i++)
		assert_float_equal(c->sample[i], 409.6, 1e-9);
	assert_int_equal(c->bytes, REPEATS * 409600);
	assert_float_equal(c->cpu_seconds_per_gb[0], 0.0005 / 0.0004096, 1e-9);
	assert_float_equal(c->cpu_seconds_per_gb[1], 0.0005 / 0.0004096, 1e-9);
	assert_int_equal(c->checked, REPEATS * MIB);
	assert_int_equal(c->wrong, 0);
	/* two ends, two counters each, summed over the repeats */
	assert_int_equal(c->n_counters, 4);
	assert_int_equal(c->counters[0].delta, REPEATS * 2);
	c = cell(b, PP_RUNG_DMABUF, PP_LATENCY);
	assert_int_equal(c->n_samples, REPEATS);
	assert_float_equal(c->sample[0], 2.0, 1e-9);
	assert_float_equal(c->p50, 2.0, 1e-9);
	assert_float_equal(c->p999, 3.0, 1e-9);
	assert_int_equal(c->checked, 2 * REPEATS * MIB);
	assert_int_equal(b->pairs[0].rung[PP_RUNG_TCP].state, PP_BENCH_SKIPPED);
	assert_string_equal(b->pairs[0].rung[PP_RUNG_TCP].why, "not asked for");
	pp_bench_free(b);
}

static void nothing_to_begin_with(void **state)
{
	struct pp_bench_options o = asked();
	struct pp_error err = {0};
	struct pp_bench *b;

	(void)state;
	assert_int_equal(run(NO_DEVICE, &o, &b, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no RDMA device"));
	assert_int_equal(run(BUSY, &o, &b, &err), -EBUSY);
	assert_non_null(strstr(err.text, "process 7 has uverbs0 open"));
	assert_int_equal(run(NO_LOOK, &o, &b, &err), -EIO);
	o.busy_ok = true;
	assert_int_equal(run(BUSY, &o, &b, &err), 0);
	assert_string_equal(b->nodes[0].busy, "process 7 has uverbs0 open");
	pp_bench_free(b);
	o.n_sizes = 0;
	assert_int_equal(run(SOUND, &o, &b, &err), -EINVAL);
}

static void a_way_that_is_refused(void **state)
{
	struct pp_bench *b = ran(REFUSES_DMABUF, false);
	const struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_DMABUF];

	(void)state;
	assert_true(b->whole);
	assert_int_equal(r->state, PP_BENCH_FAILED);
	assert_int_equal(r->error, 524);
	assert_string_equal(r->call, "ibv_reg_dmabuf_mr");
	assert_non_null(strstr(r->why, "refused"));
	assert_int_equal(r->n_attempts, 2);
	assert_int_equal(r->attempts[1].end, 1);
	assert_int_equal(r->attempts[1].error, 524);
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_BANDWIDTH)->state, PP_BENCH_SKIPPED);
	assert_non_null(cell(b, PP_RUNG_DMABUF, PP_BANDWIDTH)->why);
	assert_int_equal(cell(b, PP_RUNG_HOST, PP_LATENCY)->n_samples, REPEATS);
	pp_bench_free(b);
}

static void wrong_bytes_are_written_down(void **state)
{
	struct pp_bench *b = ran(WRONG_BYTES, false);

	(void)state;
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_BANDWIDTH)->wrong, 5 * REPEATS);
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_BANDWIDTH)->first_wrong, 4096);
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_BANDWIDTH)->end, 1);
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_LATENCY)->wrong, 2 * 5 * REPEATS);
	assert_int_equal(cell(b, PP_RUNG_HOST, PP_LATENCY)->wrong, 0);
	pp_bench_free(b);
}

static void the_late_node_is_named(void **state)
{
	struct pp_bench *b = ran(LATE, false);

	(void)state;
	/* it sleeps for so long; how long the other takes is the machine's */
	assert_true(b->nodes[1].arrival_skew > b->nodes[0].arrival_skew);
	assert_true(b->nodes[1].arrival_skew > LATE_MS * 1000 / 2.0);
	assert_true(cell(b, PP_RUNG_HOST, PP_BANDWIDTH)->arrival_skew > LATE_MS * 1000 / 2.0);
	pp_bench_free(b);
}

static void an_agent_that_dies_costs_its_way(void **state)
{
	struct pp_bench *b = ran(DIES_IN_RUN, false);

	(void)state;
	assert_true(b->whole);
	assert_int_equal(b->pairs[0].rung[PP_RUNG_DMABUF].state, PP_BENCH_FAILED);
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_BANDWIDTH)->state, PP_BENCH_FAILED);
	assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_LATENCY)->state, PP_BENCH_SKIPPED);
	assert_int_equal(cell(b, PP_RUNG_HOST, PP_LATENCY)->n_samples, REPEATS);
	pp_bench_free(b);
}

static void nonsense_does_no_harm(void **state)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF((size_t)1 << 20);
	struct pp_json j = PP_JSON(&text, false);
	struct pp_bench *b = ran(NONSENSE, false), *again;
	const struct pp_bench_cell *c = cell(b, PP_RUNG_HOST, PP_BANDWIDTH);
	struct pp_error err = {0};
	json_t *document;

	(void)state;
	assert_int_equal(c->bytes, 0);
	assert_int_equal(c->copies, 0);
	assert_int_equal(c->gpu_mhz[0], -1);
	/* one name of four is a counter's; its sum stays where it can be */
	assert_int_equal(c->n_counters, 2);
	assert_string_equal(c->counters[0].name, "good");
	assert_int_equal(c->counters[0].delta, INT64_MAX);
	assert_null(strchr(c->throttle[0], '\033'));
	pp_json_object(&j, NULL);
	pp_bench_write(&j, b);
	pp_json_end_object(&j);
	assert_int_equal(text.failed, 0);
	document = json_loadb(text.data, text.len, 0, NULL);
	assert_non_null(document);
	if (pp_bench_read(document, &again, &err))
		fail_msg("%s", err.text);
	pp_bench_free(again);
	json_decref(document);
	pp_bench_free(b);
}

static void refusals(void **state)
{
	static const struct {
		enum scenario scenario;
		bool refused;
	} cases[] = {{SOUND, true}, {NOT_REFUSED, false}, {CHANGES_BYTES, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_bench *b = ran(cases[i].scenario, true);
		const struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_HOST];

		assert_int_equal(r->n_negatives, 4);
		for (unsigned int k = 0; k < 4; k++) {
			assert_true(r->negatives[k].run);
			assert_int_equal(r->negatives[k].refused, cases[i].refused);
			assert_non_null(r->negatives[k].status);
		}
		pp_bench_free(b);
	}
}

static const struct pp_bench_evidence *at_end(const struct pp_bench_rung *r, unsigned int end,
					      unsigned int *ret_n)
{
	static const struct pp_bench_evidence none;
	const struct pp_bench_evidence *first = &none;

	*ret_n = 0;
	for (unsigned int i = r->n_evidence; i--;) {
		if (r->evidence[i].end != end)
			continue;
		first = &r->evidence[i];
		++*ret_n;
	}
	if (!*ret_n)
		fail_msg("no record of end %u", end);
	return first;
}

/* What a look says of each rung's processes stands beside them, of each end its own. */
static void a_look_is_taken(void **state)
{
	struct pp_bench *b = ran(TRACES, false);
	int64_t pid[2][2] = {{0}};
	unsigned int n;

	(void)state;
	assert_true(b->whole);
	for (unsigned int k = 0; k < 2; k++) {
		const struct pp_bench_rung *r =
			&b->pairs[0].rung[k ? PP_RUNG_DMABUF : PP_RUNG_HOST];

		assert_int_equal(r->n_evidence, 6);
		for (unsigned int end = 0; end < 2; end++) {
			const struct pp_bench_evidence *e = at_end(r, end, &n);

			assert_int_equal(n, 3);
			pid[k][end] = e->pid;
			assert_int_equal(e->about, PP_REGISTRATION);
			/* the nodes are the software device's: their kernel has no word in it */
			assert_int_equal(e->witness, PP_BY_LIBRARY);
			assert_true(e->simulated);
			assert_string_equal(e->registration, "dmabuf");
			assert_int_equal(e->lkey, 7);
			assert_false(e->other);
			assert_int_equal(e->of_regions, 1);
			assert_int_equal(e->length, 4096);
			assert_int_equal(e->n_sightings, 1);
			assert_string_equal(e->sightings[0].surface, "bufinfo");
			assert_int_equal(e->n_missing, 1);
			assert_string_equal(e->missing[0].surface, "keys");
			assert_string_equal(e->missing[0].how, "run as root");
			assert_true(e[1].other);
			assert_int_equal(e[2].scope, PP_OF_PROCESS);
			assert_null(e[2].registration);
		}
	}
	/* four agents, four processes */
	assert_true(pid[0][0] != pid[0][1] && pid[0][0] != pid[1][0] && pid[0][0] != pid[1][1] &&
		    pid[0][1] != pid[1][0] && pid[0][1] != pid[1][1] && pid[1][0] != pid[1][1]);
	pp_bench_free(b);
}

/* A look that comes to nothing says so of each process, and costs the run nothing. */
static void a_look_that_fails(void **state)
{
	static const struct {
		enum scenario scenario;
		const char *why;
	} cases[] = {{SOUND, "the look says nothing of this process"},
		     {TRACES_NOTHING_KNOWN, "not looked at: no such command"},
		     {DIES_IN_TRACE, "not looked at: "}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_bench *b = ran(cases[i].scenario, false);
		const struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_DMABUF];

		assert_true(b->whole);
		assert_int_equal(cell(b, PP_RUNG_DMABUF, PP_LATENCY)->n_samples, REPEATS);
		assert_int_equal(r->n_evidence, 2);
		for (unsigned int k = 0; k < 2; k++) {
			assert_int_equal(r->evidence[k].end, k);
			assert_int_equal(r->evidence[k].state, PP_UNPROVEN);
			assert_null(r->evidence[k].registration);
			assert_non_null(strstr(r->evidence[k].why, cases[i].why));
		}
		pp_bench_free(b);
	}
}

static void a_look_full_of_nonsense(void **state)
{
	struct pp_bench *b = ran(TRACES_NONSENSE, false);
	const struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_HOST];
	unsigned int n;
	const struct pp_bench_evidence *e = at_end(r, 0, &n);

	(void)state;
	assert_true(b->whole);
	assert_true(n >= 1 && n < 100);
	assert_int_equal(e->state, PP_UNPROVEN);
	assert_int_equal(e->lkey, -1);
	assert_int_equal(e->looked, 0);
	assert_null(strchr(e->registration, '\033'));
	assert_int_equal(e->n_missing, 1);
	assert_null(e->missing[0].state);
	pp_bench_free(b);
}

static unsigned int asks;

static bool after_a_while(void)
{
	return ++asks > 30;
}

static void told_to_stop(void **state)
{
	struct pp_bench_options o = asked();
	struct pp_error err = {0};
	struct pp_bench *b;
	unsigned int left = 0;

	(void)state;
	o.stopped = after_a_while;
	o.repeats = 1000;
	assert_int_equal(run(SOUND, &o, &b, &err), 0);
	assert_false(b->whole);
	assert_string_equal(b->ended, "interrupted");
	for (unsigned int i = 0; i < b->pairs[0].n_cells; i++) {
		left += b->pairs[0].cells[i].state == PP_BENCH_NOT_REACHED;
		if (b->pairs[0].cells[i].state == PP_BENCH_NOT_REACHED)
			assert_string_equal(b->pairs[0].cells[i].why, "interrupted");
	}
	assert_true(left > 0);
	pp_bench_free(b);
}

static void the_budget_grows_with_what_is_asked(void **state)
{
	struct pp_bench_options o = asked(), more = asked();

	(void)state;
	more.repeats *= 10;
	assert_true(pp_bench_budget(&o, 1) > 0);
	assert_true(pp_bench_budget(&more, 1) > pp_bench_budget(&o, 1));
	assert_true(pp_bench_budget(&o, 2) > pp_bench_budget(&o, 1));
	/* at least what the repeats alone take */
	more.each = PP_SECOND;
	assert_true(pp_bench_budget(&more, 1) > 4 * 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_run),
		cmocka_unit_test(nothing_to_begin_with),
		cmocka_unit_test(a_look_is_taken),
		cmocka_unit_test(a_look_that_fails),
		cmocka_unit_test(a_look_full_of_nonsense),
		cmocka_unit_test(a_way_that_is_refused),
		cmocka_unit_test(wrong_bytes_are_written_down),
		cmocka_unit_test(the_late_node_is_named),
		cmocka_unit_test(an_agent_that_dies_costs_its_way),
		cmocka_unit_test(nonsense_does_no_harm),
		cmocka_unit_test(refusals),
		cmocka_unit_test(told_to_stop),
		cmocka_unit_test(the_budget_grows_with_what_is_asked),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
