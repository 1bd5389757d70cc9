/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3 on made runs: what each control must do, row by row (DESIGN of the controls; NCCL's rules
 * from its sources: GDR off by level takes the marker from both ends, NCCL_DMABUF_ENABLE=0 leaves
 * peermem, NCCL_NET_GDR_READ=0 speaks to senders alone; all_reduce moves 2(n-1)/n bytes a rank).
 * What was taken away makes no claim stronger, whatever it is.
 */
#include "made_run.h"

#include <errno.h>

#include "judge/control.h"
#include "judge/gate_rows.h"

struct job {
	struct pp_nccl_run *arm[PP_NCCL_ARMS];
};

static void stage(struct pp_nccl_run *r)
{
	r->judgement.path = PP_NCCL_PATH_STAGED;
	r->judgement.claim_gdr = r->judgement.claim_mechanism = PP_NCCL_REFUTED;
	r->judgement.mechanism = PP_NCCL_MECHANISM_NONE;
	r->judgement.ends = (struct pp_nccl_ends){.staged = 8, .staged_sends = 4};
	r->speed.large_busbw_gbps = 12.4; /* log 12 of the reference: host-staged, line rate */
	r->speed.small_us = 30;
	for (unsigned int i = 0; i < r->n_nodes; i++) {
		struct pp_nccl_run_node *n = &r->node[i];

		memset(n->library.made, 0, sizeof(n->library.made));
		memset(n->kernel.made, 0, sizeof(n->kernel.made));
		n->library.made[PP_REGISTERED_HOST] = n->kernel.made[PP_REGISTERED_HOST] = 22;
		n->cpu_seconds = 45;
		/* written once and read once on each node */
		n->traffic.host.read = n->traffic.host.written = 200e9;
	}
}

/* NCCL_NET_GDR_READ=0: senders from host memory; receivers' buffers stay on the GPU. */
static void stage_sends(struct pp_nccl_run *r)
{
	r->judgement.path = PP_NCCL_PATH_MIXED;
	r->judgement.claim_gdr = PP_NCCL_REFUTED;
	r->judgement.ends = (struct pp_nccl_ends){.gdr = 4, .staged = 4, .staged_sends = 4};
	for (unsigned int i = 0; i < r->n_nodes; i++) {
		r->node[i].library.made[PP_REGISTERED_DMABUF] = 6;
		r->node[i].kernel.made[PP_REGISTERED_DMABUF] = 6;
	}
}

static void by_way(struct pp_nccl_run *r, enum pp_registration way, uint64_t n)
{
	for (unsigned int i = 0; i < r->n_nodes; i++) {
		struct pp_nccl_run_node *node = &r->node[i];

		node->library.made[PP_REGISTERED_DMABUF] = node->kernel.made[PP_REGISTERED_DMABUF] =
			0;
		node->library.made[way] = node->kernel.made[way] = n;
	}
}

/* Two nodes by DMA-BUF without peermem, all controls as they must be. */
static struct job good(void)
{
	struct job j;

	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		j.arm[i] = made_run((enum pp_nccl_arm)i);
	stage(j.arm[PP_NCCL_ARM_A]);
	stage(j.arm[PP_NCCL_ARM_B]);
	stage_sends(j.arm[PP_NCCL_ARM_C]);
	return j;
}

static void done(struct job *j)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		j->arm[i] = pp_nccl_run_free(j->arm[i]);
}

/* The gate is large: one, judged anew. */
static struct pp_gate_library gate;

static void judge(const struct job *j)
{
	struct pp_error err = {0};

	assert_int_equal(
		pp_gate_library_judge((const struct pp_nccl_run *const *)j->arm, &gate, &err), 0);
	assert_true(*gate.sentence && *gate.evidence && *gate.mechanism);
	assert_true(gate.verdict == PP_PASS ? !*gate.raise : *gate.raise && *gate.next);
}

static const struct pp_control_check *check(enum pp_nccl_arm arm, const char *what)
{
	for (unsigned int i = 0; i < gate.control[arm].n_checks; i++)
		if (!strcmp(gate.control[arm].check[i].what, what))
			return &gate.control[arm].check[i];
	fail_msg("no check '%s'", what);
	return gate.control[arm].check;
}

static void test_proven(void **state)
{
	struct job j = good();

	(void)state;
	judge(&j);
	assert_int_equal(gate.verdict, PP_PASS);
	assert_int_equal(gate.claim, PP_NCCL_PROVEN);
	assert_int_equal(gate.mechanism_claim, PP_NCCL_PROVEN);
	assert_string_equal(gate.mechanism, "dmabuf");
	for (unsigned int i = PP_NCCL_ARM_A; i <= PP_NCCL_ARM_C; i++)
		assert_int_equal(gate.control[i].state, PP_CONTROL_AS_EXPECTED);
	assert_true(gate.gain.bandwidth_known && gate.gain.bandwidth_ratio > 3.7 &&
		    gate.gain.bandwidth_ratio < 3.8);
	assert_true(gate.gain.latency_known && gate.gain.latency_ratio < 1);
	/* 40 s for 204 GB, 90 s for as much */
	assert_true(gate.gain.cpu_known && gate.gain.cpu_per_gb > 0.19 &&
		    gate.gain.cpu_per_gb < 0.2 && gate.gain.cpu_per_gb_a > 0.44);
	assert_int_equal(gate.n_findings, 0);
	done(&j);
}

/* One change each; what becomes of the control, the claims and the verdict. */
struct row {
	const char *what;
	void (*change)(struct job *j);
	enum pp_nccl_arm arm;
	enum pp_control_state state;
	const char *check; /* that says it; NULL none */
	enum pp_nccl_claim claim, mechanism;
	enum pp_verdict verdict;
	const char *says; /* in the sentence, the control or what would raise it */
};

#define A(j) ((j)->arm[PP_NCCL_ARM_A])
#define B(j) ((j)->arm[PP_NCCL_ARM_B])
#define C(j) ((j)->arm[PP_NCCL_ARM_C])
#define U(j) ((j)->arm[PP_NCCL_ARM_UNCHANGED])

static void a_marker_stays(struct job *j)
{
	A(j)->judgement.ends = (struct pp_nccl_ends){.gdr = 2, .staged = 6};
}

static void a_registers(struct job *j)
{
	A(j)->node[1].kernel.made[PP_REGISTERED_DMABUF] = 1;
}

static void a_unknown_way(struct job *j)
{
	A(j)->node[1].library.gpu_unknown = 1;
}

/* It fell to TCP: another network, and hcas that carried nothing. */
static void a_tcp(struct job *j)
{
	A(j)->judgement.path = PP_NCCL_PATH_SOCKET;
	A(j)->judgement.ends = (struct pp_nccl_ends){.socket = 8};
	strcpy(A(j)->networks, "Socket");
	A(j)->node[0].traffic.port[0].sent = A(j)->node[1].traffic.port[0].sent = 1000;
}

static void a_fewer_bytes(struct job *j)
{
	A(j)->node[0].traffic.port[0].sent = made_payload / 100 * 80;
}

static void a_within_five(struct job *j)
{
	A(j)->node[0].traffic.port[0].sent = made_payload / 100 * 95;
	A(j)->node[1].traffic.port[0].sent = made_payload / 100 * 100;
}

static void a_no_counters(struct job *j)
{
	A(j)->node[1].traffic.n_ports = 0;
	strcpy(A(j)->node[1].traffic.why_ports, "no port shows byte counters");
}

static void a_no_host_work(struct job *j)
{
	for (unsigned int i = 0; i < 2; i++) {
		A(j)->node[i].cpu_seconds = 20;
		A(j)->node[i].traffic.host = U(j)->node[i].traffic.host;
	}
}

static void a_memory_alone(struct job *j)
{
	A(j)->node[0].cpu_seconds = A(j)->node[1].cpu_seconds = 20;
}

static void a_cpu_alone(struct job *j)
{
	A(j)->node[0].traffic.host.known = false;
	strcpy(A(j)->node[0].traffic.host.why, "perf_event_paranoid is 4");
}

static void a_not_run(struct job *j)
{
	A(j) = pp_nccl_run_free(A(j));
}

static void a_died(struct job *j)
{
	A(j)->node[1].status = 9;
	strcpy(A(j)->node[1].died, "killed by signal 9");
}

static void a_node_missing(struct job *j)
{
	A(j)->n_nodes = A(j)->missing = 1;
}

static void a_one_rank(struct job *j)
{
	A(j)->judgement.coverage = PP_NCCL_COVER_ONE;
	A(j)->judgement.ranks_seen = 1;
}

static void a_not_observed(struct job *j)
{
	A(j)->node[0].was_observed = false;
}

static void b_peermem(struct job *j)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		for (unsigned int k = 0; k < 2; k++)
			j->arm[i]->node[k].peermem = PP_NCCL_PRESENT;
	pp_nccl_run_free(B(j));
	B(j) = made_run(PP_NCCL_ARM_B);
	by_way(B(j), PP_REGISTERED_PEERMEM, 10);
	for (unsigned int k = 0; k < 2; k++) {
		B(j)->node[k].peermem = PP_NCCL_PRESENT;
		B(j)->node[k].peermem_moved = true;
	}
}

static void b_peermem_still(struct job *j)
{
	b_peermem(j);
	B(j)->node[1].peermem_moved = false;
}

static void b_peermem_unread(struct job *j)
{
	b_peermem(j);
	B(j)->node[1].peermem_known = B(j)->node[1].peermem_moved = false;
}

/* The setting did not reach the job. */
static void b_dmabuf_still(struct job *j)
{
	b_peermem(j);
	by_way(B(j), PP_REGISTERED_DMABUF, 10);
}

static void b_peermem_unknown(struct job *j)
{
	B(j)->node[1].peermem = PP_NCCL_PRESENCE_UNKNOWN;
}

static void b_marker_stays(struct job *j)
{
	B(j)->judgement.ends = (struct pp_nccl_ends){.gdr = 8, .gdr_sends = 4};
}

static void b_not_run(struct job *j)
{
	B(j) = pp_nccl_run_free(B(j));
}

static void data_direct(struct job *j)
{
	by_way(U(j), PP_REGISTERED_DATA_DIRECT, 10);
}

static void c_sends_keep(struct job *j)
{
	C(j)->judgement.ends = (struct pp_nccl_ends){.gdr = 8, .gdr_sends = 4};
}

static void c_receives_lose(struct job *j)
{
	C(j)->judgement.ends = (struct pp_nccl_ends){.staged = 8, .staged_sends = 4};
}

static void c_not_run(struct job *j)
{
	C(j) = pp_nccl_run_free(C(j));
}

/* Before 2.19 without NVLink: sends are staged already; then the claim cannot be proven either. */
static void c_meaningless(struct job *j)
{
	U(j)->judgement.ends = (struct pp_nccl_ends){.gdr = 4, .staged = 4, .staged_sends = 4};
	U(j)->judgement.claim_gdr = PP_NCCL_REFUTED;
	U(j)->judgement.path = PP_NCCL_PATH_MIXED;
}

static void u_peermem(struct job *j)
{
	b_peermem(j);
	by_way(U(j), PP_REGISTERED_PEERMEM, 10);
}

static void u_contradiction(struct job *j)
{
	U(j)->node[1].library.made[PP_REGISTERED_DMABUF] = 0;
	U(j)->node[0].library.made[PP_REGISTERED_DMABUF] = 0;
	U(j)->node[0].library.made[PP_REGISTERED_PEERMEM] = 10;
	U(j)->node[1].library.made[PP_REGISTERED_PEERMEM] = 10;
}

static void u_log_contradicts(struct job *j)
{
	U(j)->judgement.mechanism = PP_NCCL_MECHANISM_PEERMEM;
	U(j)->judgement.claim_mechanism = PP_NCCL_PROVEN;
}

/* User buffers retry by peermem, silently (2.24 and later). */
static void u_mixed(struct job *j)
{
	for (unsigned int i = 0; i < 2; i++) {
		U(j)->node[i].kernel.made[PP_REGISTERED_PEERMEM] = 1;
		U(j)->node[i].library.made[PP_REGISTERED_PEERMEM] = 1;
	}
}

static void u_none_registered(struct job *j)
{
	U(j)->node[1].library.made[PP_REGISTERED_DMABUF] = 0;
	U(j)->node[1].kernel.made[PP_REGISTERED_DMABUF] = 0;
}

/* 2(n-1)/n of P for each of two ranks is P: half of it is not all. */
static void u_half_the_bytes(struct job *j)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		j->arm[i]->node[0].traffic.port[0].sent = j->arm[i]->node[1].traffic.port[0].sent =
			made_payload / 2;
}

static void u_payload_unknown(struct job *j)
{
	U(j)->speed.payload_bytes = 0;
}

static void u_staged(struct job *j)
{
	stage(U(j));
}

static void u_wrong(struct job *j)
{
	U(j)->speed.wrong = 2;
}

static void u_by_logs_unproven(struct job *j)
{
	U(j)->judgement.claim_gdr = PP_NCCL_UNPROVEN;
	U(j)->judgement.n_why = 1;
	strcpy(U(j)->judgement.why[0].text, "lines of 1 of 2 ranks only");
}

static void u_no_gain(struct job *j)
{
	U(j)->speed.large_busbw_gbps = 12.4;
}

#define UN PP_NCCL_UNPROVEN
#define PR PP_NCCL_PROVEN
#define RE PP_NCCL_REFUTED
#define OK PP_CONTROL_AS_EXPECTED
static const struct row rows[] = {
	{"A: marker stays", a_marker_stays, PP_NCCL_ARM_A, PP_CONTROL_OTHER, "marker", UN, UN,
	 PP_UNKNOWN, "2 of 8 ends still have it"},
	{"A: registrations", a_registers, PP_NCCL_ARM_A, PP_CONTROL_OTHER, "registrations", UN, UN,
	 PP_UNKNOWN, "kernel: 1"},
	{"A: way unknown", a_unknown_way, PP_NCCL_ARM_A, PP_CONTROL_OTHER, "registrations", UN, UN,
	 PP_UNKNOWN, "observer: 1"},
	{"A: TCP", a_tcp, PP_NCCL_ARM_A, PP_CONTROL_OTHER, "marker", UN, UN, PP_UNKNOWN,
	 "fell to TCP"},
	{"A: fewer bytes", a_fewer_bytes, PP_NCCL_ARM_A, PP_CONTROL_OTHER, "hca bytes", UN, UN,
	 PP_UNKNOWN, "182.00 GB, unchanged 204.00 GB"},
	{"A: within 5 %", a_within_five, PP_NCCL_ARM_A, OK, "hca bytes", PR, PR, PP_PASS, "by GDR"},
	{"A: no counters", a_no_counters, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "hca bytes", UN, UN,
	 PP_UNKNOWN, "byte counters"},
	{"A: no host work", a_no_host_work, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "host CPU", UN, UN,
	 PP_UNKNOWN, "poll"},
	{"A: memory alone", a_memory_alone, PP_NCCL_ARM_A, OK, "host memory", PR, PR, PP_PASS,
	 "dmabuf"},
	{"A: CPU alone", a_cpu_alone, PP_NCCL_ARM_A, OK, "host CPU", PR, PR, PP_PASS, "dmabuf"},
	{"A: not run", a_not_run, PP_NCCL_ARM_A, PP_CONTROL_NOT_RUN, NULL, UN, UN, PP_UNKNOWN,
	 "not run"},
	{"A: died", a_died, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "end", UN, UN, PP_UNKNOWN,
	 "signal 9"},
	{"A: a node is missing", a_node_missing, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "end", UN, UN,
	 PP_UNKNOWN, "no report"},
	{"A: one rank's lines", a_one_rank, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "marker", UN, UN,
	 PP_UNKNOWN, "1 of 2 ranks"},
	{"A: not observed", a_not_observed, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "registrations", UN,
	 UN, PP_UNKNOWN, "not observed"},
	{"B: peermem", b_peermem, PP_NCCL_ARM_B, OK, "peermem", PR, PR, PP_PASS, "dmabuf"},
	{"B: peermem does not move", b_peermem_still, PP_NCCL_ARM_B, PP_CONTROL_OTHER, "peermem",
	 PR, UN, PP_DEGRADED, "did not"},
	{"B: peermem unread", b_peermem_unread, PP_NCCL_ARM_B, PP_CONTROL_UNKNOWN, "peermem", PR,
	 UN, PP_UNKNOWN, "reference count"},
	{"B: still DMA-BUF", b_dmabuf_still, PP_NCCL_ARM_B, PP_CONTROL_OTHER, "registrations", PR,
	 UN, PP_DEGRADED, "by DMA-BUF"},
	{"B: presence unknown", b_peermem_unknown, PP_NCCL_ARM_B, PP_CONTROL_UNKNOWN, NULL, PR, UN,
	 PP_UNKNOWN, "not known"},
	{"B: marker without peermem", b_marker_stays, PP_NCCL_ARM_B, PP_CONTROL_OTHER, "marker", PR,
	 UN, PP_DEGRADED, "8 of 8"},
	{"B: not run", b_not_run, PP_NCCL_ARM_B, PP_CONTROL_NOT_RUN, NULL, PR, UN, PP_UNKNOWN,
	 "not run"},
	{"data-direct", data_direct, PP_NCCL_ARM_B, PP_CONTROL_NOT_APPLICABLE, NULL, PR, PR,
	 PP_PASS, "data-direct"},
	{"C: sends keep it", c_sends_keep, PP_NCCL_ARM_C, PP_CONTROL_OTHER, "marker", PR, PR,
	 PP_DEGRADED, "4 sending ends still"},
	{"C: receives lose it", c_receives_lose, PP_NCCL_ARM_C, PP_CONTROL_OTHER, "marker", PR, PR,
	 PP_DEGRADED, "receiving ends lost it"},
	{"C: not run", c_not_run, PP_NCCL_ARM_C, PP_CONTROL_NOT_RUN, NULL, PR, PR, PP_UNKNOWN,
	 "not run"},
	{"C: nothing to lose", c_meaningless, PP_NCCL_ARM_C, PP_CONTROL_UNKNOWN, NULL, RE, RE,
	 PP_FAIL, "no sending end"},
	{"peermem throughout", u_peermem, PP_NCCL_ARM_B, OK, "marker", PR, PR, PP_PASS, "peermem"},
	{"kernel against observer", u_contradiction, PP_NCCL_ARM_A, OK, NULL, PR, RE, PP_FAIL,
	 "one of the two is wrong"},
	{"kernel against log", u_log_contradicts, PP_NCCL_ARM_A, OK, NULL, PR, RE, PP_FAIL,
	 "the logs say peermem"},
	{"two ways", u_mixed, PP_NCCL_ARM_A, OK, NULL, PR, UN, PP_UNKNOWN, "mixed"},
	{"a node without", u_none_registered, PP_NCCL_ARM_A, OK, NULL, UN, UN, PP_UNKNOWN,
	 "neither observer"},
	{"half the bytes", u_half_the_bytes, PP_NCCL_ARM_A, OK, "hca bytes", UN, UN, PP_UNKNOWN,
	 "100.00 GB of the 200.00 GB"},
	{"payload unknown", u_payload_unknown, PP_NCCL_ARM_A, OK, NULL, UN, UN, PP_UNKNOWN,
	 "how many bytes"},
	{"staged", u_staged, PP_NCCL_ARM_A, PP_CONTROL_UNKNOWN, "registrations", RE, RE, PP_FAIL,
	 "did not go by GDR: path host-staged"},
	{"wrong data", u_wrong, PP_NCCL_ARM_A, OK, NULL, PR, PR, PP_FAIL, "wrong data"},
	{"logs alone", u_by_logs_unproven, PP_NCCL_ARM_A, OK, NULL, UN, UN, PP_UNKNOWN,
	 "1 of 2 ranks"},
	{"no gain", u_no_gain, PP_NCCL_ARM_A, OK, NULL, PR, PR, PP_PASS,
	 "gains nothing here: 1.00"},
};

static bool said(const char *text, enum pp_nccl_arm arm)
{
	bool found = strstr(gate.sentence, text) || strstr(gate.raise, text) ||
		     strstr(gate.control[arm].says, text);

	for (unsigned int i = 0; i < gate.control[arm].n_checks; i++)
		found |= strstr(gate.control[arm].check[i].seen, text) != NULL;
	return found;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *w = &rows[i];
		struct job j = good();

		w->change(&j);
		judge(&j);
		if (gate.control[w->arm].state != w->state || gate.claim != w->claim ||
		    gate.mechanism_claim != w->mechanism || gate.verdict != w->verdict ||
		    !said(w->says, w->arm))
			fail_msg("%s: control %s (%s), claims %s, %s, verdict %s: %s; %s", w->what,
				 pp_control_state_name(gate.control[w->arm].state),
				 gate.control[w->arm].says, pp_nccl_claim_name(gate.claim),
				 pp_nccl_claim_name(gate.mechanism_claim),
				 pp_verdict_name(gate.verdict), gate.sentence, gate.raise);
		if (w->check && w->state != PP_CONTROL_AS_EXPECTED)
			assert_int_equal(check(w->arm, w->check)->state, w->state);
		done(&j);
	}
}

static void simulate(struct job *j)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		j->arm[i]->simulated = true;
		for (unsigned int k = 0; k < 2; k++) {
			struct pp_nccl_run_node *n = &j->arm[i]->node[k];

			n->simulated = true;
			memset(n->kernel.made, 0, sizeof(n->kernel.made));
			strcpy(n->kernel.why, "the device is software: the kernel knows nothing");
			n->cpu_seconds = 20; /* the device is host work itself */
			n->traffic.host.known = false;
		}
	}
	/* what judge says of a log of a software device */
	U(j)->judgement.claim_gdr = PP_NCCL_UNPROVEN;
	U(j)->judgement.simulated = true;
}

static void test_simulation(void **state)
{
	struct job j = good();

	(void)state;
	simulate(&j);
	judge(&j);
	assert_true(gate.simulated && gate.passed);
	assert_int_equal(gate.verdict, PP_UNKNOWN);
	assert_int_equal(gate.claim, PP_NCCL_UNPROVEN);
	assert_int_equal(gate.mechanism_claim, PP_NCCL_UNPROVEN);
	assert_string_equal(gate.sentence, "chain exercised in simulation");
	assert_string_equal(gate.mechanism, "dmabuf");
	done(&j);
}

/* Every row that is not as it must be fails a simulation, too; none proves anything. */
static void test_simulation_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct job j;

		if (!strncmp(rows[i].what, "A: no host", 10))
			continue;
		j = good();
		simulate(&j);
		/* controls that a row takes away or makes anew are judged as the row does */
		rows[i].change(&j);
		judge(&j);
		assert_true(gate.simulated);
		assert_true(gate.claim != PP_NCCL_PROVEN && gate.mechanism_claim != PP_NCCL_PROVEN);
		assert_true(gate.verdict >= PP_UNKNOWN);
		if (rows[i].verdict == PP_FAIL && rows[i].change != u_contradiction &&
		    rows[i].change != u_log_contradicts)
			assert_false(gate.passed);
		if (rows[i].state == PP_CONTROL_OTHER || rows[i].state == PP_CONTROL_NOT_RUN)
			assert_false(gate.passed && rows[i].change != a_registers);
		done(&j);
	}
}

static void test_one_mark_is_enough(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		struct job j = good();

		j.arm[i]->node[1].traffic.port[0].simulated = true;
		judge(&j);
		assert_true(gate.simulated && gate.claim != PP_NCCL_PROVEN);
		done(&j);
	}
}

static void not_one_job(struct job *j, const char *says)
{
	struct pp_error err = {0};

	assert_int_equal(
		pp_gate_library_judge((const struct pp_nccl_run *const *)j->arm, &gate, &err),
		-EXDEV);
	assert_non_null(strstr(err.text, says));
	done(j);
}

static void test_one_job(void **state)
{
	struct pp_error err = {0};
	struct job j = good();

	(void)state;
	strcpy(A(&j)->command, "all_gather_perf");
	not_one_job(&j, "another command");
	j = good();
	strcpy(B(&j)->node[1].id, "node-7");
	not_one_job(&j, "same nodes");
	j = good();
	strcpy(C(&j)->library, "/opt/libnccl.so.2");
	not_one_job(&j, "another NCCL");
	j = good();
	strcpy(C(&j)->library_version, "2.27.3");
	not_one_job(&j, "2.27.3");
	j = good();
	U(&j) = pp_nccl_run_free(U(&j));
	assert_int_equal(
		pp_gate_library_judge((const struct pp_nccl_run *const *)j.arm, &gate, &err),
		-EINVAL);
	done(&j);
}

/* Least bytes that leave M hosts of N ranks, by hand from what each collective does. */
static void test_must_send(void **state)
{
	static const struct {
		const char *collective;
		double least; /* of made_payload, two hosts of one rank each */
	} cases[] = {
		{"all_reduce", 2}, {"all_gather", 1}, {"reduce_scatter", 1}, {"all_to_all", 1},
		{"send_recv", 2},  {"broadcast", 1},  {"reduce", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int enough = 0; enough < 2; enough++) {
			struct job j = good();
			double each = cases[i].least / 2 * (enough ? 0.96 : 0.94);

			for (unsigned int k = 0; k < PP_NCCL_ARMS; k++) {
				strcpy(j.arm[k]->speed.collective, cases[i].collective);
				j.arm[k]->node[0].traffic.port[0].sent =
					j.arm[k]->node[1].traffic.port[0].sent =
						(uint64_t)(each * (double)made_payload);
			}
			judge(&j);
			assert_int_equal(gate.claim, enough ? PP_NCCL_PROVEN : PP_NCCL_UNPROVEN);
			done(&j);
		}
}

/* What the job says is what gate 3 says. */
static void test_gate(void **state)
{
	struct pp_arena arena = PP_ARENA(1 << 20);
	const struct pp_gate_runs runs = {.library = &gate};
	struct pp_gate_row row;
	struct job j = good();

	(void)state;
	judge(&j);
	pp_gate_library(NULL, &runs, &arena, &row);
	assert_int_equal(row.gate, PP_GATE_LIBRARY);
	assert_int_equal(row.verdict, PP_PASS);
	assert_string_equal(row.claim, gate.sentence);
	assert_string_equal(row.evidence, gate.evidence);
	assert_null(row.raise);
	assert_null(row.next);
	c_not_run(&j);
	judge(&j);
	pp_gate_library(NULL, &runs, &arena, &row);
	assert_int_equal(row.verdict, PP_UNKNOWN);
	assert_non_null(strstr(row.next, "peerpath nccl run --controls -- all_reduce_perf"));
	pp_arena_done(&arena);
	done(&j);
}

/* --- findings --- */

static const struct pp_control_finding *finding(const char *id)
{
	for (unsigned int i = 0; i < gate.n_findings; i++)
		if (!strcmp(gate.finding[i].id, id))
			return &gate.finding[i];
	fail_msg("no finding '%s'", id);
	return gate.finding;
}

static void test_settings(void **state)
{
	static const struct {
		const char *name, *value, *id, *says;
	} cases[] = {
		{"NCCL_NET_GDR_LEVEL", "LOC", "gdr-level-off", "nccl.conf"},
		{"NCCL_NET_GDR_LEVEL", "0", "gdr-level-off", "switches the direct path off"},
		{"NCCL_NET_GDR_LEVEL", "SYS", "gdr-level-forced", "3.75 times the bandwidth"},
		{"NCCL_DMABUF_ENABLE", "0", "dmabuf-off", "peermem alone"},
		{"NCCL_DMABUF_ENABLE", "1", NULL, NULL},
		{"NCCL_NET_GDR_READ", "1", "gdr-read-set", "whatever NCCL would choose"},
		{"NCCL_IB_DISABLE", "1", "ib-disabled", "TCP"},
		{"NCCL_IB_DISABLE", "0", NULL, NULL},
		{"NCCL_P2P_DISABLE", "1", "p2p-disabled", "left behind"},
		{"NCCL_SHM_DISABLE", "1", "shm-disabled", "left behind"},
		{"NCCL_PROTO", "LL", "protocol-ll", "host memory"},
		{"NCCL_PROTO", "LL128", NULL, NULL},
		{"NCCL_IB_HCA", "mlx5_1", "hca-prefix", "mlx5_10"},
		{"NCCL_IB_HCA", "=mlx5_1", NULL, NULL},
		{"NCCL_IB_HCA", "mlx5_0:1,mlx5_1:1", "hca-prefix", "mlx5_10"},
		{"NCCL_IB_HCA", "mlx5_10", NULL, NULL},
		{"NCCL_SOCKET_IFNAME", "eth0", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct job j = good();

		U(&j)->node[0].traffic.port[1] = U(&j)->node[0].traffic.port[0];
		U(&j)->node[0].traffic.port[1].sent = 0;
		U(&j)->node[0].traffic.n_ports = 2;
		strcpy(U(&j)->node[0].traffic.port[1].hca, "mlx5_10");
		made_setting(U(&j), cases[i].name, cases[i].value, PP_NCCL_FROM_CONF, 2);
		judge(&j);
		assert_int_equal(gate.n_findings, cases[i].id ? 1 : 0);
		if (cases[i].id) {
			const struct pp_control_finding *f = finding(cases[i].id);

			assert_non_null(strstr(f->text, cases[i].says));
			assert_true(*f->fix && *f->undo);
		}
		/* What was meant moves nothing. */
		assert_int_equal(gate.verdict, PP_PASS);
		done(&j);
	}
}

static void test_forced_is_harmful(void **state)
{
	struct job j = good();

	(void)state;
	made_setting(U(&j), "NCCL_NET_GDR_LEVEL", "SYS", PP_NCCL_FROM_USER, 2);
	U(&j)->speed.large_busbw_gbps = 6.2;
	judge(&j);
	assert_non_null(strstr(finding("gdr-level-forced")->text, "harmful: 0.50"));
	assert_int_equal(finding("gdr-level-forced")->verdict, PP_DEGRADED);
	done(&j);
}

/* What we set ourselves is no finding; an external plug-in does not hear NCCL_IB_DISABLE. */
static void test_of_others(void **state)
{
	struct job j = good();

	(void)state;
	made_setting(U(&j), "NCCL_PROTO", "LL", PP_NCCL_FROM_ARM, 2);
	made_setting(U(&j), "NCCL_DEBUG", "INFO", PP_NCCL_FROM_LOGGING, 1);
	judge(&j);
	assert_int_equal(gate.n_findings, 0);
	made_setting(U(&j), "NCCL_IB_DISABLE", "1", PP_NCCL_FROM_USER, 2);
	strcpy(U(&j)->networks, "IBext_v8");
	judge(&j);
	assert_non_null(strstr(finding("ib-disabled")->text, "IBext_v8"));
	done(&j);
}

static void test_differences(void **state)
{
	struct job j = good();

	(void)state;
	made_setting(U(&j), "NCCL_IB_TC", "106", PP_NCCL_FROM_USER, 1);
	made_setting(U(&j), "NCCL_IB_TC", "0", PP_NCCL_FROM_CONF, 1);
	made_setting(U(&j), "NCCL_BUFFSIZE", "8388608", PP_NCCL_FROM_USER, 1);
	made_setting(U(&j), "NCCL_ALGO", "Ring", PP_NCCL_FROM_USER, 2);
	strcpy(U(&j)->node[1].mapped, "/opt/conda/lib/libnccl.so.2");
	strcpy(U(&j)->in_network, "COLLNET");
	judge(&j);
	assert_int_equal(gate.n_findings, 4);
	assert_non_null(strstr(gate.finding[0].text, "NCCL_IB_TC differs: 106 on 1 of 2"));
	assert_non_null(strstr(gate.finding[1].text, "NCCL_BUFFSIZE"));
	assert_non_null(strstr(finding("two-nccl")->text, "/opt/conda"));
	assert_non_null(strstr(finding("in-network")->text, "COLLNET"));
	done(&j);
}

/* Each rail's port is looked at, not the first one's alone; with a rank for each. */
static void test_rails(void **state)
{
	struct job j = good();
	struct pp_nccl_run_node *n = &U(&j)->node[1];

	(void)state;
	strcpy(n->expected_hca, "mlx5_0,mlx5_1");
	n->traffic.port[1] = n->traffic.port[0];
	strcpy(n->traffic.port[1].hca, "mlx5_1");
	n->traffic.n_ports = 2;
	n->ranks = 2;
	judge(&j);
	assert_int_equal(gate.n_findings, 0);
	n->traffic.port[1].sent = 1000;
	judge(&j);
	assert_non_null(strstr(finding("rail-idle")->text, "mlx5_1 is a GPU's rail on node-1"));
	assert_true(*finding("rail-idle")->fix && *finding("rail-idle")->undo);
	assert_int_equal(gate.n_findings, 1);
	/* fewer ranks than rails: one is idle by right */
	n->ranks = 1;
	judge(&j);
	assert_int_equal(gate.n_findings, 0);
	/* a port that was not read is not idle */
	n->ranks = 2;
	n->traffic.n_ports = 1;
	judge(&j);
	assert_int_equal(gate.n_findings, 0);
	assert_true(pp_nccl_run_expects(n, "mlx5_1") && !pp_nccl_run_expects(n, "mlx5_10") &&
		    !pp_nccl_run_expects(n, "mlx5"));
	done(&j);
}

/* On the software device a level is no forcing of hardware. */
static void test_forced_in_simulation(void **state)
{
	struct job j = good();

	(void)state;
	made_setting(U(&j), "NCCL_NET_GDR_LEVEL", "SYS", PP_NCCL_FROM_USER, 2);
	U(&j)->simulated = true;
	judge(&j);
	assert_int_equal(gate.n_findings, 0);
	done(&j);
}

static void test_too_many(void **state)
{
	struct job j = good();

	(void)state;
	for (unsigned int i = 0; i < PP_NCCL_RUN_SETTINGS; i++)
		made_setting(U(&j), "NCCL_PROTO", "LL", PP_NCCL_FROM_USER, 2);
	judge(&j);
	assert_int_equal(gate.n_findings, PP_CONTROL_FINDINGS);
	done(&j);
}

/* --- what is taken away --- */

static json_t *documents[PP_NCCL_ARMS];
static struct job kept; /* as they are without anything taken */

static void keep(const struct job *j)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		struct pp_buf text = PP_BUF(16 << 20);
		struct pp_json out = PP_JSON(&text, false);

		documents[i] = NULL;
		if (!j->arm[i])
			continue;
		pp_nccl_run_write(&out, NULL, j->arm[i]);
		documents[i] = json_loads(text.data, 0, NULL);
		assert_non_null(documents[i]);
		free(text.data);
	}
}

/* With this arm read anew. False: it could not be read, or is no job any more. */
static bool judge_documents(unsigned int arm)
{
	struct pp_nccl_run *whole = kept.arm[arm];
	struct pp_error err = {0};
	bool good;

	kept.arm[arm] = NULL;
	good = !documents[arm] || !pp_nccl_run_read(documents[arm], &kept.arm[arm], &err);
	if (good)
		good = !pp_gate_library_judge((const struct pp_nccl_run *const *)kept.arm, &gate,
					      &err);
	pp_nccl_run_free(kept.arm[arm]);
	kept.arm[arm] = whole;
	return good;
}

struct taking {
	enum pp_nccl_claim claim, mechanism;
	enum pp_verdict verdict;
	const char *row;
	unsigned int taken, arm; /* arm: that it is taken from */
};

/* refuted and proven are both knowledge: less of it is unproven. */
static bool weaker(enum pp_nccl_claim whole, enum pp_nccl_claim less)
{
	return less == whole || less == PP_NCCL_UNPROVEN;
}

/*
 * The end of a run, and witnesses against each other, speak against a claim: without them it is
 * what it was without them.
 */
static bool speaks_against(const struct taking *t, const char *key)
{
	return !strcmp(key, "died") || !strcmp(key, "root_error") ||
	       (t->mechanism == PP_NCCL_REFUTED && t->claim != PP_NCCL_REFUTED);
}

static void less(struct taking *t, const char *key)
{
	if (!judge_documents(t->arm))
		return;
	t->taken++;
	if (speaks_against(t, key))
		return;
	if (!weaker(t->claim, gate.claim) || !weaker(t->mechanism, gate.mechanism_claim) ||
	    (gate.verdict == PP_PASS && t->verdict != PP_PASS))
		fail_msg("%s without %s: claims %s -> %s, %s -> %s, verdict %s -> %s", t->row, key,
			 pp_nccl_claim_name(t->claim), pp_nccl_claim_name(gate.claim),
			 pp_nccl_claim_name(t->mechanism), pp_nccl_claim_name(gate.mechanism_claim),
			 pp_verdict_name(t->verdict), pp_verdict_name(gate.verdict));
}

/* Each member becomes null, where it may; each element of a list goes. */
static void take(struct taking *t, json_t *in)
{
	json_t *members = json_is_object(in) ? json_copy(in) : json_object(), *v;
	const char *key;

	json_object_foreach(members, key, v)
	{
		json_object_set_new(in, key, json_null());
		less(t, key);
		json_object_set(in, key, v);
		/* its sums stand beside it */
		if (strcmp(key, "observed") != 0)
			take(t, v);
	}
	json_decref(members);
	for (size_t i = 0; i < json_array_size(in); i++) {
		v = json_incref(json_array_get(in, i));
		json_array_remove(in, i);
		less(t, "an element");
		json_array_insert(in, i, v);
		take(t, v);
		json_decref(v);
	}
}

static unsigned int take_from(const char *what, struct job *j)
{
	struct taking t = {.row = what};

	judge(j);
	t.claim = gate.claim;
	t.mechanism = gate.mechanism_claim;
	t.verdict = gate.verdict;
	keep(j);
	kept = *j;
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		json_t *whole = documents[i];

		if (!whole || i == PP_NCCL_ARM_PINNED)
			continue;
		t.arm = i;
		if (i != PP_NCCL_ARM_UNCHANGED) {
			documents[i] = NULL;
			less(&t, pp_nccl_arm_name((enum pp_nccl_arm)i));
			documents[i] = whole;
		}
		take(&t, whole);
	}
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		json_decref(documents[i]);
	return t.taken;
}

static void test_removal(void **state)
{
	struct job j = good();

	(void)state;
	assert_true(take_from("all good", &j) > 150);
	done(&j);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		j = good();
		rows[i].change(&j);
		(void)take_from(rows[i].what, &j);
		done(&j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proven),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_simulation),
		cmocka_unit_test(test_simulation_fails),
		cmocka_unit_test(test_one_mark_is_enough),
		cmocka_unit_test(test_one_job),
		cmocka_unit_test(test_must_send),
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_forced_is_harmful),
		cmocka_unit_test(test_of_others),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_rails),
		cmocka_unit_test(test_forced_in_simulation),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
