/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTML page of a run: well-formed by expat, every text of the run in it as text, plots at the
 * places that the values demand. With --print one page of hostile texts goes to stdout, for
 * check_page.py.
 */
#include "bench_made.h"

#include <expat.h>

#include "bundle/page.h"
#include "bundle/plot.h"
#include "base/banned.h"

static char *page_of(const struct pp_bench *b)
{
	struct pp_transfer t;
	char *page = NULL;

	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t), 0);
	assert_int_equal(pp_page_bench(b, &t, &pp_margins_default, &page), 0);
	pp_transfer_done(&t);
	return page;
}

static void well_formed(const char *page)
{
	XML_Parser parser = XML_ParserCreate(NULL);

	if (XML_Parse(parser, page, (int)strlen(page), 1) != XML_STATUS_OK)
		fail_msg("line %lu: %s", XML_GetCurrentLineNumber(parser),
			 XML_ErrorString(XML_GetErrorCode(parser)));
	XML_ParserFree(parser);
}

static void has(const char *page, const char *part)
{
	if (!strstr(page, part))
		fail_msg("lacks '%s'", part);
}

/* Every text that a peer or a bundle may choose. */
static void hostile(struct pp_bench *b)
{
	static const char evil[] =
		"<script>alert('x')</script>\"><img src=x onerror=y>&amp;\x01\xff";
	struct pp_bench_pair *p = &b->pairs[0];
	struct pp_bench_rung *r = &p->rung[PP_RUNG_PEERMEM];

	b->version = b->ended = b->second = p->name = evil;
	for (unsigned int i = 0; i < 2; i++) {
		b->nodes[i] = (struct pp_bench_node){evil, evil, evil,	evil, evil,
						     evil, evil, false, NAN};
		p->end[i].device = p->end[i].hca = p->end[i].gid = p->end[i].gid_type = evil;
		p->end[i].netdev = p->end[i].gpu = p->end[i].gpu_name = p->end[i].route = evil;
		p->end[i].distance = p->end[i].cpus = evil;
	}
	*r = (struct pp_bench_rung){
		.rung = PP_RUNG_PEERMEM, .state = PP_BENCH_FAILED, .why = evil, .call = evil};
	r->attempts = pp_arena_array(b->arena, 1, sizeof(*r->attempts));
	r->attempts[0] = (struct pp_bench_attempt){
		.how = evil, .call = evil, .arguments = evil, .error = 14};
	r->negatives = pp_arena_array(b->arena, 1, sizeof(*r->negatives));
	r->negatives[0] = (struct pp_bench_negative){evil, true, false, evil};
	r->n_attempts = r->n_negatives = 1;
	p->cells[1].state = PP_BENCH_FAILED;
	p->cells[1].why = evil;
	p->cells[0].counters[0].name = evil;
	p->cells[2].throttle[0] = evil;
	b->whole = false;
}

static void test_good(void **state)
{
	struct pp_bench *b = made_bench();
	char *page = page_of(b);

	(void)state;
	well_formed(page);
	has(page, "<h1>Memory over RDMA: pass</h1>");
	has(page, "dmabuf, 4194304 bytes: 48000 MB/s");
	has(page, "width=device-width");
	has(page, "@media print");
	assert_null(strstr(page, "Simulation"));
	free(page);
	made_simulated(b);
	page = page_of(b);
	well_formed(page);
	has(page, "Simulation: no hardware was measured");
	has(page, "simulation: passed");
	assert_null(strstr(page, "proven"));
	free(page);
	pp_bench_free(b);
}

static void test_hostile(void **state)
{
	struct pp_bench *b = made_bench();
	char *page;

	(void)state;
	hostile(b);
	page = page_of(b);
	well_formed(page);
	has(page, "&lt;script&gt;alert('x')&lt;/script&gt;&quot;&gt;&lt;img src=x onerror=y&gt;"
		  "&amp;amp;");
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "<img"));
	free(page);
	pp_bench_free(b);
}

static void test_nothing(void **state)
{
	struct pp_bench *b = NULL;
	char *page;

	(void)state;
	assert_int_equal(pp_bench_new(&b), 0);
	page = page_of(b);
	well_formed(page);
	has(page, "unknown");
	free(page);
	pp_bench_free(b);
}

/* The plane is 64 to 628 across and 276 to 28 up: 1, 2, 4 bytes and 0 to 10. */
static void test_places(void **state)
{
	static const struct pp_plot_point points[] = {
		{1, 10, NAN, NAN}, {2, NAN, NAN, NAN}, {2, 5, 4, 6}, {4, 0, NAN, NAN}};
	const struct pp_plot_series series = {"<host>", 1, points, 4};
	struct pp_plot p = {"T", "MB/s", &series, 1, NAN, NULL};
	struct pp_buf PP_AUTO_BUF out = PP_BUF(1 << 20);

	(void)state;
	pp_plot_write(&out, &p);
	well_formed(out.data);
	has(out.data, "d=\"M64.0 28.0L346.0 152.0L628.0 276.0\"");
	has(out.data, "M346.0 176.8V127.2"); /* the interval of the middle one */
	has(out.data, "&lt;host&gt;, 2 bytes: 5 MB/s");
	pp_buf_reset(&out);
	p.n = 0;
	assert_false(pp_plot_has(&p));
	pp_plot_write(&out, &p);
	assert_int_equal(out.len, 0);
}

/* Absurd numbers give a page all the same. */
static void test_absurd(void **state)
{
	struct pp_bench *b = made_bench();
	char *page;

	(void)state;
	b->pairs[0].cells[0].sample[0] = 1e308;
	b->pairs[0].cells[1].sample[0] = 1e-300;
	b->pairs[0].cells[2].size = INT64_MAX;
	b->pairs[0].cells[3].size = 0;
	for (unsigned int i = 0; i < MADE_REPEATS; i++)
		b->pairs[0].cells[4].sample[i] = 1e308;
	page = page_of(b);
	well_formed(page);
	free(page);
	pp_bench_free(b);
}

static int print(void)
{
	struct pp_bench *b = made_bench();
	char *page;

	hostile(b);
	page = page_of(b);
	(void)fputs(page, stdout);
	free(page);
	pp_bench_free(b);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_places),
		cmocka_unit_test(test_absurd),
	};

	if (argc > 1 && !strcmp(argv[1], "--print"))
		return print();
	return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
