/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_made.h"
#include "facts_text.h"

#include <errno.h>

#include "judge/gate.h"
#include "judge/transfer.h"
#include "judge/prerequisite.h"

static const struct pp_gate_runs no_runs;

/* A node with two GPUs, each with an hca behind its own switch, and everything known and good. */
static const char good[] = "[m]\n"
			   "kernel.release = 6.8.0\n"
			   "kernel.arch = x86_64\n"
			   "kernel.virtual_machine = none\n"
			   "kernel.dmabuf_umem = yes\n"
			   "kernel.peer_memory_api = no\n"
			   "kernel.cmdline = quiet\n"
			   "kernel.config.dma_shared_buffer = y\n"
			   "kernel.config.infiniband_user_mem = y\n"
			   "kernel.config.infiniband_odp = y\n"
			   "node.gpus = 2\n"
			   "node.hcas = 2\n"
			   "node.active_ports = 2\n"
			   "rdma.functions_without_device = none\n"
			   "rdma.stack = inbox\n"
			   "rdma.ib_uverbs_loaded = yes\n"
			   "rdma.mlx5_core_loaded = yes\n"
			   "rdma.mlx5_ib_loaded = yes\n"
			   "libibverbs.reg_dmabuf_mr = yes\n"
			   "libibverbs.rdma_core = 50\n"
			   "nvidia.loaded = yes\n"
			   "nvidia.flavour = open\n"
			   "nvidia.version = 580.65.06\n"
			   "nvidia_peermem.loaded = no\n"
			   "nv_peer_mem.loaded = no\n"
			   "cuda.driver_api = 13000\n"
			   "limits.cap_ipc_lock = yes\n"
			   "limits.memlock_bytes = -1\n"
			   "limits.dev_nvidia = yes\n"
			   "limits.dev_infiniband = yes\n";

static const char good_gpu[] = "[m]\n"
			       "0000:%1$s1:00.0 gpu.uuid = GPU-0%1$s\n"
			       "0000:%1$s1:00.0 gpu.name = NVIDIA H200\n"
			       "0000:%1$s1:00.0 gpu.driver = nvidia\n"
			       "0000:%1$s1:00.0 gpu.c2c = no\n"
			       "0000:%1$s1:00.0 gpu.gdr_supported = yes\n"
			       "0000:%1$s1:00.0 gpu.dmabuf_supported = yes\n"
			       "0000:%1$s1:00.0 gpu.bar1_total_bytes = 274877906944\n"
			       "0000:%1$s1:00.0 gpu.bar1_free_bytes = 274000000000\n"
			       "0000:%1$s1:00.0 gpu.bar1_covers_memory = yes\n"
			       "0000:%1$s2:00.0 hca.rdma_device = yes\n"
			       "0000:%1$s2:00.0 hca.node_guid = 0000:0000:0000:000%1$s\n"
			       "0000:%1$s2:00.0 hca.firmware = 28.39.1002\n"
			       "0000:%1$s2:00.0 hca.driver = mlx5_core\n"
			       "0000:%1$s2:00.0 hca.ats = no\n"
			       "0000:%1$s2:00.0 hca.pci_id = 15b3:1021\n"
			       "0000:%1$s2:00.0 hca.active_ports = 1\n"
			       "0000:%1$s2:00.0 hca.uverbs_access = yes\n"
			       "0000:%1$s2:00.0 hca.provider_installed = yes\n"
			       "0000:%1$s2:00.0 hca.dmabuf_by_version = yes\n"
			       "0000:%1$s2:00.0/1 port.state = ACTIVE\n"
			       "0000:%1$s2:00.0/1 port.link_layer = InfiniBand\n"
			       "0000:%1$s2:00.0/1 port.rate_mbps = 400000\n"
			       "0000:%1$s2:00.0 link.narrow = no\n"
			       "0000:%1$s2:00.0 link.slow = no\n"
			       "0000:%1$s2:00.0 link.below = hca\n"
			       "0000:%1$s1:00.0/0000:%1$s2:00.0 pair.distance = PIX\n"
			       "0000:%1$s1:00.0/0000:%1$s2:00.0 pair.rail = yes\n"
			       "0000:%1$s1:00.0/0000:%1$s2:00.0 pair.nearer_unusable = none\n"
			       "0000:%1$s1:00.0/0000:%1$s2:00.0 pair.acs_redirect = no\n"
			       "0000:%1$s1:00.0/0000:%1$s2:00.0 pair.acs_direct_translated = no\n"
			       "0000:%1$s1:00.0/0000:%1$s2:00.0 pair.translated = no\n";

static const char far_pairs[] = "[m]\n"
				"0000:01:00.0/0000:12:00.0 pair.distance = SYS\n"
				"0000:01:00.0/0000:12:00.0 pair.rail = no\n"
				"0000:11:00.0/0000:02:00.0 pair.distance = SYS\n"
				"0000:11:00.0/0000:02:00.0 pair.rail = no\n";

static void machine_good(struct machine *m)
{
	char text[8192];

	machine_init(m);
	(void)machine_read(m, good, "m");
	(void)snprintf(text, sizeof(text), good_gpu, "0");
	(void)machine_read(m, text, "m");
	(void)snprintf(text, sizeof(text), good_gpu, "1");
	(void)machine_read(m, text, "m");
	(void)machine_read(m, far_pairs, "m");
}

static struct pp_rules *rules;

static int load(void **state)
{
	struct pp_error err = {0};

	(void)state;
	if (pp_rules_load(PEERPATH_SOURCE_DATADIR "/rules", &rules, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	rules = pp_rules_free(rules);
	return 0;
}

struct verdicts {
	enum pp_verdict identity, prerequisites, overall;
	char claim[512], raise[2048], evidence[512];
};

static struct verdicts judge(const struct machine *m)
{
	struct pp_findings found;
	struct pp_gates g;
	struct verdicts v;
	const char *raise;

	assert_false(m->arena.failed);
	assert_int_equal(pp_findings_judge(&m->facts, rules, NULL, &found), 0);
	assert_int_equal(
		pp_gates_judge(&m->facts, &found, &no_runs, PP_GATE_PREREQUISITES, false, &g), 0);
	v.identity = g.row[PP_GATE_IDENTITY].verdict;
	v.prerequisites = g.row[PP_GATE_PREREQUISITES].verdict;
	v.overall = g.verdict;
	raise = g.row[v.identity > v.prerequisites ? 0 : 1].raise;
	(void)snprintf(v.claim, sizeof(v.claim), "%s", g.row[1].claim);
	(void)snprintf(v.raise, sizeof(v.raise), "%s", raise ? raise : "");
	(void)snprintf(v.evidence, sizeof(v.evidence), "%s", g.row[1].evidence);
	for (unsigned int i = 0; i < PP_GATES; i++) {
		const struct pp_gate_row *row = &g.row[i];

		/* Each row says what and why; a row that does not pass says what would raise it. */
		assert_non_null(row->claim);
		assert_non_null(row->evidence);
		assert_int_equal(row->raise == NULL, row->verdict == PP_PASS);
		assert_int_equal(row->next == NULL, row->verdict == PP_PASS);
	}
	pp_gates_done(&g);
	pp_findings_done(&found);
	return v;
}

static struct verdicts judge_with(const char *where, const char *value)
{
	struct machine m;
	struct verdicts v;

	machine_good(&m);
	machine_set(&m, where, value);
	v = judge(&m);
	machine_done(&m);
	return v;
}

static void test_good_node_passes(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_good(&m);
	v = judge(&m);
	if (v.overall != PP_PASS)
		fail_msg("%s: %s", v.claim, v.raise);
	machine_done(&m);
}

static void needs(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("'%s' lacks '%s'", text, words);
}

/* What the row says of its reason and of what was seen. */
static void test_words(void **state)
{
	struct verdicts v = judge_with("0000:01:00.0/0000:02:00.0 pair.acs_redirect",
				       "? config space was short");

	(void)state;
	needs(v.raise, "pair.acs_redirect of 0000:01:00.0/0000:02:00.0: config space was short");
	needs(v.evidence, "2 of 2 GPUs have a rail");
	v = judge_with("0000:11:00.0 gpu.dmabuf_supported", "? no CUDA driver");
	needs(v.raise, "gpu.dmabuf_supported of 0000:11:00.0: no CUDA driver");
	needs(v.evidence, "1 of 2 GPUs have a rail");
}

/*
 * A third hca, nearer than it is known to be, could be the better rail: the choice is sound only
 * when what it rests on is known of every hca that is not known to be dark.
 */
static void test_rail_choice_must_be_known(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_good(&m);
	machine_set(&m, "0000:32:00.0 hca.rdma_device", "yes");
	machine_set(&m, "0000:32:00.0 hca.node_guid", "0000:0000:0000:0003");
	machine_set(&m, "0000:32:00.0 hca.firmware", "28.39.1002");
	machine_set(&m, "0000:32:00.0 hca.active_ports", "? state unreadable");
	machine_set(&m, "0000:32:00.0 hca.uverbs_access", "yes");
	machine_set(&m, "0000:01:00.0/0000:32:00.0 pair.rail", "no");
	machine_set(&m, "0000:01:00.0/0000:32:00.0 pair.distance", "PXB");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_UNKNOWN);
	needs(v.raise, "hca.active_ports of 0000:32:00.0");
	machine_set(&m, "0000:32:00.0 hca.active_ports", "0");
	machine_set(&m, "0000:01:00.0/0000:32:00.0 pair.distance", "? no tree");
	assert_int_equal(judge(&m).prerequisites, PP_PASS); /* dark: its distance does not matter */
	machine_set(&m, "0000:32:00.0 hca.active_ports", "1");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_UNKNOWN);
	needs(v.raise, "pair.distance of 0000:01:00.0/0000:32:00.0");
	machine_done(&m);
}

/* The rule of honesty: forget one fact after the other; nothing may get better. */
static void test_missing_fact_never_helps(void **state)
{
	static const char *const worse[][2] = {
		{"node.hcas", "2"}, /* nothing: the good node itself */
		{"nvidia.flavour", "proprietary"},
		{"0000:02:00.0 hca.uverbs_access", "no"},
		{"0000:12:00.0 hca.active_ports", "0"},
		{"0000:01:00.0/0000:02:00.0 pair.acs_redirect", "yes"},
		{"0000:01:00.0/0000:02:00.0 pair.distance", "SYS"},
		{"0000:11:00.0 gpu.bar1_total_bytes", "268435456"},
		{"libibverbs.reg_dmabuf_mr", "no"},
		{"0000:12:00.0/1 port.state", "INIT"},
		{"limits.cap_ipc_lock", "no"},
	};
	unsigned int n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(worse) / sizeof(worse[0]); i++) {
		struct verdicts before = judge_with(worse[i][0], worse[i][1]), after;
		struct pp_object *o;
		struct machine m;

		machine_good(&m);
		machine_set(&m, worse[i][0], worse[i][1]);
		pp_objects_foreach (&m.facts, o) {
			for (unsigned int k = 0; k < o->n; k++) {
				struct pp_fact saved = o->facts[k];

				o->facts[k] = (struct pp_fact){.id = saved.id, .why = "taken away"};
				after = judge(&m);
				o->facts[k] = saved;
				n++;
				if (after.identity < before.identity ||
				    (after.prerequisites < before.prerequisites &&
				     after.prerequisites != PP_UNKNOWN))
					fail_msg("with %s = %s, %s of %s taken away: %s is better "
						 "than %s",
						 worse[i][0], worse[i][1],
						 pp_fact_table[saved.id].key, o->id,
						 pp_verdict_name(after.prerequisites),
						 pp_verdict_name(before.prerequisites));
			}
		}
		machine_done(&m);
	}
	assert_true(n > 900);
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *where, *value;
		enum pp_verdict gate0, gate1;
		const char *words; /* in the claim */
	} table[] = {
		{"kernel.release", "? no uname", PP_UNKNOWN, PP_PASS, ""},
		{"0000:01:00.0 gpu.uuid", "? permission denied", PP_UNKNOWN, PP_PASS, ""},
		{"0000:02:00.0 hca.firmware", "", PP_UNKNOWN, PP_PASS, ""},
		{"0000:02:00.0 hca.uverbs_access", "no", PP_PASS, PP_FAIL, "may not open"},
		{"0000:01:00.0 gpu.gdr_supported", "no", PP_PASS, PP_FAIL, "cannot be used"},
		{"nvidia.flavour", "proprietary", PP_PASS, PP_FAIL, "no way to register"},
		{"libibverbs.reg_dmabuf_mr", "no", PP_PASS, PP_FAIL, "no way to register"},
		{"0000:01:00.0/0000:02:00.0 pair.acs_redirect", "yes", PP_PASS, PP_DEGRADED, "ACS"},
		{"0000:01:00.0/0000:02:00.0 pair.acs_redirect", "? no privilege", PP_PASS,
		 PP_UNKNOWN, "not known"},
		{"0000:01:00.0/0000:02:00.0 pair.distance", "NODE", PP_PASS, PP_DEGRADED, "NODE"},
		{"rdma.functions_without_device", "0000:77:00.0", PP_PASS, PP_DEGRADED,
		 "functions"},
		{"node.active_ports", "0", PP_PASS, PP_FAIL, "no port"},
		{"0000:02:00.0 hca.dmabuf_by_version", "backport-only", PP_PASS, PP_UNKNOWN,
		 "not known"},
		{"0000:02:00.0 link.narrow", "yes", PP_PASS, PP_DEGRADED, "lanes"},
		{"nccl.env.net_gdr_level", "LOC", PP_PASS, PP_PASS, ""}, /* intent: a note */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct verdicts v = judge_with(table[i].where, table[i].value);

		if (v.identity != table[i].gate0 || v.prerequisites != table[i].gate1 ||
		    !strstr(v.claim, table[i].words))
			fail_msg("%s = %s: gate 0 %s, gate 1 %s (%s)", table[i].where,
				 table[i].value, pp_verdict_name(v.identity),
				 pp_verdict_name(v.prerequisites), v.claim);
		assert_int_equal(v.overall,
				 v.identity > v.prerequisites ? v.identity : v.prerequisites);
	}
}

static void test_no_device(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_init(&m);
	machine_set(&m, "kernel.release", "6.1.0");
	machine_set(&m, "node.gpus", "1");
	machine_set(&m, "node.hcas", "0");
	machine_set(&m, "rdma.functions_without_device", "none");
	machine_set(&m, "nvidia.flavour", "open");
	machine_set(&m, "0000:01:00.0 gpu.uuid", "GPU-0");
	v = judge(&m);
	assert_int_equal(v.identity, PP_PASS);
	assert_int_equal(v.prerequisites, PP_UNKNOWN);
	assert_non_null(strstr(v.claim, "unknown (no RDMA device)"));
	/* the card is there, its RDMA device is not: never pass */
	machine_set(&m, "rdma.functions_without_device", "0000:3b:00.0");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_FAIL);
	assert_non_null(strstr(v.claim, "no RDMA device"));
	/* and when it cannot be told which */
	machine_set(&m, "rdma.functions_without_device", "? no /sys/bus/pci");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_UNKNOWN);
	machine_done(&m);
}

static void test_no_gpu(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_init(&m);
	machine_set(&m, "kernel.release", "6.1.0");
	machine_set(&m, "node.gpus", "0");
	machine_set(&m, "node.hcas", "0");
	v = judge(&m);
	assert_int_equal(v.identity, PP_UNKNOWN);
	assert_non_null(strstr(v.raise, "no GPU on the PCI bus"));
	machine_set(&m, "node.gpus", "? /sys/bus/pci: absent");
	v = judge(&m);
	assert_int_equal(v.identity, PP_UNKNOWN);
	assert_non_null(strstr(v.raise, "/sys/bus/pci: absent"));
	assert_null(strstr(v.raise, "no GPU on the PCI bus"));
	machine_done(&m);
}

/* A software device has no PCI function and no firmware; it is no rail of any GPU either. */
static void test_software_device(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_good(&m);
	machine_set(&m, "virtual/rxe0 hca.rdma_device", "yes");
	machine_set(&m, "virtual/rxe0 hca.node_guid", "0000:0000:0000:0009");
	machine_set(&m, "virtual/rxe0 hca.active_ports", "1");
	machine_set(&m, "virtual/rxe0 hca.uverbs_access", "yes");
	machine_set(&m, "virtual/rxe0 hca.dmabuf_by_version", "no");
	machine_set(&m, "virtual/rxe0 hca.driver", "rdma_rxe");
	v = judge(&m);
	assert_int_equal(v.identity, PP_PASS);
	assert_int_equal(v.prerequisites, PP_PASS);
	machine_done(&m);
}

/* peermem: a degraded way where the stack is the kernel's; unseen under OFED. */
static void test_peermem_way(void **state)
{
	struct machine m;

	(void)state;
	machine_good(&m);
	machine_set(&m, "nvidia.flavour", "proprietary");
	machine_set(&m, "nvidia_peermem.loaded", "yes");
	machine_set(&m, "nvidia_peermem.version", "580.65.06");
	machine_set(&m, "kernel.peer_memory_api", "yes");
	machine_set(&m, "nvidia_peermem.client", "? no memory_peers");
	assert_int_equal(judge(&m).prerequisites, PP_DEGRADED);
	machine_set(&m, "rdma.stack", "out-of-tree");
	assert_int_equal(judge(&m).prerequisites, PP_UNKNOWN);
	machine_set(&m, "nvidia_peermem.client", "yes");
	assert_int_equal(judge(&m).prerequisites, PP_DEGRADED);
	machine_set(&m, "nvidia_peermem.client", "no");
	assert_int_equal(judge(&m).prerequisites, PP_FAIL);
	machine_set(&m, "rdma.stack", "? no /sys/module");
	assert_int_equal(judge(&m).prerequisites, PP_UNKNOWN);
	machine_done(&m);
}

/* A probe decides what a version table cannot. */
static void test_probe_raises(void **state)
{
	struct machine m;

	(void)state;
	machine_good(&m);
	machine_set(&m, "0000:02:00.0 hca.dmabuf_by_version", "backport-only");
	assert_int_equal(judge(&m).prerequisites, PP_UNKNOWN);
	machine_set(&m, "0000:02:00.0 hca.probe.dmabuf", "yes");
	assert_int_equal(judge(&m).prerequisites, PP_PASS);
	machine_set(&m, "0000:02:00.0 hca.probe.dmabuf", "? probe timed out");
	assert_int_equal(judge(&m).prerequisites, PP_UNKNOWN);
	machine_done(&m);
}

/* What was done is possible, whatever other facts say; what could be done in no way is not. */
static void test_probe_of_pairs(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_good(&m);
	machine_set(&m, "0000:02:00.0 hca.probe.dmabuf", "no");
	assert_int_equal(judge(&m).prerequisites, PP_FAIL);
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.probe.dmabuf", "yes");
	assert_int_not_equal(judge(&m).prerequisites, PP_FAIL);
	machine_done(&m);
	machine_good(&m);
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.probe.dmabuf", "no");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_DEGRADED);
	needs(v.claim,
	      "the probe of rail 0000:01:00.0/0000:02:00.0 was refused GPU memory by DMA-BUF");
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.probe.peermem", "no");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_FAIL);
	needs(v.claim, "could register GPU memory in no way");
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.probe.dmabuf", "yes");
	assert_int_equal(judge(&m).prerequisites, PP_PASS);
	machine_done(&m);
}

/* A refused probe overrules what a version promises, on a rail; beside the rails it judges nothing.
 */
static void test_probe_refused(void **state)
{
	struct machine m;
	struct verdicts v;

	(void)state;
	machine_good(&m);
	machine_set(&m, "0000:02:00.0 hca.probe.dmabuf", "no");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_FAIL); /* peermem is not there either */
	needs(v.claim, "no way to register GPU memory");
	machine_set(&m, "nvidia_peermem.loaded", "yes");
	machine_set(&m, "nvidia_peermem.client", "yes");
	machine_set(&m, "nvidia_peermem.version", "580.65.06");
	machine_set(&m, "kernel.peer_memory_api", "yes");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_DEGRADED);
	needs(v.claim, "the probe of 0000:02:00.0 was refused DMA-BUF");
	machine_set(&m, "0000:02:00.0 hca.probe.host", "no");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_FAIL);
	needs(v.claim,
	      "cannot work for this process: rail 0000:01:00.0/0000:02:00.0: the probe of");
	machine_done(&m);
	machine_good(&m);
	machine_set(&m, "0000:32:00.0 hca.rdma_device", "yes");
	machine_set(&m, "0000:32:00.0 hca.node_guid", "0000:0000:0000:0003");
	machine_set(&m, "0000:32:00.0 hca.firmware", "28.39.1002");
	machine_set(&m, "0000:32:00.0 hca.active_ports", "1");
	machine_set(&m, "0000:32:00.0 hca.uverbs_access", "yes");
	machine_set(&m, "0000:32:00.0 hca.probe.host", "no");
	machine_set(&m, "0000:32:00.0 hca.probe.dmabuf", "no");
	assert_int_equal(judge(&m).prerequisites, PP_PASS);
	machine_done(&m);
}

/* A far rail is not called near, and a module that is not there has no flavour. */
static void test_words_of_what_is_there(void **state)
{
	struct verdicts v;
	struct machine m;

	(void)state;
	machine_good(&m);
	machine_set(&m, "0000:01:00.0 gpu.c2c", "yes");
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.distance", "SYS");
	machine_set(&m, "kernel.release", "6.14.0");
	v = judge(&m);
	assert_int_equal(v.prerequisites, PP_PASS);
	needs(v.claim, "a near one (PIX, PXB) on 1 of 2");
	machine_set(&m, "nvidia.loaded", "no");
	machine_set(&m, "nvidia.flavour", "? not loaded");
	machine_set(&m, "nvidia.version", "? not loaded");
	needs(judge(&m).evidence, "NVIDIA module not loaded");
	machine_done(&m);
}

/* Without a GPU there is nothing that NCCL could run on: said, and unknown. */
static void test_library_without_gpu(void **state)
{
	struct pp_findings found;
	struct pp_gates g;
	struct machine m;

	(void)state;
	machine_good(&m);
	machine_set(&m, "node.gpus", "0");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	assert_int_equal(pp_gates_judge(&m.facts, &found, &no_runs, PP_GATE_LIBRARY, true, &g), 0);
	needs(g.row[PP_GATE_LIBRARY].claim, "unknown (no GPU)");
	assert_int_equal(g.row[PP_GATE_LIBRARY].verdict, PP_UNKNOWN);
	pp_gates_done(&g);
	pp_findings_done(&found);
	machine_done(&m);
}

static void test_order(void **state)
{
	struct pp_findings found;
	struct pp_gates g;
	struct machine m;
	enum pp_gate gate;

	(void)state;
	machine_good(&m);
	machine_set(&m, "node.active_ports", "0");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	/* fail stops: what lies behind is not run, and the whole is as bad as the worst asked for
	 */
	assert_int_equal(pp_gates_judge(&m.facts, &found, &no_runs, PP_GATE_LIBRARY, false, &g), 0);
	assert_true(g.row[1].run);
	assert_false(g.row[2].run);
	assert_true(g.stopped);
	assert_int_equal(g.verdict, PP_FAIL);
	assert_non_null(strstr(g.row[2].claim, "gate 1 failed"));
	assert_string_equal(pp_verdict_claim(g.row[1].verdict), "refuted");
	pp_gates_done(&g);
	assert_int_equal(pp_gates_judge(&m.facts, &found, &no_runs, PP_GATE_LIBRARY, true, &g), 0);
	assert_true(g.row[3].run);
	assert_false(g.row[4].run);
	assert_false(g.stopped);
	assert_int_equal(g.row[3].verdict, PP_UNKNOWN); /* not measured by this version */
	pp_gates_done(&g);
	assert_int_equal(pp_gates_judge(&m.facts, &found, &no_runs, PP_GATE_IDENTITY, false, &g),
			 0);
	assert_false(g.row[1].run);
	assert_int_equal(g.verdict, PP_PASS); /* gates that were not asked for judge nothing */
	needs(g.row[PP_GATE_LIBRARY].claim, "no job was observed");
	needs(g.row[PP_GATE_APPLICATION].claim, "no workload was measured");
	needs(g.row[PP_GATE_APPLICATION].next, "peerpath prove --canary FILE -- COMMAND");
	needs(g.row[PP_GATE_MEMORY].claim, "was not measured");
	needs(g.row[PP_GATE_MEMORY].next, "peerpath prove --peer HOST");
	needs(g.row[PP_GATE_LIBRARY].next, "peerpath nccl run --controls");
	pp_gates_done(&g);
	pp_findings_done(&found);
	machine_done(&m);
	assert_int_equal(pp_gate_parse("library", &gate), 0);
	assert_int_equal(gate, PP_GATE_LIBRARY);
	assert_int_equal(pp_gate_parse("4", &gate), 0);
	assert_int_equal(pp_gate_parse("5", &gate), -EINVAL);
	assert_int_equal(pp_gate_parse("", &gate), -EINVAL);
}

/* Gate 2 says what a run says, and without a run nothing. */
static void memory_row(const struct machine *m, struct pp_bench *b, struct pp_gates *g)
{
	struct pp_findings found;
	struct pp_transfer t;

	assert_int_equal(pp_findings_judge(&m->facts, rules, NULL, &found), 0);
	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t), 0);
	assert_int_equal(pp_gates_judge(&m->facts, &found,
					&(const struct pp_gate_runs){.transfer = &t},
					PP_GATE_MEMORY, true, g),
			 0);
	pp_transfer_done(&t);
	pp_findings_done(&found);
	pp_bench_free(b);
}

static void test_memory(void **state)
{
	struct pp_bench *b = made_bench();
	struct pp_gates g;
	struct machine m;

	(void)state;
	machine_good(&m);
	memory_row(&m, b, &g); /* rows outlive the run */
	assert_int_equal(g.row[PP_GATE_MEMORY].verdict, PP_PASS);
	assert_true(g.row[PP_GATE_MEMORY].run);
	needs(g.row[PP_GATE_MEMORY].claim, "GPU memory moves over RDMA");
	needs(g.row[PP_GATE_MEMORY].evidence, "1 pair, 15 measurements; 0 of");
	assert_null(g.row[PP_GATE_MEMORY].next);
	assert_null(g.row[PP_GATE_MEMORY].raise);
	pp_gates_done(&g);
	b = made_bench();
	made_simulated(b);
	memory_row(&m, b, &g);
	assert_int_equal(g.row[PP_GATE_MEMORY].verdict, PP_UNKNOWN);
	needs(g.row[PP_GATE_MEMORY].claim, "chain exercised in simulation");
	needs(g.row[PP_GATE_MEMORY].evidence, "simulated: ");
	needs(g.row[PP_GATE_MEMORY].raise, "a run on hardware");
	assert_int_equal(g.verdict, PP_UNKNOWN);
	pp_gates_done(&g);
	b = made_bench();
	made_find(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20)->counters[2].delta = 9;
	memory_row(&m, b, &g);
	assert_int_equal(g.row[PP_GATE_MEMORY].verdict, PP_DEGRADED);
	needs(g.row[PP_GATE_MEMORY].raise, "no growth of out_of_sequence");
	pp_gates_done(&g);
	b = made_bench();
	made_find(b, PP_RUNG_HOST, PP_BANDWIDTH, 4 << 20)->wrong = 9;
	memory_row(&m, b, &g);
	assert_int_equal(g.verdict, PP_FAIL);
	pp_gates_done(&g);
	machine_done(&m);
}

/* Bytes that rdma_rxe carried are no hardware's, and no simulation that somebody asked for. */
static void test_memory_software(void **state)
{
	struct machine m;
	struct pp_bench *b = made_bench();
	struct pp_gates g;

	(void)state;
	machine_good(&m);
	for (unsigned int i = 0; i < 2; i++) {
		b->pairs[0].end[i].hca = "virtual/rxe0";
		b->pairs[0].end[i].driver = "rdma_rxe";
	}
	memory_row(&m, b, &g);
	assert_int_equal(g.row[PP_GATE_MEMORY].verdict, PP_UNKNOWN);
	needs(g.row[PP_GATE_MEMORY].claim, "rdma_rxe is software in the kernel");
	needs(g.row[PP_GATE_MEMORY].evidence, "rdma_rxe: 1 pair");
	needs(g.row[PP_GATE_MEMORY].raise, "a run on hardware, with a peer");
	pp_gates_done(&g);
	machine_done(&m);
}

/* Of a device that is not there, or is software, no identity is told that it does not have. */
static void test_identity_told(void **state)
{
	struct pp_findings found;
	struct pp_gates g;
	struct machine m;

	(void)state;
	machine_init(&m);
	machine_set(&m, "0000:02:00.0 hca.rdma_device", "no");
	machine_set(&m, "virtual/rxe0 hca.rdma_device", "yes");
	machine_set(&m, "virtual/rxe0 hca.node_guid", "0000:0000:0000:0009");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	assert_int_equal(pp_gates_judge(&m.facts, &found, &no_runs, PP_GATE_IDENTITY, true, &g), 0);
	needs(g.row[PP_GATE_IDENTITY].evidence,
	      "0 of 2 hcas by BDF, node GUID and firmware; 1 by BDF alone: no RDMA device; 1 by "
	      "node GUID: software");
	pp_gates_done(&g);
	pp_findings_done(&found);
	machine_done(&m);
}

/* On a node without an hca the next step is no peer. */
static void test_memory_without_hca(void **state)
{
	struct pp_findings found;
	struct pp_gates g;
	struct machine m;

	(void)state;
	machine_init(&m);
	machine_set(&m, "node.hcas", "0");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	assert_int_equal(pp_gates_judge(&m.facts, &found, &no_runs, PP_GATE_MEMORY, true, &g), 0);
	needs(g.row[PP_GATE_MEMORY].claim, "unknown (no RDMA device)");
	needs(g.row[PP_GATE_MEMORY].next, "peerpath prove --simulate");
	pp_gates_done(&g);
	pp_findings_done(&found);
	machine_done(&m);
}

/* Who simulates is sent to a node with a device, and not to simulate again. */
static void test_beside_simulation(void **state)
{
	const struct pp_gate_runs simulated = {.simulated = true};
	struct pp_findings found;
	struct pp_gates g;
	struct machine m;

	(void)state;
	machine_init(&m);
	machine_set(&m, "node.hcas", "0");
	machine_set(&m, "node.gpus", "2");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	assert_int_equal(
		pp_gates_judge(&m.facts, &found, &simulated, PP_GATE_APPLICATION, true, &g), 0);
	for (unsigned int i = PP_GATE_MEMORY; i <= PP_GATE_APPLICATION; i++) {
		assert_int_equal(g.row[i].verdict, PP_UNKNOWN);
		needs(g.row[i].evidence, "none: what ran here ran in simulation");
	}
	for (unsigned int i = PP_GATE_MEMORY; i <= PP_GATE_LIBRARY; i++) {
		needs(g.row[i].claim, "unknown (no RDMA device)");
		needs(g.row[i].raise, "run on a node that has an RDMA device");
		assert_string_equal(g.row[i].next, "peerpath check --details");
	}
	pp_gates_done(&g);
	/* With a device it is the way that it is without a simulation. */
	machine_set(&m, "node.hcas", "2");
	assert_int_equal(pp_gates_judge(&m.facts, &found, &simulated, PP_GATE_LIBRARY, true, &g),
			 0);
	assert_string_equal(g.row[PP_GATE_MEMORY].next, "peerpath prove --peer HOST");
	needs(g.row[PP_GATE_LIBRARY].next, "peerpath nccl run --controls");
	pp_gates_done(&g);
	/* What was not asked for may be simulated yet. */
	machine_set(&m, "node.hcas", "0");
	assert_int_equal(pp_gates_judge(&m.facts, &found, &simulated, PP_GATE_MEMORY, true, &g), 0);
	assert_false(g.row[PP_GATE_LIBRARY].run);
	assert_string_equal(g.row[PP_GATE_LIBRARY].next, "peerpath prove --simulate");
	pp_gates_done(&g);
	pp_findings_done(&found);
	machine_done(&m);
}

static void test_prerequisites_named(void **state)
{
	struct pp_prerequisites all;
	struct machine m;

	(void)state;
	machine_good(&m);
	machine_set(&m, "0000:11:00.0 gpu.dmabuf_supported", "? no CUDA driver");
	assert_int_equal(pp_prerequisites_examine(&m.facts, &m.arena, &all), 0);
	assert_string_equal(all.list[0].name, "NVIDIA kernel module is open");
	assert_int_equal(all.list[0].state, PP_TRUE);
	assert_string_equal(all.list[2].fact, "gpu.dmabuf_supported");
	assert_int_equal(all.list[2].state, PP_OPEN);
	assert_string_equal(all.list[2].value, "1 of 2; 1 unknown: no CUDA driver");
	assert_string_equal(all.list[4].value, "2 of 2");
	machine_set(&m, "0000:02:00.0 hca.rdma_device", "no");
	machine_set(&m, "0000:12:00.0 hca.rdma_device", "no");
	assert_int_equal(pp_prerequisites_examine(&m.facts, &m.arena, &all), 0);
	assert_int_equal(all.list[4].state, PP_OPEN); /* nothing lacks one where nothing is */
	assert_string_equal(all.list[4].value, "unknown: no hca");
	machine_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_node_passes),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_rail_choice_must_be_known),
		cmocka_unit_test(test_missing_fact_never_helps),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_software_device),
		cmocka_unit_test(test_peermem_way),
		cmocka_unit_test(test_probe_raises),
		cmocka_unit_test(test_probe_refused),
		cmocka_unit_test(test_probe_of_pairs),
		cmocka_unit_test(test_words_of_what_is_there),
		cmocka_unit_test(test_library_without_gpu),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_without_hca),
		cmocka_unit_test(test_beside_simulation),
		cmocka_unit_test(test_memory_software),
		cmocka_unit_test(test_identity_told),
		cmocka_unit_test(test_prerequisites_named),
	};

	return cmocka_run_group_tests_name("gate", tests, load, unload);
}
