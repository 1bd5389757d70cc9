/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of trace_pipe to events. The lines are as a guest with Debian's 6.1 printed them (thread's
 * name in 16 columns, place in brackets), with the values of its own `rdma -j resource show mr`.
 */
#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"

#include "trace/prober_parts.h"

static struct pp_kprobes probes;

static void define(const char *event, enum pp_event_kind kind, enum pp_surface by, bool returns,
		   const char *symbol, const char *module)
{
	struct pp_kprobe *p = &probes.item[probes.n++];

	*p = (struct pp_kprobe){.kind = kind, .by = by, .returns = returns};
	p->user = by == PP_SURFACE_LIBRARY;
	(void)snprintf(p->event, sizeof(p->event), "%s", event);
	(void)snprintf(p->symbol, sizeof(p->symbol), "%s", symbol);
	(void)snprintf(p->module, sizeof(p->module), "%s", module);
}

static int setup(void **state)
{
	(void)state;
	define("a0e", PP_EVENT_HOST, PP_SURFACE_LIVE_PROBE, false, "ib_umem_get", "");
	define("a0r", PP_EVENT_HOST, PP_SURFACE_LIVE_PROBE, true, "ib_umem_get", "");
	define("a1e", PP_EVENT_ADDED, PP_SURFACE_LIVE_PROBE, false, "rdma_restrack_add", "");
	define("b0", PP_EVENT_REGION, PP_SURFACE_SELF_PROBE, false, "fill_res_mr_entry", "");
	define("b1", PP_EVENT_REGION, PP_SURFACE_SELF_PROBE, false, "fill_res_mr_entry",
	       "rdma_rxe");
	define("b2", PP_EVENT_REGION, PP_SURFACE_SELF_PROBE, false, "fill_res_mr_entry", "mlx5_ib");
	define("a2e", PP_EVENT_ADDED, PP_SURFACE_LIVE_PROBE, false, "rdma_restrack_add", "mlx5_ib");
	define("a3e", PP_EVENT_ADDED, PP_SURFACE_LIVE_PROBE, false, "rdma_restrack_add",
	       "rdma_rxe");
	define("a4e", PP_EVENT_REMOVED, PP_SURFACE_LIVE_PROBE, false, "rdma_restrack_del", "");
	define("dma_buf_dynamic_attach", PP_EVENT_ATTACH, PP_SURFACE_TRACEPOINTS, false,
	       "dma_buf_dynamic_attach", "");
	probes.item[probes.n - 1].point = "dma_buf";
	define("u0e", PP_EVENT_REGISTER, PP_SURFACE_LIBRARY, false, "ibv_reg_mr", "");
	define("u0r", PP_EVENT_REGISTER, PP_SURFACE_LIBRARY, true, "ibv_reg_mr", "");
	return 0;
}

static enum pp_line_kind parse(const char *line, struct pp_event_line *ret, uint64_t *ret_lost)
{
	return pp_event_line_parse(&probes, line, strlen(line), ret, ret_lost);
}

static void test_line(void **state)
{
	struct pp_event_line l;
	uint64_t lost = 0;

	(void)state;
	assert_int_equal(
		parse("     ib_write_bw-169     [000]    73.213665: a0e: "
		      "(ib_umem_get+0x0/0x3c0 [ib_uverbs]) addr=0x7fb3c637c000 len=0x20000",
		      &l, &lost),
		PP_LINE_EVENT);
	assert_string_equal(l.event.comm, "ib_write_bw");
	assert_int_equal(l.event.tid, 169);
	assert_int_equal(l.event.at, 73213665000);
	assert_true(l.event.address == 0x7fb3c637c000);
	assert_int_equal(l.event.length, 131072);
	assert_int_equal(l.event.kind, PP_EVENT_HOST);
	/* with the flags of a kernel that prints them, and a name with blanks and brackets */
	assert_int_equal(
		parse("  a [001] b: c d-7       [003] d..2.  9.000001: b1: (f+0x0/0x1) "
		      "mrn=2 lkey=1159 hca=\"rxe0\" owner=\"rdma_rxe\" exp=(fault) tgid=169",
		      &l, &lost),
		PP_LINE_EVENT);
	assert_string_equal(l.event.comm, "a [001] b: c d");
	assert_int_equal(l.event.tid, 7);
	assert_int_equal(l.event.at, 9000001000);
	assert_true(l.event.has_mrn && l.event.mrn == 2 && l.event.lkey == 1159);
	assert_string_equal(l.event.hca, "rxe0");
	assert_string_equal(l.owner, "rdma_rxe");
	assert_string_equal(l.event.exporter, "");
	assert_int_equal(l.event.pid, 169);
	assert_int_equal(parse("CPU:1 [LOST 12 EVENTS]", &l, &lost), PP_LINE_LOST);
	assert_int_equal(lost, 12);
	assert_int_equal(parse("", &l, &lost), PP_LINE_OTHER);
	assert_int_equal(parse("              sh-12      [000]     1.000001: theirs: (x+0x0/0x1)",
			       &l, &lost),
			 PP_LINE_OTHER);
}

static void test_malformed(void **state)
{
	static const char *const lines[] = {
		"x",
		"     ib_write_bw 169     [000]    73.213665: a0e: (f+0x0/0x1)",
		"     ib_write_bw-169     [000]    73: a0e: (f+0x0/0x1)",
		"     ib_write_bw-x9      [000]    73.213665: a0e: (f+0x0/0x1)",
		"     ib_write_bw-169     [000]    73.213665: a0e: nothing",
		"     ib_write_bw-169     [000]    73.213665: a0e: (f+0x0/0x1) addr",
		"     ib_write_bw-169     [000]    73.213665: a0e: (f+0x0/0x1) addr=zz",
		"     ib_write_bw-169     [000]    73.213665: b1: (f+0x0/0x1) hca=\"rx\"e0\"",
		"     ib_write_bw-169     [000]    73.213665: b1: (f+0x0/0x1) hca=\"rxe0",
	};
	struct pp_event_line l;
	uint64_t lost;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(lines); i++)
		if (parse(lines[i], &l, &lost) != PP_LINE_BAD)
			fail_msg("line %zu was taken", i);
}

static struct pp_prober *prober(void)
{
	struct pp_prober *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->kprobes = probes;
	p->pending = calloc(PP_PROBER_PENDING, sizeof(*p->pending));
	assert_non_null(p->pending);
	return p;
}

static void take(struct pp_prober *p, int tid, const char *time, const char *rest)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "            test-%-7d [000]    %s: %s", tid, time,
		       rest);
	assert_int_equal(pp_prober_take(p, line, strlen(line)), 0);
}

static void done(struct pp_prober *p)
{
	free(p->pending);
	free(p->event);
	free(p);
}

/* Two threads in the same function: each return belongs to its own entry, and carries the result.
 */
static void test_pairs(void **state)
{
	struct pp_prober *p = prober();

	(void)state;
	take(p, 1, "1.000001", "a0e: (f+0x0/0x1) addr=0x1000 len=0x10");
	take(p, 2, "1.000002", "a0e: (f+0x0/0x1) addr=0x2000 len=0x20");
	take(p, 1, "1.000003", "a0r: (g+0x1/0x2 <- f) ret=0xfffffffffffffff2");
	take(p, 2, "1.000004", "a0r: (g+0x1/0x2 <- f) ret=0xffff888000000000");
	take(p, 3, "1.000005", "a0r: (g+0x1/0x2 <- f) ret=0xfffffffffffff001");
	take(p, 2, "1.000006", "a1e: (f+0x0/0x1) obj=0xffff888000000100 lkey=5 tgid=2");
	assert_int_equal(p->n, 4);
	assert_int_equal(p->event[0].result, -14); /* EFAULT */
	assert_int_equal(p->event[0].address, 0x1000);
	assert_int_equal(p->event[0].at, 1000003000);
	assert_int_equal(p->event[1].result, 0);
	assert_int_equal(p->event[1].length, 0x20);
	assert_int_equal(p->event[2].result,
			 -4095); /* the last error pointer; its entry was not seen */
	assert_int_equal(p->event[2].address, 0);
	assert_true(p->event[3].has_lkey && p->event[3].lkey == 5);
	assert_false(p->event[3].has_result);
	done(p);
}

/* The library's call: NULL is a refusal whose errno nobody saw, and has no key. */
static void test_library(void **state)
{
	struct pp_prober *p = prober();

	(void)state;
	take(p, 1, "1.000001", "u0e: (0x55d0) addr=0x1000 len=4096");
	take(p, 1, "1.000002", "u0r: (0x55d8 <- 0x55d0) ret=0x0 lkey=77");
	take(p, 1, "1.000003", "u0e: (0x55d0) addr=0x2000 len=4096");
	take(p, 1, "1.000004", "u0r: (0x55d8 <- 0x55d0) ret=0x5500 lkey=78");
	assert_int_equal(p->n, 2);
	assert_true(p->event[0].result < 0 && !p->event[0].has_lkey);
	assert_int_equal(p->event[1].result, 0);
	assert_int_equal(p->event[1].lkey, 78);
	assert_int_equal(p->event[1].address, 0x2000);
	done(p);
}

/* Each driver's probe reads every region: the one of the driver that owns it counts. */
static void test_regions(void **state)
{
	static const char front[] = "(f+0x0/0x1) mrn=3 obj=0xffff8880 lkey=9 hca=\"rxe0\" "
				    "owner=\"rdma_rxe\"";
	struct pp_prober *p = prober();
	char text[256];

	(void)state;
	(void)snprintf(text, sizeof(text), "b0: %s", front);
	take(p, 1, "1.000001", text);
	(void)snprintf(text, sizeof(text), "b2: %s umem=0x1 isdmabuf=1 exp=\"nv_dmabuf\"", front);
	take(p, 1, "1.000001", text);
	(void)snprintf(text, sizeof(text),
		       "b1: %s umem=0xffff1000 isdmabuf=0 isodp=0 exp=\"junk\" size=7 sgt=0x5",
		       front);
	take(p, 1, "1.000001", text);
	assert_int_equal(p->n, 1);
	assert_int_equal(p->event[0].has_umem, PP_YES);
	assert_int_equal(p->event[0].is_dmabuf, PP_NO);
	/* what would hang on a dma-buf is another object's memory here */
	assert_string_equal(p->event[0].exporter, "");
	assert_int_equal(p->event[0].size, 0);
	assert_int_equal(p->event[0].mapped, PP_UNSAID);
	/* a region without umem (device memory): nothing is said of one */
	(void)snprintf(text, sizeof(text),
		       "b1: (f+0x0/0x1) mrn=4 obj=0xffff9990 "
		       "owner=\"rdma_rxe\" umem=0x0 isdmabuf=1");
	take(p, 1, "1.000002", text);
	assert_int_equal(p->n, 2);
	assert_int_equal(p->event[1].has_umem, PP_NO);
	assert_int_equal(p->event[1].is_dmabuf, PP_UNSAID);
	done(p);
}

/* A region that is added, read as each of two drivers has it; the address is used again at once. */
static void test_added(void **state)
{
	static const char host[] = "obj=0xffff8880 lkey=9 owner=\"rdma_rxe\"";
	struct pp_prober *p = prober();
	char text[256];

	(void)state;
	for (int i = 0; i < 2; i++) {
		(void)snprintf(text, sizeof(text), "a2e: (f+0x0/0x1) %s umem=0x1 isdmabuf=1", host);
		take(p, 1, "1.000001", text);
		(void)snprintf(text, sizeof(text), "a3e: (f+0x0/0x1) %s umem=0xffff1000 isdmabuf=0",
			       host);
		take(p, 1, "1.000001", text);
		take(p, 1, "1.000002", "a4e: (g+0x0/0x1) obj=0xffff8880");
	}
	assert_int_equal(p->n, 4);
	for (size_t i = 0; i < 4; i += 2) {
		assert_int_equal(p->event[i].kind, PP_EVENT_ADDED);
		assert_int_equal(p->event[i].has_umem, PP_YES);
		assert_int_equal(p->event[i].is_dmabuf, PP_NO);
		assert_int_equal(p->event[i + 1].kind, PP_EVENT_REMOVED);
	}
	done(p);
}

/* mlx5's data-direct: NULL for a umem, and the umem of the region inside. */
static void test_inner(void **state)
{
	struct pp_prober *p = prober();

	(void)state;
	take(p, 1, "1.000001",
	     "b2: (f+0x0/0x1) mrn=3 obj=0xffff8880 owner=\"mlx5_ib\" umem=0x0 isdmabuf=0 "
	     "exp=(fault) ddumem=0xffff1000 ddisdmabuf=1 ddexp=\"nv_dmabuf\" ddsize=2097152 "
	     "ddino=900 dddev=\"0000:3c:00.0\" ddsgt=0xffff2000");
	assert_int_equal(p->n, 1);
	assert_int_equal(p->event[0].data_direct, PP_YES);
	assert_int_equal(p->event[0].has_umem, PP_YES);
	assert_int_equal(p->event[0].is_dmabuf, PP_YES);
	assert_int_equal(p->event[0].mapped, PP_YES);
	assert_string_equal(p->event[0].exporter, "nv_dmabuf");
	assert_string_equal(p->event[0].device, "0000:3c:00.0");
	assert_int_equal(p->event[0].inode, 900);
	assert_int_equal(p->event[0].size, 2097152);
	/* a plain region: the pointer to an inner one is another object's memory */
	take(p, 1, "1.000002",
	     "b2: (f+0x0/0x1) mrn=4 obj=0xffff9990 owner=\"mlx5_ib\" umem=0xffff5000 isdmabuf=0 "
	     "ddumem=0xffff1000 ddisdmabuf=1 ddexp=\"junk\"");
	assert_int_equal(p->n, 2);
	assert_int_equal(p->event[1].data_direct, PP_UNSAID);
	assert_int_equal(p->event[1].is_dmabuf, PP_NO);
	assert_string_equal(p->event[1].exporter, "");
	done(p);
}

/* dma_buf:dma_buf_dynamic_attach by include/trace/events/dma_buf.h; no kernel here has it. */
static void test_tracepoint(void **state)
{
	static const char *const bad[] = {
		"dma_buf_dynamic_attach: exp_name=nv_dmabuf size=2097152 ino=900",
		"dma_buf_dynamic_attach: exp_name=nv_dmabuf size=x ino=900 dev_name=0000:3b:00.0",
		"dma_buf_dynamic_attach: exp_name= size=1 ino=900 dev_name=0000:3b:00.0",
		"dma_buf_dynamic_attach: exp_name=an_exporter_with_a_name_longer_than_any size=1 "
		"ino=9 "
		"dev_name=0000:3b:00.0",
		"dma_buf_dynamic_attach: (f+0x0/0x1) exp=\"nv_dmabuf\"",
	};
	struct pp_prober *p = prober();

	(void)state;
	take(p, 7, "41.000001",
	     "dma_buf_dynamic_attach: exp_name=nv_dmabuf size=2097152 ino=900 "
	     "attachment:00000000c0ffee00 is_dynamic=1 dev_name=0000:3b:00.0");
	assert_int_equal(p->n, 1);
	assert_int_equal(p->event[0].kind, PP_EVENT_ATTACH);
	assert_int_equal(p->event[0].by, PP_SURFACE_TRACEPOINTS);
	assert_int_equal(p->event[0].tid, 7);
	assert_true(p->event[0].has_result && p->event[0].result == 0);
	assert_string_equal(p->event[0].exporter, "nv_dmabuf");
	assert_string_equal(p->event[0].device, "0000:3b:00.0");
	assert_int_equal(p->event[0].size, 2097152);
	assert_int_equal(p->event[0].inode, 900);
	for (size_t i = 0; i < PP_ARRAY_LEN(bad); i++) {
		take(p, 7, "41.000002", bad[i]);
		assert_int_equal(p->n, 1);
		assert_int_equal(p->lost, i + 1);
	}
	/* of the same system, and not asked for */
	take(p, 7, "41.000003", "dma_buf_put: exp_name=nv_dmabuf size=2097152 ino=900");
	assert_int_equal(p->lost, PP_ARRAY_LEN(bad));
	done(p);
}

/* By the directory alone: a kernel that has it needs no probe of ours on the attach. */
static void test_tracepoint_there(void **state)
{
	struct pp_tracefs t = {0};
	struct pp_kprobes *k = calloc(1, sizeof(*k));
	struct pp_error err;
	char path[256];
	FILE *f;

	(void)state;
	assert_non_null(k);
	(void)snprintf(t.top, sizeof(t.top), "%s", "/tmp/trace-points.XXXXXX");
	assert_non_null(mkdtemp(t.top));
	assert_int_equal(pp_kprobes_points(k, &t, &err), -ENOENT);
	assert_non_null(strstr(err.text, "dma_buf:dma_buf_dynamic_attach"));
	for (const char *const *dir =
		     (const char *const[]){"events", "events/dma_buf",
					   "events/dma_buf/dma_buf_dynamic_attach", NULL};
	     *dir; dir++) {
		(void)snprintf(path, sizeof(path), "%s/%s", t.top, *dir);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/events/dma_buf/dma_buf_dynamic_attach/enable",
		       t.top);
	f = fopen(path, "we");
	assert_non_null(f);
	(void)fclose(f);
	assert_int_equal(pp_kprobes_points(k, &t, &err), 0);
	assert_int_equal(k->n, 1);
	assert_string_equal(k->item[0].point, "dma_buf");
	assert_string_equal(k->item[0].text, ""); /* nothing is defined */
	while (strcmp(path, t.top) != 0) {
		assert_int_equal(remove(path), 0);
		*strrchr(path, '/') = '\0';
	}
	assert_int_equal(rmdir(t.top), 0);
	free(k);
}

/* What cannot be read is lost, and is counted. */
static void test_lost(void **state)
{
	struct pp_prober *p = prober();

	(void)state;
	take(p, 1, "x", "a0e: (f+0x0/0x1)");
	assert_int_equal(p->lost, 1);
	assert_int_equal(pp_prober_take(p, "CPU:0 [LOST 41 EVENTS]", 22), 0);
	assert_int_equal(p->lost, 42);
	done(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	   cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_pairs),	   cmocka_unit_test(test_library),
		cmocka_unit_test(test_regions),	   cmocka_unit_test(test_lost),
		cmocka_unit_test(test_added),	   cmocka_unit_test(test_inner),
		cmocka_unit_test(test_tracepoint), cmocka_unit_test(test_tracepoint_there),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
