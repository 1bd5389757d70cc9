/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs against the kernel: lines as NCCL 2.19 prints them (its sources' formats), on machines made
 * by hand. "DMA-BUF is available" and "GPU Direct RDMA Enabled" are printed before anything is
 * registered: they are never counted.
 */
#include "trace_world.h"

#include "base/compiler.h"
#include "judge/registration.h"

static const uint64_t MIB = 1 << 20;
static const char NIC[] = "0000:3b:00.0";

static const char CAPABLE[] =
	"node1:42:50 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
	"node1:42:50 [0] NCCL INFO DMA-BUF is available on GPU device 0\n"
	"node1:42:50 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n";
static const char DIRECT[] =
	"node1:42:50 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
	"node1:42:50 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n";
static const char STAGED[] =
	"node1:42:50 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n";

/* One region of process 42, by what B says. */
static void machine(struct world *w, enum pp_tristate dmabuf, enum pp_tristate peer)
{
	world_init(w);
	world_hca(w, "mlx5_0", NIC, "mlx5_core");
	world_process(w, 42, 2048)->gpu_descriptors = 2;
	world_mr(w, 7, 42, 2 * MIB);
	event_buffer(world_region(w, 42, "mlx5_0", 7, dmabuf, peer), "nv_dmabuf", NIC, 900,
		     2 * MIB);
	w->peermem = (struct pp_peermem){
		.loaded = true, .module = "nvidia_peermem", .references = peer == PP_YES};
	w->peermem.report.state = PP_SURFACE_READ;
	if (dmabuf == PP_YES)
		world_buffer(w, "nv_dmabuf", 900, 2 * MIB, NIC, 1);
	world_judge(w);
}

static void judge(const struct world *w, const char *host, struct pp_log_claims *ret,
		  const char *text)
{
	struct pp_nccl_feed *f = malloc(sizeof(*f));
	struct pp_nccl_judgement j;
	struct pp_nccl_group group;
	uint32_t line = 1;

	*ret = (struct pp_log_claims){0};
	assert_non_null(f);
	assert_int_equal(pp_nccl_feed_init(f), 0);
	pp_nccl_feed_file(f, "nccl.log");
	pp_nccl_feed_push(f, text, strlen(text));
	pp_nccl_feed_end(f);
	for (const char *at = text; *at; line++) {
		size_t n = strcspn(at, "\n");

		pp_log_line(ret, "nccl.log", line, at, n);
		at += n + (at[n] == '\n');
	}
	assert_int_equal(pp_nccl_feed_judge(f, &group, &j), 0);
	pp_log_judge_lines(ret, &w->t);
	pp_log_judge_nccl(ret, &w->t, &f->job, &j, host);
	pp_nccl_group_done(&group);
	pp_nccl_feed_done(f);
	free(f);
}

static void is(const struct pp_log_claims *c, unsigned int i, enum pp_log_state state,
	       enum pp_about about)
{
	assert_true(i < c->n);
	if (c->item[i].state != state || c->item[i].about != about)
		fail_msg("'%s' is %s, about %s: %s", c->item[i].text,
			 pp_log_state_name(c->item[i].state), pp_about_name(c->item[i].about),
			 c->item[i].why);
}

static void test_capability(void **state)
{
	struct world *w = *state;
	struct pp_log_claims c;

	machine(w, PP_NO, PP_NO); /* all of it host memory, and still nothing is refuted */
	judge(w, "node1", &c, CAPABLE);
	assert_int_equal(c.n, 2);
	is(&c, 0, PP_LOG_RECORDED, PP_CAPABILITY);
	is(&c, 1, PP_LOG_RECORDED, PP_CAPABILITY);
	assert_int_equal(c.item[0].line, 2);
	assert_false(pp_log_refuted(&c));
}

static void test_direct(void **state)
{
	struct world *w = *state;
	struct pp_log_claims c;

	machine(w, PP_YES, PP_NO);
	judge(w, "node1", &c, DIRECT);
	assert_int_equal(c.n, 1);
	is(&c, 0, PP_LOG_AGREES, PP_REGISTRATION);
	assert_int_equal(c.item[0].pid, 42);
	assert_string_equal(c.item[0].file, "nccl.log");
	/* every region of the process is host memory: there is nothing to send directly */
	machine(w, PP_NO, PP_NO);
	judge(w, "node1", &c, DIRECT);
	is(&c, 0, PP_LOG_REFUTED, PP_REGISTRATION);
	assert_true(pp_log_refuted(&c));
	/* the log claims nothing direct */
	judge(w, "node1", &c, STAGED);
	assert_int_equal(c.n, 0);
	/* the same process number, of another host */
	judge(w, "node2", &c, DIRECT);
	assert_int_equal(c.n, 0);
}

/* What would have to be proven before a log is refuted. */
static void test_open(void **state)
{
	struct world *w = *state;
	struct pp_log_claims c;

	machine(w, PP_NO, PP_UNSAID); /* nothing says whether a peer client has it */
	w->peermem.references = 5;
	world_judge(w);
	judge(w, "node1", &c, DIRECT);
	is(&c, 0, PP_LOG_OPEN, PP_REGISTRATION);
	machine(w, PP_NO, PP_NO);
	w->resources.resources.state = PP_SURFACE_CUT;
	world_judge(w);
	judge(w, "node1", &c, DIRECT);
	is(&c, 0, PP_LOG_OPEN, PP_REGISTRATION);
	machine(w, PP_NO, PP_NO);
	w->resources.n = w->events.n = 0; /* the job is over */
	world_judge(w);
	judge(w, "node1", &c, DIRECT);
	is(&c, 0, PP_LOG_OPEN, PP_REGISTRATION);
	machine(w, PP_NO, PP_NO);
	w->process[0].pid = w->thread[0][0] = 43; /* another process's */
	w->resource[0].tid = 43;
	w->event[0].pid = w->event[0].tid = 43;
	world_judge(w);
	judge(w, "node1", &c, DIRECT);
	is(&c, 0, PP_LOG_OPEN, PP_REGISTRATION);
	/* a region without an owner may be its */
	w->resource[0].tid = 0;
	w->events.n = 0;
	world_judge(w);
	judge(w, "node1", &c, DIRECT);
	is(&c, 0, PP_LOG_OPEN, PP_REGISTRATION);
}

/*
 * NCCL before 2.13 knows no DMA-BUF: its direct connections are by peer memory. Without a reference
 * of nvidia_peermem there is no such region.
 */
static void test_peermem(void **state)
{
	struct world *w = *state;
	struct pp_log_claims c;
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "node1:42:50 [0] NCCL INFO NCCL version 2.12.12+cuda11.6\n"
		       "node1:42:50 [0] NCCL INFO Channel 00/0 : 1[5000] -> 0[5000] [receive] via "
		       "NET/IB/0/GDRDMA\n"
		       "node1:42:50 [0] NCCL INFO Channel 00/0 : 0[5000] -> 1[5000] [send] via "
		       "NET/IB/0/GDRDMA\n");
	machine(w, PP_NO, PP_YES);
	judge(w, "node1", &c, text);
	is(&c, 0, PP_LOG_AGREES, PP_REGISTRATION);
	machine(w, PP_YES, PP_NO);
	judge(w, "node1", &c, text);
	is(&c, 0, strstr(c.item[0].text, "peermem") ? PP_LOG_REFUTED : PP_LOG_AGREES,
	   PP_REGISTRATION);
}

/* perftest, src/cuda_memory.c, with --use_cuda_dmabuf. */
static void test_perftest(void **state)
{
	static const char text[] = "using DMA-BUF for GPU buffer address at 0x7f0000000000 aligned "
				   "at 0x7f0000000000 with aligned size 65536\n";
	struct world *w = *state;
	struct pp_log_claims c;

	machine(w, PP_YES, PP_NO);
	judge(w, "", &c, text);
	is(&c, 0, PP_LOG_AGREES, PP_REGISTRATION);
	machine(w, PP_NO, PP_YES);
	judge(w, "", &c, text);
	is(&c, 0, PP_LOG_REFUTED, PP_REGISTRATION);
}

static void test_bounds(void **state)
{
	struct world *w = *state;
	struct pp_log_claims c = {0};

	machine(w, PP_NO, PP_NO);
	for (uint32_t i = 0; i < 1000; i++)
		pp_log_line(&c, "a", i, "DMA-BUF is available on GPU device 0\x1b[2J", 41);
	assert_int_equal(c.n, PP_LOG_LINES);
	assert_int_equal(c.more, 1000 - PP_LOG_LINES);
	assert_null(strchr(c.item[0].text, '\x1b'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_capability), WORLD_TEST(test_direct),	WORLD_TEST(test_open),
		WORLD_TEST(test_peermem),    WORLD_TEST(test_perftest), WORLD_TEST(test_bounds),
	};

	return cmocka_run_group_tests_name("trace-log", tests, NULL, NULL);
}
