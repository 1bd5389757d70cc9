/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's records do to the verdict of gate 2. The design says it: who proves a mechanism
 * is the kernel, about the registration; a contradiction refutes; what is taken away weakens; and
 * nothing of it makes a run better.
 */
#include "bench_made.h"

#include "base/banned.h"
#include "judge/transfer.h"

enum { RECORDS = 4 };

/* Of the rung: a region and its process at each end, as a root's look at a good node gives them. */
static struct pp_bench_evidence *witness(struct pp_bench *b, enum pp_rung rung,
					 const char *registration)
{
	struct pp_bench_rung *r = &b->pairs[0].rung[rung];
	struct pp_bench_evidence *e = pp_arena_array(b->arena, RECORDS, sizeof(*e));

	for (unsigned int i = 0; i < RECORDS; i++) {
		e[i] = (struct pp_bench_evidence){
			.end = i / 2,
			.about = PP_REGISTRATION,
			.witness = PP_BY_KERNEL,
			.scope = i % 2 ? PP_OF_PROCESS : PP_OF_MR,
			.registration = registration,
			.state = PP_PROVEN,
			.gpu_memory = rung == PP_RUNG_DMABUF,
			.of_regions = 1,
			.pid = 100 + i / 2,
			.mrn = -1,
			.lkey = -1,
			.length = -1,
			.inode = -1,
			.took_ns = -1,
			.why = "is_dmabuf=1",
		};
		if (i % 2)
			continue;
		e[i].exporter = rung == PP_RUNG_DMABUF ? "nv_dmabuf" : NULL;
		e[i].sightings = pp_arena_array(b->arena, 1, sizeof(*e[i].sightings));
		e[i].n_sightings = 1;
		e[i].sightings[0] = (struct pp_bench_sighting){
			.surface = "self-probe", .registration = registration, .sufficient = true};
	}
	r->evidence = e;
	r->n_evidence = RECORDS;
	return e;
}

static const struct pp_transfer_row *row_of(const struct pp_transfer *t, enum pp_rung rung)
{
	for (unsigned int i = 0; i < t->n_rows; i++)
		if (t->rows[i].rung == rung)
			return &t->rows[i];
	fail_msg("no row");
	abort();
}

struct found {
	enum pp_verdict verdict, rung;
	enum pp_claim claim;
	bool registered, passed;
	char mechanism[32], witness[32], seen[512], sentence[1024];
};

static void keep(char *to, size_t size, const char *text)
{
	(void)snprintf(to, size, "%s", text ? text : "");
}

static struct found judged(const struct pp_bench *b, enum pp_rung rung)
{
	struct found f = {0};
	const struct pp_transfer_row *row;
	struct pp_transfer t;

	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t), 0);
	row = row_of(&t, rung);
	f.verdict = t.verdict;
	f.rung = row->verdict;
	f.claim = row->claim;
	f.registered = row->registered;
	f.passed = t.passed;
	keep(f.mechanism, sizeof(f.mechanism), row->mechanism);
	keep(f.witness, sizeof(f.witness), row->witness);
	keep(f.seen, sizeof(f.seen), row->seen);
	keep(f.sentence, sizeof(f.sentence), t.sentence);
	pp_transfer_done(&t);
	return f;
}

static void needs(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' lacks '%s'", text, part);
}

/* Nobody looked: the way is what we asked for, by our own word, and the verdict what it was. */
static void test_own_word(void **state)
{
	struct pp_bench *b = made_bench();
	struct found f = judged(b, PP_RUNG_DMABUF);

	(void)state;
	assert_int_equal(f.verdict, PP_PASS);
	assert_int_equal(f.claim, PP_UNPROVEN);
	assert_string_equal(f.mechanism, "dmabuf");
	assert_string_equal(f.witness, "measurement");
	assert_string_equal(f.seen, "");
	needs(f.sentence, "that it is registered so is our own measurement");
	f = judged(b, PP_RUNG_HOST);
	assert_string_equal(f.mechanism, "n/a");
	assert_true(f.registered);
	f = judged(b, PP_RUNG_PEERMEM);
	assert_string_equal(f.mechanism, "undetermined");
	assert_false(f.registered);
	pp_bench_free(b);
}

static void test_proven(void **state)
{
	struct pp_bench *b = made_bench();
	struct found f;

	(void)state;
	(void)witness(b, PP_RUNG_DMABUF, "dmabuf");
	f = judged(b, PP_RUNG_DMABUF);
	assert_int_equal(f.verdict, PP_PASS);
	assert_int_equal(f.claim, PP_PROVEN);
	assert_string_equal(f.mechanism, "dmabuf");
	assert_string_equal(f.witness, "kernel");
	assert_string_equal(f.seen, "kernel, at both ends: dmabuf (self-probe; nv_dmabuf)");
	needs(f.sentence, "the kernel shows it registered so");
	/* of the pair the same; of host memory, which nobody looked at, nothing */
	assert_int_equal(judged(b, PP_RUNGS).claim, PP_PROVEN);
	assert_string_equal(judged(b, PP_RUNGS).mechanism, "dmabuf");
	assert_int_equal(judged(b, PP_RUNG_HOST).claim, PP_UNPROVEN);
	pp_bench_free(b);
}

static void no_record(struct pp_bench_rung *r, unsigned int i)
{
	memmove(&r->evidence[i], &r->evidence[i + 1],
		(r->n_evidence - i - 1) * sizeof(*r->evidence));
	r->n_evidence--;
}

/* Without a region's record, at either end, nothing is proven; the verdict is what it was. */
static void test_removal(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RECORDS; i++) {
		struct pp_bench *b = made_bench();
		struct found f;

		(void)witness(b, PP_RUNG_DMABUF, "dmabuf");
		no_record(&b->pairs[0].rung[PP_RUNG_DMABUF], i);
		f = judged(b, PP_RUNG_DMABUF);
		assert_int_equal(f.claim, i % 2 ? PP_PROVEN : PP_UNPROVEN);
		assert_int_equal(f.verdict, PP_PASS);
		pp_bench_free(b);
	}
}

static void by_library(struct pp_bench_evidence *e)
{
	e->witness = PP_BY_LIBRARY;
}

static void by_log(struct pp_bench_evidence *e)
{
	e->witness = PP_BY_LOG;
}

static void of_capability(struct pp_bench_evidence *e)
{
	e->about = PP_CAPABILITY;
}

static void unproven(struct pp_bench_evidence *e)
{
	e->state = PP_UNPROVEN;
}

static void simulated(struct pp_bench_evidence *e)
{
	e->simulated = true;
}

static void no_gpu(struct pp_bench_evidence *e)
{
	e->gpu_memory = false;
	e->exporter = "udmabuf";
}

static void other(struct pp_bench_evidence *e)
{
	e->other = true;
}

static void one_of_two(struct pp_bench_evidence *e)
{
	e->of_regions = 2;
}

static void unknown(struct pp_bench_evidence *e)
{
	e->registration = NULL;
	e->state = PP_UNPROVEN;
}

/* Each weakening of one record: a lower witness, another subject, less than the whole memory. */
static void test_weaker(void **state)
{
	static void (*const weaken[])(struct pp_bench_evidence *) = {
		by_library, by_log, of_capability, unproven, simulated,
		no_gpu,	    other,  one_of_two,	   unknown};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(weaken); i++)
		for (unsigned int end = 0; end < 2; end++) {
			struct pp_bench *b = made_bench();
			struct found f;

			weaken[i](&witness(b, PP_RUNG_DMABUF, "dmabuf")[2 * end]);
			f = judged(b, PP_RUNG_DMABUF);
			if (f.claim != PP_UNPROVEN || f.verdict != PP_PASS ||
			    strcmp(f.witness, "measurement") != 0)
				fail_msg("%zu: %s by %s, %s", i, pp_claim_name(f.claim), f.witness,
					 f.sentence);
			pp_bench_free(b);
		}
}

/* Host memory where DMA-BUF was asked for: the way is none. Another way of GPU memory: degraded. */
static void test_refuted(void **state)
{
	static const struct {
		const char *kernel;
		enum pp_verdict verdict;
		const char *mechanism;
	} rows[] = {{"host", PP_FAIL, "undetermined"}, {"peermem", PP_DEGRADED, "peermem"}};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct pp_bench *b = made_bench();
		struct found f;

		witness(b, PP_RUNG_DMABUF, "dmabuf")[2].registration = rows[i].kernel;
		f = judged(b, PP_RUNG_DMABUF);
		assert_int_equal(f.claim, PP_REFUTED);
		assert_string_equal(f.witness, "kernel");
		assert_string_equal(f.mechanism, rows[i].mechanism);
		assert_int_equal(f.rung, rows[i].verdict);
		assert_int_equal(f.verdict, rows[i].verdict);
		needs(f.sentence,
		      "registration refuted: dmabuf was asked for, and the kernel shows");
		needs(f.sentence, rows[i].kernel);
		needs(f.sentence, "at b:mlx5_0");
		assert_int_equal(judged(b, PP_RUNGS).claim, PP_REFUTED);
		pp_bench_free(b);
	}
}

/* What is not sure refutes nothing, and what is another region's neither. */
static void test_not_refuted(void **state)
{
	static void (*const spoil[])(struct pp_bench_evidence *) = {by_log, of_capability, unproven,
								    other};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(spoil); i++) {
		struct pp_bench *b = made_bench();
		struct pp_bench_evidence *e = &witness(b, PP_RUNG_DMABUF, "dmabuf")[2];
		struct found f;

		e->registration = "host";
		spoil[i](e);
		f = judged(b, PP_RUNG_DMABUF);
		assert_int_equal(f.claim, PP_UNPROVEN);
		assert_int_equal(f.verdict, PP_PASS);
		pp_bench_free(b);
	}
}

/* The baseline itself: what was taken for host memory is none. */
static void test_host_refuted(void **state)
{
	struct pp_bench *b = made_bench();
	struct found f;

	(void)state;
	(void)witness(b, PP_RUNG_HOST, "dmabuf");
	f = judged(b, PP_RUNG_HOST);
	assert_int_equal(f.claim, PP_REFUTED);
	assert_int_equal(f.verdict, PP_FAIL);
	pp_bench_free(b);
}

/* Records of the best kind do not raise a run that is bad, or that says nothing. */
static void test_never_better(void **state)
{
	struct pp_bench *b = made_bench();

	(void)state;
	(void)witness(b, PP_RUNG_DMABUF, "dmabuf");
	(void)witness(b, PP_RUNG_HOST, "host");
	made_find(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20)->wrong = 1;
	assert_int_equal(judged(b, PP_RUNG_DMABUF).verdict, PP_FAIL);
	made_find(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20)->wrong = 0;
	made_find(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20)->throttle[0] = "sw power cap";
	assert_int_equal(judged(b, PP_RUNG_DMABUF).verdict, PP_UNKNOWN);
	pp_bench_free(b);
}

static void all_simulated(struct pp_bench *b, const char *registration)
{
	struct pp_bench_evidence *e;

	made_simulated(b);
	e = witness(b, PP_RUNG_DMABUF, registration);
	for (unsigned int i = 0; i < RECORDS; i++) {
		e[i].simulated = true;
		e[i].witness = PP_BY_LIBRARY;
		e[i].state = PP_UNPROVEN;
	}
}

/* The registry of the software device proves nothing; where it contradicts, the simulation fails.
 */
static void test_simulated(void **state)
{
	struct pp_bench *b = made_bench();
	struct found f;

	(void)state;
	all_simulated(b, "dmabuf");
	f = judged(b, PP_RUNG_DMABUF);
	assert_true(f.passed);
	assert_int_equal(f.claim, PP_UNPROVEN);
	assert_string_equal(f.seen, "software device, at both ends: dmabuf (simulated)");
	pp_bench_free(b);
	b = made_bench();
	all_simulated(b, "host");
	f = judged(b, PP_RUNG_DMABUF);
	assert_false(f.passed);
	assert_int_equal(f.verdict, PP_FAIL);
	assert_int_equal(f.claim, PP_REFUTED);
	assert_string_equal(f.witness, "library");
	needs(f.sentence, "the software device shows host");
	pp_bench_free(b);
}

/* What is missing is said with how to have it, the easiest first. */
static void test_missing(void **state)
{
	struct pp_bench_missing surface[] = {
		{"bufinfo", "refused", "EACCES", "as root: mount -t debugfs"},
		{"self-probe", "refused", "EPERM", "run as root"},
	};
	struct pp_bench *b = made_bench();
	struct pp_bench_evidence *e = witness(b, PP_RUNG_DMABUF, "dmabuf");
	struct found f;

	(void)state;
	for (unsigned int i = 0; i < RECORDS; i++) {
		unknown(&e[i]);
		e[i].why = "no witness saw how";
		e[i].missing = surface;
		e[i].n_missing = 2;
	}
	f = judged(b, PP_RUNG_DMABUF);
	assert_int_equal(f.verdict, PP_PASS);
	assert_string_equal(f.seen, "kernel, at both ends: unknown: no witness saw how; self-probe "
				    "is refused (EPERM); to have it: run as root");
	/* one end is known, the other was not looked at */
	e[0].registration = "dmabuf";
	e[0].state = PP_PROVEN;
	b->pairs[0].rung[PP_RUNG_DMABUF].n_evidence = 2;
	f = judged(b, PP_RUNG_DMABUF);
	assert_int_equal(f.claim, PP_UNPROVEN);
	needs(f.seen,
	      "kernel: at a:mlx5_0 dmabuf (self-probe; nv_dmabuf); at b:mlx5_0 not looked at");
	pp_bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_word),     cmocka_unit_test(test_proven),
		cmocka_unit_test(test_removal),	     cmocka_unit_test(test_weaker),
		cmocka_unit_test(test_refuted),	     cmocka_unit_test(test_not_refuted),
		cmocka_unit_test(test_host_refuted), cmocka_unit_test(test_never_better),
		cmocka_unit_test(test_simulated),    cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests_name("transfer-registration", tests, NULL, NULL);
}
