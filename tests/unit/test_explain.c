/* SPDX-License-Identifier: Apache-2.0 */
#include "facts_text.h"

#include <dirent.h>
#include <unistd.h>

#include "judge/explain.h"
#include "judge/textfile.h"
#include "base/compiler.h"

static const char shipped[] = PEERPATH_SOURCE_DATADIR "/explain";
static const char miss_mark[] = "--- near miss\n";

struct reading {
	struct pp_explain *e;
	struct pp_explanation x;
};

static int load(void **state)
{
	struct pp_known_set *known = NULL;
	struct pp_error err = {0};

	if (pp_known_load(shipped, &known, &err))
		fail_msg("%s", err.text);
	*state = known;
	return 0;
}

static int unload(void **state)
{
	pp_known_free(*state);
	return 0;
}

static void explain_n(const struct pp_known_set *known, const char *text, size_t len,
		      const struct pp_facts *facts, struct reading *r)
{
	assert_int_equal(pp_explain_new(known, &r->e), 0);
	pp_explain_push(r->e, text, len);
	assert_int_equal(pp_explain_finish(r->e, facts, &r->x), 0);
}

static void explain(const struct pp_known_set *known, const char *text,
		    const struct pp_facts *facts, struct reading *r)
{
	explain_n(known, text, strlen(text), facts, r);
}

static void done(struct reading *r)
{
	pp_explanation_done(&r->x);
	pp_explain_free(r->e);
}

static const struct pp_diagnosis *find(const struct reading *r, const char *id)
{
	for (size_t i = 0; i < r->x.n; i++)
		if (!strcmp(r->x.list[i].known->rule.id, id))
			return &r->x.list[i];
	return NULL;
}

static const char *first(const struct reading *r)
{
	return r->x.n ? r->x.list[0].known->rule.id : "(none)";
}

/* One file a rule: the rule stands first; after the mark, a text in which it must not stand. */
static void check_fixture(const struct pp_known_set *known, const char *dir, const char *name)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(65536);
	struct pp_error err = {0};
	char path[1024], id[128];
	struct reading r;
	char *miss;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)snprintf(id, sizeof(id), "%.*s", (int)(strlen(name) - 4), name);
	if (pp_textfile_read(path, &text, &err))
		fail_msg("%s", err.text);
	if (!pp_known_find(known, id))
		fail_msg("%s: there is no such rule", name);
	miss = strstr(text.data, miss_mark);
	if (!miss)
		fail_msg("%s has no near miss", name);
	explain_n(known, text.data, (size_t)(miss - text.data), NULL, &r);
	if (strcmp(first(&r), id) != 0)
		fail_msg("%s: %s stands first", name, first(&r));
	done(&r);
	explain(known, miss + strlen(miss_mark), NULL, &r);
	if (find(&r, id))
		fail_msg("%s: found in its near miss", name);
	done(&r);
}

static void test_fixtures(void **state)
{
	const char *top = getenv("PP_TEST_DIR");
	unsigned int n = 0;
	char dir[512];
	struct dirent *e;
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%s/../fixtures/explain", top ? top : ".");
	d = opendir(dir);
	assert_non_null(d);
	while ((e = readdir(d))) {
		if (strlen(e->d_name) < 5 || strcmp(e->d_name + strlen(e->d_name) - 4, ".txt") != 0)
			continue;
		check_fixture(*state, dir, e->d_name);
		n++;
	}
	(void)closedir(d);
	assert_true(n >= 380);
}

/* These never stand first by the text alone; test_facts_choose(), test_errno_table.c reach them. */
static const char *const without_fixture[] = {"gid-index-fixed",    "peermem-not-registered",
					      "devx-umem-failed",   "odp-unsupported-mlx5",
					      "peermem-perhaps",    "dmabuf-not-mapped",
					      "device-out-of-keys", "dmabuf-software-device"};

static void test_every_rule_has_a_fixture(void **state)
{
	const struct pp_known_set *known = *state;
	const char *top = getenv("PP_TEST_DIR");
	char path[1024];

	for (size_t i = 0; i < known->n; i++) {
		const struct pp_known *k = &known->list[i];
		bool second = false;

		if (k->kind == PP_KNOWN_FORMAT || k->kind == PP_KNOWN_ALARM)
			continue;
		for (size_t n = 0; n < PP_ARRAY_LEN(without_fixture); n++)
			second |= !strcmp(k->rule.id, without_fixture[n]);
		(void)snprintf(path, sizeof(path), "%s/../fixtures/explain/%s.txt", top ? top : ".",
			       k->rule.id);
		if (!second && access(path, R_OK))
			fail_msg("no fixture: %s", path);
	}
}

/* Second by the text alone, first when facts or the rest of the text speak for it. */
static void test_second_by_design(void **state)
{
	static const char umem[] = "mlx5dv_devx_umem_reg failed\n";
	static const char dmabuf[] = "ibv_reg_dmabuf_mr failed: Operation not supported\n";
	static const char index[] = "NCCL_IB_GID_INDEX=3\nibv_modify_qp failed with error "
				    "Connection timed out\n";
	const struct pp_diagnosis *odp;
	struct machine m;
	struct reading r;

	machine_init(&m);
	machine_set(&m, "nv_peer_mem.loaded", "no");
	explain(*state, umem, &m.facts, &r);
	assert_string_equal(first(&r), "devx-umem-failed");
	done(&r);
	machine_set(&m, "kernel.config.infiniband_odp", "n");
	explain(*state, dmabuf, &m.facts, &r);
	odp = find(&r, "odp-unsupported-mlx5");
	assert_true(odp && odp->certainty == PP_LIKELY);
	done(&r);
	explain(*state, index, NULL, &r);
	assert_non_null(find(&r, "gid-index-fixed"));
	done(&r);
	explain(*state, "ibv_reg_mr failed [error code: 14]\n", NULL, &r);
	assert_string_equal(first(&r), "mr-range-not-mapped");
	assert_int_equal(r.x.list[0].certainty, PP_LIKELY);
	assert_non_null(find(&r, "peermem-perhaps"));
	assert_null(find(&r, "peermem-missing"));
	done(&r);
	/* Without a word of GPU memory a missing module proves nothing. */
	machine_set(&m, "nvidia_peermem.loaded", "no");
	explain(*state, "ibv_reg_mr failed [error code: 14]\n", &m.facts, &r);
	assert_string_equal(first(&r), "mr-range-not-mapped");
	odp = find(&r, "peermem-perhaps");
	assert_true(odp && odp->certainty == PP_POSSIBLE);
	done(&r);
	explain(*state, "ibv_reg_mr of CUDA memory failed [error code: 14]\n", NULL, &r);
	assert_null(find(&r, "mr-range-not-mapped"));
	done(&r);
	machine_done(&m);
}

/*
 * Lines that differ only in numbers of which no rule speaks are read once; the others are not. The
 * same numbers at other places are another line.
 */
static void test_lines_of_one_shape(void **state)
{
	static const char crossed[] = "n1 [14] NCCL WARN Call to ibv_reg_mr failed with errno 22\n"
				      "n1 [22] NCCL WARN Call to ibv_reg_mr failed with errno 14\n"
				      "n1 [14] NCCL WARN Call to ibv_reg_mr failed with errno 12\n";
	const struct pp_diagnosis *d;
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct reading r;

	explain(*state, crossed, NULL, &r);
	d = find(&r, "peermem-missing");
	assert_true(d && d->evidence[0]->line == 2 && d->evidence[0]->times == 1);
	d = find(&r, "memlock-small");
	assert_true(d && d->evidence[0]->line == 3);
	done(&r);
	for (unsigned int i = 0; i < 3000; i++)
		pp_buf_printf(&text,
			      "n%u:%u [0] NCCL WARN Call to ibv_reg_mr failed with errno 14\n", i,
			      100000 + i);
	explain_n(*state, text.data, text.len, NULL, &r);
	d = find(&r, "peermem-missing");
	assert_true(d && d->evidence[0]->line == 1 && d->evidence[0]->times == 3000);
	done(&r);
}

/* P1 to P15, each the problem of a rule that has a fixture. */
static void test_every_problem_has_a_fixture(void **state)
{
	const struct pp_known_set *known = *state;
	const char *top = getenv("PP_TEST_DIR");
	char path[1024], want[8];

	for (unsigned int p = 1; p <= 15; p++) {
		bool found = false;

		(void)snprintf(want, sizeof(want), "P%u", p);
		for (size_t i = 0; i < known->n && !found; i++) {
			const struct pp_rule *rule = &known->list[i].rule;
			const char *at = rule->problem ? strstr(rule->problem, want) : NULL;
			FILE *f;

			if (!at || (at[strlen(want)] && at[strlen(want)] != ' '))
				continue;
			(void)snprintf(path, sizeof(path), "%s/../fixtures/explain/%s.txt",
				       top ? top : ".", rule->id);
			f = fopen(path, "r");
			found = f != NULL;
			if (f)
				(void)fclose(f);
		}
		if (!found)
			fail_msg("no fixture for %s", want);
	}
}

static const char efault[] =
	"n1:1:2 [0] NCCL WARN Call to ibv_reg_mr failed with error Bad address\n";

/* One errno, five causes: the facts of the node choose. */
static void test_facts_choose(void **state)
{
	static const struct {
		const char *where[3], *value[3], *rule;
		enum pp_certainty certainty;
	} rows[] = {
		{{"nvidia_peermem.loaded", "nv_peer_mem.loaded"},
		 {"no", "no"},
		 "peermem-missing",
		 PP_LIKELY},
		{{"nvidia_peermem.loaded", "nvidia_peermem.client"},
		 {"yes", "no"},
		 "peermem-not-registered",
		 PP_LIKELY},
		{{"nvidia_peermem.loaded", "0000:01:00.0 gpu.bar1_free_bytes"},
		 {"yes", "1048576"},
		 "bar1-exhausted-peermem",
		 PP_LIKELY},
		{{"nvidia_peermem.loaded", "0000:01:00.0 gpu.name"},
		 {"yes", "NVIDIA GeForce RTX 4090"},
		 "geforce-gpu",
		 PP_LIKELY},
		{{"nvidia_peermem.loaded", "torch.alloc_conf"},
		 {"yes", "expandable_segments:True"},
		 "vmm-memory",
		 PP_LIKELY},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine m;
		struct reading r;

		machine_init(&m);
		for (size_t k = 0; k < 3 && rows[i].where[k]; k++)
			machine_set(&m, rows[i].where[k], rows[i].value[k]);
		explain(*state, efault, &m.facts, &r);
		assert_string_equal(first(&r), rows[i].rule);
		assert_int_equal(r.x.list[0].certainty, rows[i].certainty);
		done(&r);
		machine_done(&m);
	}
}

/* What is not known keeps a cause open; it never makes one more certain. */
static void test_unknown_keeps_open(void **state)
{
	struct machine m;
	struct reading r;

	machine_init(&m);
	machine_set(&m, "nvidia_peermem.loaded", "? permission denied");
	explain(*state, efault, &m.facts, &r);
	assert_string_equal(first(&r), "peermem-missing");
	assert_int_equal(r.x.list[0].certainty, PP_LIKELY);
	assert_int_equal(r.x.list[0].facts, PP_OPEN);
	done(&r);
	machine_done(&m);
}

/*
 * The limit of this process is unlimited: it speaks against memlock where this process stands for
 * the failing one, and only weakens it else (a job has slurmd's limit, not the login shell's).
 */
static void test_excludes(void **state)
{
	static const char text[] = "ibv_reg_mr failed with error Cannot allocate memory\n";
	const struct pp_diagnosis *d;
	struct machine m;
	struct reading r;

	machine_init(&m);
	explain(*state, text, &m.facts, &r);
	assert_string_equal(first(&r), "memlock-small");
	done(&r);
	machine_set(&m, "limits.memlock_bytes", "-1");
	explain(*state, text, &m.facts, &r);
	d = find(&r, "memlock-small");
	assert_true(d && d->certainty == PP_POSSIBLE);
	done(&r);
	assert_int_equal(pp_explain_new(*state, &r.e), 0);
	pp_explain_here(r.e);
	pp_explain_push(r.e, text, strlen(text));
	assert_int_equal(pp_explain_finish(r.e, &m.facts, &r.x), 0);
	assert_null(find(&r, "memlock-small"));
	done(&r);
	machine_done(&m);
}

/* A kernel log that is whole and has no Xid is of this boot; the text may be of the one before. */
static void test_old_text(void **state)
{
	static const char text[] = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n";
	struct machine m;
	struct reading r;

	machine_init(&m);
	machine_set(&m, "kmsg.xid", "31");
	explain(*state, text, &m.facts, &r);
	assert_string_equal(first(&r), "xid-79");
	done(&r);
	machine_done(&m);
}

/* A provider of a NIC that this node has is no harmless left-over. */
static void test_harmless_unless(void **state)
{
	static const char text[] =
		"libibverbs: Warning: couldn't load driver 'libcxgb4-rdmav34.so'\n";
	struct machine m;
	struct reading r;

	machine_init(&m);
	machine_set(&m, "0000:02:00.0 hca.driver", "mlx5_core");
	explain(*state, text, &m.facts, &r);
	assert_string_equal(first(&r), "leftover-provider");
	assert_int_equal(pp_explanation_exit(&r.x), PP_EXIT_PASS);
	done(&r);
	machine_set(&m, "0000:03:00.0 hca.driver", "cxgb4");
	explain(*state, text, &m.facts, &r);
	assert_null(find(&r, "leftover-provider"));
	done(&r);
	machine_done(&m);
}

/* 12 on one rank, then 5 on all: the flush is a consequence, wherever its line stands. */
static void test_consequence_stands_last(void **state)
{
	static const char text[] =
		"[2026-01-01 10:00:09] n2:1:2 [0] NCCL WARN NET/IB: Got completion from peer x "
		"with status=5 opcode=0 len=0 vendor err 249\n"
		"[2026-01-01 10:00:02] n1:1:2 [0] NCCL WARN NET/IB: Got completion from peer y "
		"with status=12 opcode=0 len=0 vendor err 129\n";
	const struct pp_diagnosis *flush;
	struct reading r;

	explain(*state, text, NULL, &r);
	assert_string_equal(first(&r), "wc-retry-exceeded");
	flush = find(&r, "wc-flush");
	assert_true(flush && flush->caused && !strcmp(flush->caused->rule.id, "wc-retry-exceeded"));
	done(&r);
}

/*
 * How a job runs is not why it failed: a log that begins with sockets and ends with a timeout is
 * about the timeout, and one that holds nothing else is about the sockets.
 */
static void test_state_stands_behind(void **state)
{
	static const char sockets[] = "n1:1:2 [0] NCCL INFO NET/IB : No device found.\n";
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct reading r;

	explain(*state, sockets, NULL, &r);
	assert_string_equal(first(&r), "nccl-no-device");
	assert_int_equal(pp_explanation_exit(&r.x), PP_EXIT_BAD);
	done(&r);
	pp_buf_printf(&text,
		      "%s[Rank 1] Watchdog caught collective operation timeout: "
		      "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9)\n",
		      sockets);
	explain_n(*state, text.data, text.len, NULL, &r);
	assert_string_equal(first(&r), "rank-out-of-step");
	assert_non_null(find(&r, "nccl-no-device"));
	done(&r);
}

/* Where ranks wait, by the watchdog's own lines: an end of a transfer is no difference. */
static void test_steps(void **state)
{
	static const struct {
		const char *one, *other;
		bool differ;
	} rows[] = {
		{"SeqNum=7, OpType=ALLREDUCE, NumelIn=8", "SeqNum=7, OpType=ALLREDUCE, NumelIn=8",
		 false},
		{"SeqNum=7, OpType=ALLREDUCE, NumelIn=8", "SeqNum=8, OpType=ALLREDUCE, NumelIn=8",
		 true},
		{"SeqNum=7, OpType=ALLREDUCE, NumelIn=8", "SeqNum=7, OpType=ALLREDUCE, NumelIn=9",
		 true},
		{"OpType=ALLREDUCE, Timeout(ms)=1", "OpType=BROADCAST, Timeout(ms)=1", true},
		{"SeqNum=7, OpType=GATHER, NumelIn=8", "SeqNum=7, OpType=GATHER, NumelIn=0", false},
		{"SeqNum=7, OpType=SEND, NumelIn=8", "SeqNum=9, OpType=RECV, NumelIn=8", false},
	};
	char text[512];
	struct reading r;

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		for (unsigned int rank = 0; rank < 2; rank++) {
			(void)snprintf(text, sizeof(text),
				       "[Rank %u] Watchdog caught collective operation timeout: "
				       "WorkNCCL(%s)\n[Rank 1] Watchdog caught collective "
				       "operation timeout: WorkNCCL(%s)\n",
				       rank, rows[i].one, rows[i].other);
			explain(*state, text, NULL, &r);
			/* Twice the same rank: its second line is of another group. */
			if ((find(&r, "collectives-differ") != NULL) !=
			    (rows[i].differ && rank == 0))
				fail_msg("row %zu, rank %u", i, rank);
			done(&r);
		}
	}
}

/* Two causes by the time in their lines, not by their place in a merged file. */
static void test_first_in_time(void **state)
{
	static const char text[] =
		"[2026-01-01 10:00:09] n2:1:2 [0] NCCL WARN Call to ibv_reg_mr failed with error "
		"Bad address\n"
		"[2026-01-01 10:00:02] n1:1:2 [0] NCCL WARN Call to ibv_create_cq failed with "
		"error Cannot allocate memory\n";
	struct reading r;

	explain(*state, text, NULL, &r);
	assert_string_equal(first(&r), "memlock-small");
	done(&r);
}

static void expect_exit(const struct pp_known_set *known, const char *text, enum pp_exit code)
{
	struct reading r;

	explain(known, text, NULL, &r);
	if (pp_explanation_exit(&r.x) != code)
		fail_msg("exit %d, want %d: %s", (int)pp_explanation_exit(&r.x), (int)code, text);
	done(&r);
}

static void test_exit(void **state)
{
	expect_exit(*state, "n:1:2 [0] NCCL INFO Using network IB\n", PP_EXIT_PASS);
	expect_exit(*state, "n:1:2 [0] NCCL WARN Something that nobody has seen\n",
		    PP_EXIT_UNKNOWN);
	expect_exit(*state, "It was the best of times, it was the worst of times.\n",
		    PP_EXIT_UNKNOWN);
	expect_exit(*state, "", PP_EXIT_UNKNOWN);
	expect_exit(*state, efault, PP_EXIT_BAD);
}

/* The same line in every shape that files have. */
static void test_shapes(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
#define SHAPE(s) {s, sizeof(s) - 1}
		SHAPE("NCCL WARN Call to ibv_reg_mr failed with error Bad address"),
		SHAPE("NCCL WARN Call to ibv_reg_mr failed with error Bad address\r\n"),
		SHAPE("\033[1;31mNCCL WARN\033[0m Call to ibv_reg_mr failed with \033[4merror Bad"
		      "\033[0m address\n"),
		SHAPE("progress 1%\rprogress 2%\rNCCL WARN Call to ibv_reg_mr failed: EFAULT\r"),
		SHAPE("\0\0\377\376 NCCL WARN Call to ibv_reg_mr failed, errno=14\0\n"),
		SHAPE("\033]0;title\007[rank3]: ibv_reg_mr of GPU returned NULL, errno: 14\n"),
		SHAPE("ncCl wArN caLl to ibv_reg_mr   faiLed    with   error   bad\taddress"),
#undef SHAPE
	};
	struct reading r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		explain_n(*state, rows[i].text, rows[i].len, NULL, &r);
		if (strcmp(first(&r), "peermem-missing") != 0)
			fail_msg("shape %zu: %s", i, first(&r));
		done(&r);
	}
}

/* A line of 10 MB costs no memory of its size, and what stands in its middle is found. */
static void test_long_line(void **state)
{
	struct pp_explain *e = NULL;
	struct pp_explanation x;
	char block[4096];

	memset(block, 'x', sizeof(block));
	for (size_t i = 60; i < sizeof(block); i += 61)
		block[i] = ' ';
	assert_int_equal(pp_explain_new(*state, &e), 0);
	for (unsigned int i = 0; i < 2560; i++) {
		pp_explain_push(e, block, sizeof(block));
		if (i == 1280)
			pp_explain_push(e, " GPU ibv_reg_mr failed: Bad address ", 36);
	}
	assert_int_equal(pp_explain_finish(e, NULL, &x), 0);
	assert_int_equal(x.lines, 1);
	assert_true(x.n > 0);
	assert_string_equal(x.list[0].known->rule.id, "peermem-missing");
	pp_explanation_done(&x);
	pp_explain_free(e);
}

/* A field is its value, not its digits. */
static void test_fields(void **state)
{
	static const struct {
		const char *text;
		enum pp_field field;
		int64_t value;
	} rows[] = {
		{"RegisterMemory failed, errno:22 (Invalid argument)", PP_FIELD_ERRNO, 22},
		{"RC: -22, Error: Invalid argument", PP_FIELD_ERRNO, 22},
		{"Couldn't allocate MR with error=14", PP_FIELD_ERRNO, 14},
		{"Bad address [14]", PP_FIELD_ERRNO, 14},
		{"failed with error Unknown error 524", PP_FIELD_ERRNO, 524},
		{"returned -ENOMEM", PP_FIELD_ERRNO, 12},
		{"Got completion from peer x with error 12, opcode 1, vendor err 129",
		 PP_FIELD_STATUS, 12},
		{"Got completion from peer x with error 12, opcode 1, vendor err 129",
		 PP_FIELD_VENDOR, 129},
		{"Failed status 4: wr_id 0 syndrom 0x51", PP_FIELD_STATUS, 4},
		{"Failed status 4: wr_id 0 syndrom 0x51", PP_FIELD_VENDOR, 0x51},
		{"status=IBV_WC_RNR_RETRY_EXC_ERR(13)", PP_FIELD_STATUS, 13},
		{"Transport retry count exceeded (synd 0x15 vend 0x81)", PP_FIELD_VENDOR, 0x81},
		{"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>'", PP_FIELD_XID, 79},
	};
	struct pp_fields *f = calloc(1, sizeof(*f));

	(void)state;
	assert_non_null(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pp_fields_read(rows[i].text, strlen(rows[i].text), f);
		if (f->n[rows[i].field] != 1 || f->numbers[rows[i].field][0] != rows[i].value)
			fail_msg("%s of '%s': %u values, first %d", pp_field_name(rows[i].field),
				 rows[i].text, f->n[rows[i].field],
				 (int)f->numbers[rows[i].field][0]);
	}
	/* In a line about a completion the number behind "error" is no errno. */
	pp_fields_read("Got completion with error 12", 28, f);
	assert_int_equal(f->n[PP_FIELD_ERRNO], 0);
	pp_fields_read("NCCL_IB_HCA=mlx5_0,mlx5_1 x", 27, f);
	assert_string_equal(f->words[PP_FIELD_ENV][0], "NCCL_IB_HCA:mlx5_0");
	free(f);
}

static bool has_word(const struct pp_fields *f, enum pp_field which, const char *word)
{
	for (unsigned int i = 0; i < f->n[which]; i++)
		if (!strcmp(f->words[which][i], word))
			return true;
	return false;
}

/* What was attempted, and on whose device, in the wording of several tools. */
static void test_operations(void **state)
{
	static const struct {
		const char *text, *op, *provider; /* NULL: none */
	} rows[] = {
		{"ibv_create_qp failed", "create_qp", NULL},
		{"Couldn't create QP", "create_qp", NULL},
		{"failed to create extended queue pair (QP) on rdmap79s0", "create_qp", "efa"},
		{"UCX ERROR ibv_create_cq(cqe=4096) failed", "create_cq", NULL},
		{"Failed to create a completion queue (CQ)", "create_cq", NULL},
		{"Failed to register memory 0x7f0 on mlx5_3", "reg_mr", "mlx5"},
		{"unable to register DMA-BUF memory region", "reg_dmabuf", NULL},
		{"ncclIbRegMr failed on bnxt_re0", "reg_mr", "bnxt_re"},
		{"failed to transition QP to RTR, mlx5_bond_0", "modify_qp", "mlx5"},
		{"rdma_create_event_channel fail", "open_cm", NULL},
		{"fi_getinfo: provider efa", "getinfo", "efa"},
		{"the registrar was created in 1984", NULL, NULL},
		{"EFAULT", NULL, NULL},
	};
	struct pp_fields *f = calloc(1, sizeof(*f));

	(void)state;
	assert_non_null(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pp_fields_read(rows[i].text, strlen(rows[i].text), f);
		if (rows[i].op ? !has_word(f, PP_FIELD_OP, rows[i].op) : f->n[PP_FIELD_OP] > 0)
			fail_msg("op of '%s'", rows[i].text);
		if (rows[i].provider ? !has_word(f, PP_FIELD_PROVIDER, rows[i].provider)
				     : f->n[PP_FIELD_PROVIDER] > 0)
			fail_msg("provider of '%s'", rows[i].text);
	}
	free(f);
}

/* A fault of two versions that meet: each is read from the text, else from the node. */
static void test_versions(void **state)
{
	static const char rules[] =
		"[meet]\ntitle = t\nproblem = -\nmatch = \"it broke\"\n"
		"versions = nccl >= 2.19, efa-installer < 1.29\nconfirmed = certain\n"
		"cause = c\ndecide = d\nfix = f\nnext = true\nsource = https://x\nreviewed = "
		"2026-11-29\n";
	static const struct {
		const char *text, *node; /* node: nccl.version there; NULL no facts */
		bool found;
		enum pp_certainty certainty;
	} rows[] = {
		{"it broke\n", NULL, true, PP_POSSIBLE},
		{"NCCL version 2.20.5+cuda12.4\nit broke\n", NULL, true, PP_POSSIBLE},
		{"NCCL version 2.20.5+cuda12.4\nEFA installer version: 1.28.0\nit broke\n", NULL,
		 true, PP_CERTAIN},
		{"NCCL version 2.18.6+cuda12.1\nEFA installer version: 1.28.0\nit broke\n", NULL,
		 false, PP_POSSIBLE},
		{"NCCL version 2.20.5\nEFA installer version: 1.30.0\nit broke\n", NULL, false,
		 PP_POSSIBLE},
		{"EFA installer version: 1.28.0\nit broke\n", "2.21.5", true, PP_CERTAIN},
		/* The library path here is not the job's. */
		{"EFA installer version: 1.28.0\nit broke\n", "2.18.6", true, PP_POSSIBLE},
		/* Two ends, of which one lies outside. */
		{"NCCL version 2.20.5\nNCCL version 2.18.6\nEFA installer version: 1.28.0\n"
		 "it broke\n",
		 NULL, true, PP_POSSIBLE},
	};
	struct pp_known_set *known = NULL;
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_known_new(&known), 0);
	assert_int_equal(pp_known_parse(known, "test", rules, strlen(rules), &err), 0);
	assert_int_equal(pp_known_finish(known, &err), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine m;
		struct reading r;

		machine_init(&m);
		if (rows[i].node)
			machine_set(&m, "nccl.version", rows[i].node);
		explain(known, rows[i].text, rows[i].node ? &m.facts : NULL, &r);
		if ((r.x.n > 0) != rows[i].found ||
		    (r.x.n && r.x.list[0].certainty != rows[i].certainty))
			fail_msg("row %zu: %zu, certainty %d", i, r.x.n,
				 r.x.n ? (int)r.x.list[0].certainty : -1);
		done(&r);
		machine_done(&m);
	}
	pp_known_free(known);
}

/* What only several lines say together. */
static void test_measured(void **state)
{
	static const char loss[] = "rdma statistic show\n"
				   "link mlx5_0/1 rx_write_requests 5 out_of_sequence 10\n"
				   "link mlx5_1/1 rx_write_requests 5 out_of_sequence 90\n"
				   "link mlx5_0/1 rx_write_requests 9 out_of_sequence 4711\n";
	static const char quiet[] = "link mlx5_0/1 out_of_sequence 10\n"
				    "link mlx5_1/1 out_of_sequence 90\n"
				    "link mlx5_0/1 out_of_sequence 10\n";
	static const char ratio[] =
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
		" 65536      5000             196.50             196.30             0.374\n"
		"---------------------------------------------------------------\n"
		"initializing CUDA\n"
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
		" 65536      5000             92.50             %s             0.374\n"
		"---------------------------------------------------------------\n";
	char text[1024];
	struct reading r;

	explain(*state, loss, NULL, &r);
	assert_string_equal(first(&r), "pfc-not-configured");
	done(&r);
	explain(*state, quiet, NULL, &r);
	assert_null(find(&r, "pfc-not-configured"));
	done(&r);
	(void)snprintf(text, sizeof(text), ratio, "92.11");
	explain(*state, text, NULL, &r);
	assert_string_equal(first(&r), "silent-far-nic");
	assert_true(strstr(r.x.list[0].evidence[0]->text, "0.47") != NULL);
	done(&r);
	(void)snprintf(text, sizeof(text), ratio, "190.0");
	explain(*state, text, NULL, &r);
	assert_null(find(&r, "silent-far-nic"));
	done(&r);
}

/* A last resort speaks only of lines that nothing else reads. */
static void test_last_resort(void **state)
{
	struct reading r;

	explain(*state, "NCCL WARN NET/IB : an odd thing\n", NULL, &r);
	assert_string_equal(first(&r), "area-nccl-net");
	assert_int_equal(r.x.list[0].certainty, PP_POSSIBLE);
	done(&r);
	explain(*state, "NCCL WARN NET/IB : Got async event : port error\n", NULL, &r);
	assert_null(find(&r, "area-nccl-net"));
	done(&r);
	explain(*state,
		"NCCL INFO ok\nNCCL WARN Call to ibv_create_cq failed with error "
		"Cannot allocate memory\n",
		NULL, &r);
	assert_string_equal(first(&r), "memlock-small");
	assert_null(find(&r, "area-nccl-net"));
	done(&r);
}

/* NCCL's last warning as PyTorch and XLA repeat it: without its head. */
static void test_repeated_warning(void **state)
{
	static const struct {
		const char *text, *rule;
	} rows[] = {
		{"[rank1]: Last error:\n[rank1]: socketStartConnect: Connect to 192.0.2.1<5> "
		 "failed : "
		 "Connection refused\n",
		 "nccl-bootstrap-interface"},
		{"Last error: Duplicate GPU detected : rank 0 and rank 1\n", "nccl-duplicate-gpu"},
		{"NCCL operation failed. Last NCCL warning(error) log entry (may be unrelated) "
		 "'Net : "
		 "Call to recv from 192.0.2.2<4> failed : Connection timed out'.\n",
		 "nccl-link-lost"},
		/* It was empty: what follows is something else. */
		{"ncclSystemError: System call (e.g. socket, malloc) or external library call "
		 "failed.\nLast error:\n\nConnect to it\n",
		 "nccl-system-error"},
		{"ncclSystemError: System call (e.g. socket, malloc) or external library call "
		 "failed.\nLast error:\nException raised from checkForNCCLErrors\n",
		 "nccl-system-error"},
	};
	struct reading r;

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		explain(*state, rows[i].text, NULL, &r);
		if (strcmp(first(&r), rows[i].rule) != 0)
			fail_msg("row %zu: %s", i, first(&r));
		done(&r);
	}
	/* Shown as it stands in the text. */
	explain(*state, rows[1].text, NULL, &r);
	assert_memory_equal(r.x.list[0].evidence[0]->text, "Last error:", 11);
	done(&r);
}

/* What counts is quoted, wherever it stands in the line. */
static void test_quoted_part(void **state)
{
	static char text[4000];
	struct reading r;

	memset(text, 'x', sizeof(text));
	(void)snprintf(text + 3000, 100, " ibv_reg_mr() failed: GPU, Bad address");
	explain(*state, text, NULL, &r);
	assert_string_equal(first(&r), "peermem-missing");
	assert_non_null(strstr(r.x.list[0].evidence[0]->text, "ibv_reg_mr() failed"));
	assert_memory_equal(r.x.list[0].evidence[0]->text, "... x", 5);
	done(&r);
}

/* What programs print while they start, run and end well. */
static void test_clean_training(void **state)
{
	static const char text[] =
		"W torch/distributed/run.py:757] Setting OMP_NUM_THREADS environment variable for "
		"each "
		"process to be 1 in default\n"
		"[WARNING] [runner.py:196:fetch_hostfile] Unable to find hostfile, will proceed "
		"with "
		"training with local resources only.\n"
		"[INFO] [launch.py:162:main] dist_world_size=8\n"
		"Using /root/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...\n"
		"Warning: find_unused_parameters=True was specified in DDP constructor, but did "
		"not find "
		"any unused parameters in the forward pass.\n"
		"INFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier for "
		"key:store_based_barrier_key:1 with 2 nodes.\n"
		"INFO worker.py:1642 -- Started a local Ray instance.\n"
		"INFO pynccl.py:63] vLLM is using nccl==2.20.5\n"
		"INFO GPU KV cache size: 120,000 tokens\n"
		"WARNING utils.py:587] Port 8000 is already in use, trying port 8001\n"
		"Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode because there is "
		"not "
		"enough KV cache space.\n"
		"0: NVIDIA H100 80GB HBM3 compute capability 9.0\n"
		"Running tokenizer on dataset: 100%|####| 2000/2000 [00:05<00:00, 400 examples/s]\n"
		"{'loss': 0.9225, 'learning_rate': 6.5e-06, 'epoch': 0.03}\n"
		"Saving model checkpoint to /out/checkpoint-500\n"
		"> initialized tensor model parallel with size 2\n"
		"Connecting to JAX distributed service on 192.0.2.1:1234\n"
		"[INFO] [launch.py:347:main] Process 4711 exits successfully.\n";
	struct reading r;

	explain(*state, text, NULL, &r);
	assert_string_equal(first(&r), "(none)");
	assert_int_equal(r.x.unexplained_lines, 0);
	done(&r);
}

static void refuses(const char *text, const char *reason)
{
	struct pp_known_set *k = NULL;
	struct pp_error err = {0};
	int r;

	assert_int_equal(pp_known_new(&k), 0);
	r = pp_known_parse(k, "test", text, strlen(text), &err);
	if (!r)
		r = pp_known_finish(k, &err);
	if (!r || !strstr(err.text, reason))
		fail_msg("'%s' does not say '%s'", err.text, reason);
	pp_known_free(k);
}

static void test_bad_rules(void **state)
{
	(void)state;
	refuses("[a]\nkind = alarm\nmatch = \"x\" nonsense\n", "expected \"text\" or field=value");
	refuses("[a]\nkind = alarm\nmatch = !\"only what is not\"\n", "no term says");
	refuses("[a]\nkind = alarm\nmatch = errno=EWRONG\n", "is no value of 'errno'");
	refuses("[a]\nkind = alarm\nmtach = \"x\"\n", "did you mean 'match'");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\nbeats = b\n", "there is no rule 'b'");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\nversions = ncl > 2\n", "did you mean 'nccl'");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\nversions = nccl 2\n", "component >= version");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\nversions = nccl < new\n", "is no version");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\nlast = no\n", "is no value of 'last'");
	refuses("[a]\nmatch = \"x\"\n", "'title' is missing");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\nrequires = nvidia.loadde == no\n",
		"did you mean 'nvidia.loaded'");
	refuses("[a]\nkind = alarm\nmatch = \"x\"\n[a]\nkind = alarm\nmatch = \"y\"\n", "already");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_every_rule_has_a_fixture),
		cmocka_unit_test(test_second_by_design),
		cmocka_unit_test(test_lines_of_one_shape),
		cmocka_unit_test(test_every_problem_has_a_fixture),
		cmocka_unit_test(test_facts_choose),
		cmocka_unit_test(test_unknown_keeps_open),
		cmocka_unit_test(test_excludes),
		cmocka_unit_test(test_old_text),
		cmocka_unit_test(test_harmless_unless),
		cmocka_unit_test(test_consequence_stands_last),
		cmocka_unit_test(test_state_stands_behind),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_first_in_time),
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_last_resort),
		cmocka_unit_test(test_repeated_warning),
		cmocka_unit_test(test_clean_training),
		cmocka_unit_test(test_quoted_part),
		cmocka_unit_test(test_bad_rules),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
