/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small machine, judged by three libraries' rules. The expected words follow from their
 * sources: NCCL 2.30 graph/{xml,topo,paths}.cc, UCX ucs/sys/topo, NVSHMEM src/host/topo.
 */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "node/choice.h"
#include "node/smi_compare.h"

enum {
	ROOT_PORT,
	UPPER,
	DOWN_GPU,
	DOWN_NIC,
	DOWN_LOWER,
	GPU,
	SIBLING, /* function 1 of the GPU's slot */
	NEAR,
	LOWER,
	DOWN_LOWER_NIC,
	DOWN_LOWER_GPU,
	CASCADED,
	DEEP_GPU,
	ROOT_PORT_2,
	OTHER_PORT,
	ROOT_PORT_80,
	SAME_NODE,
	ROOT_PORT_C0,
	OTHER_NODE,
	VMD,
	DEVICES
};

static const struct {
	const char *bdf;
	int parent;
	const char *host_bridge;
	int numa;
} places[DEVICES] = {
	[ROOT_PORT] = {"0000:00:01.0", -1, "/sys/devices/pci0000:00", 0},
	[UPPER] = {"0000:01:00.0", ROOT_PORT},
	[DOWN_GPU] = {"0000:02:00.0", UPPER},
	[DOWN_NIC] = {"0000:02:01.0", UPPER},
	[DOWN_LOWER] = {"0000:02:02.0", UPPER},
	[GPU] = {"0000:03:00.0", DOWN_GPU},
	[SIBLING] = {"0000:03:00.1", DOWN_GPU},
	[NEAR] = {"0000:04:00.0", DOWN_NIC},
	[LOWER] = {"0000:05:00.0", DOWN_LOWER},
	[DOWN_LOWER_NIC] = {"0000:06:00.0", LOWER},
	[DOWN_LOWER_GPU] = {"0000:06:01.0", LOWER},
	[CASCADED] = {"0000:07:00.0", DOWN_LOWER_NIC},
	[DEEP_GPU] = {"0000:08:00.0", DOWN_LOWER_GPU},
	[ROOT_PORT_2] = {"0000:00:02.0", -1, "/sys/devices/pci0000:00", 0},
	[OTHER_PORT] = {"0000:09:00.0", ROOT_PORT_2},
	[ROOT_PORT_80] = {"0000:80:01.0", -1, "/sys/devices/pci0000:80", 0},
	[SAME_NODE] = {"0000:81:00.0", ROOT_PORT_80},
	[ROOT_PORT_C0] = {"0000:c0:01.0", -1, "/sys/devices/pci0000:c0", 1},
	[OTHER_NODE] = {"0000:c1:00.0", ROOT_PORT_C0},
	[VMD] = {"10000:01:00.0", -1, "/sys/devices/pci10000:00", 0},
};

struct machine {
	struct pp_node n;
	struct pp_pci_dev dev[DEVICES];
	const char *bridges[DEVICES];
};

static struct pp_object *add(struct machine *m, enum pp_kind kind, int at)
{
	struct pp_object *o = pp_object_add(&m->n.facts, kind, places[at].bdf);

	assert_non_null(o);
	o->pci = at;
	return o;
}

static void add_pairs(struct machine *m)
{
	struct pp_object *gpu = NULL, *hca, *pair;

	while ((gpu = pp_object_next(&m->n.facts, PP_GPU, gpu))) {
		hca = NULL;
		while ((hca = pp_object_next(&m->n.facts, PP_HCA, hca))) {
			pair = pp_object_add(
				&m->n.facts, PP_PAIR,
				pp_arena_printf(&m->n.arena, "%s/%s", gpu->id, hca->id));
			pair->parent = gpu;
			pair->peer = hca;
		}
	}
}

static struct machine *make(void)
{
	static const int nics[] = {SIBLING, NEAR, CASCADED, OTHER_PORT, SAME_NODE, OTHER_NODE, VMD};
	struct machine *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->n.arena = PP_ARENA(1 << 20);
	m->n.facts.arena = &m->n.arena;
	m->n.self = pp_object_add(&m->n.facts, PP_NODE, "node");
	pp_fact_str(&m->n.facts, m->n.self, PP_F_KERNEL_ARCH, "x86_64", NULL);
	m->n.pci = (struct pp_pci){.dev = m->dev, .n = DEVICES, .online_nodes = 2};
	m->n.pci.bridges = m->bridges;
	for (int i = 0; i < DEVICES; i++) {
		struct pp_pci_dev *d = &m->dev[i];
		int up = places[i].parent;

		assert_int_equal(pp_bdf_parse(places[i].bdf, &d->bdf), 0);
		d->parent = up;
		d->depth = up < 0 ? 0 : m->dev[up].depth + 1;
		d->numa = up < 0 ? places[i].numa : m->dev[up].numa;
		d->host_bridge = up < 0 ? i : m->dev[up].host_bridge;
		m->bridges[i] = places[i].host_bridge;
		d->path = pp_arena_printf(&m->n.arena, "%s/%s",
					  up < 0 ? places[i].host_bridge : m->dev[up].path,
					  places[i].bdf);
		d->vendor = 0x10b5;
	}
	add(m, PP_GPU, GPU);
	add(m, PP_GPU, DEEP_GPU);
	for (size_t i = 0; i < PP_ARRAY_LEN(nics); i++)
		add(m, PP_HCA, nics[i]);
	add_pairs(m);
	return m;
}

static void drop(struct machine *m)
{
	pp_arena_done(&m->n.arena);
	free(m);
}

static const char *word(const struct machine *m, int gpu, int nic, enum pp_fact_id id)
{
	static char text[256];
	char name[64];
	struct pp_object *o;

	(void)snprintf(name, sizeof(name), "%s/%s", places[gpu].bdf, places[nic].bdf);
	o = pp_object_find(&m->n.facts, PP_PAIR, name);
	assert_non_null(o);
	return pp_fact_text(pp_fact_get(o, id), text, sizeof(text));
}

#define NO_GDR "no GPUDirect RDMA (farther than P2C)"

static void test_three_rules(void **state)
{
	static const struct {
		int gpu, nic;
		const char *nccl, *gdr, *ucx, *nvshmem;
	} want[] = {
		{GPU, SIBLING, "PIX, GPUDirect RDMA", "yes", "0 ns, ", "PXB"},
		{GPU, NEAR, "PIX, GPUDirect RDMA", "yes", "0 ns, ", "PIX"},
		{GPU, CASCADED, "PXB, GPUDirect RDMA", "yes", "0 ns, ", "PIX"},
		{DEEP_GPU, NEAR, "PXB, GPUDirect RDMA", "yes", "0 ns, ", "PXB"},
		{GPU, OTHER_PORT, "PHB, " NO_GDR, "no", "300 ns, 3500 MB/s", "PHB"},
		/* Six components differ: 19200 / 6. */
		{DEEP_GPU, OTHER_PORT, "PHB, " NO_GDR, "no", "300 ns, 3200 MB/s", "PHB"},
		{GPU, SAME_NODE, "PHB, " NO_GDR, "no", "300 ns, 17000 MB/s", "NODE"},
		{GPU, OTHER_NODE, "SYS, " NO_GDR, "no", "500 ns, 220 MB/s", "SYS"},
		{GPU, VMD, "unknown: a PCI domain", "unknown: a PCI domain",
		 "unknown: a PCI domain", "unknown: a PCI domain"},
	};
	struct machine *m = make();

	(void)state;
	pp_choice_facts(&m->n);
	for (size_t i = 0; i < PP_ARRAY_LEN(want); i++) {
		const char *got[] = {want[i].nccl, want[i].gdr, want[i].ucx, want[i].nvshmem};
		enum pp_fact_id ids[] = {PP_F_PAIR_NCCL, PP_F_PAIR_NCCL_GDR, PP_F_PAIR_UCX,
					 PP_F_PAIR_NVSHMEM};

		for (unsigned int k = 0; k < 4; k++) {
			const char *is = word(m, want[i].gpu, want[i].nic, ids[k]);

			if (strncmp(is, got[k], strlen(got[k])) != 0)
				fail_msg("%s/%s: '%s', want '%s'", places[want[i].gpu].bdf,
					 places[want[i].nic].bdf, is, got[k]);
		}
	}
	drop(m);
}

/* Broadcom's two levels of one chip are one switch to NCCL. */
static void test_fused(void **state)
{
	struct machine *m = make();

	(void)state;
	for (int i = UPPER; i <= LOWER; i += LOWER - UPPER) {
		m->dev[i].vendor = m->dev[i].subsystem_vendor = 0x1000;
		m->dev[i].device = 0xc030;
		m->dev[i].subsystem_device = i == UPPER ? 0x0123 : 0x1123;
	}
	pp_choice_facts(&m->n);
	assert_string_equal(word(m, GPU, CASCADED, PP_F_PAIR_NCCL), "PIX, GPUDirect RDMA");
	drop(m);
}

static void test_unreadable(void **state)
{
	struct machine *m = make();
	struct pp_object *gpu = pp_object_find(&m->n.facts, PP_GPU, places[GPU].bdf);

	(void)state;
	for (int i = ROOT_PORT_C0; i <= OTHER_NODE; i++)
		m->dev[i].numa = PP_UNREADABLE;
	m->dev[LOWER].vendor = 0;
	pp_fact_bool(&m->n.facts, gpu, PP_F_GPU_GDR, false, NULL);
	pp_choice_facts(&m->n);
	assert_memory_equal(word(m, GPU, OTHER_NODE, PP_F_PAIR_NCCL), "unknown: numa_node", 18);
	assert_memory_equal(word(m, GPU, OTHER_NODE, PP_F_PAIR_UCX), "unknown: numa_node", 18);
	assert_memory_equal(word(m, GPU, OTHER_NODE, PP_F_PAIR_NVSHMEM), "unknown: numa_node", 18);
	/* Within one host bridge the node does not matter. */
	assert_memory_equal(word(m, GPU, OTHER_PORT, PP_F_PAIR_NCCL), "PHB, ", 5);
	/* A switch without a model may be half of one that NCCL fuses. */
	assert_memory_equal(word(m, GPU, CASCADED, PP_F_PAIR_NCCL), "unknown: PIX or PXB", 19);
	assert_string_equal(word(m, DEEP_GPU, NEAR, PP_F_PAIR_NCCL_GDR), "yes");
	assert_string_equal(word(m, GPU, NEAR, PP_F_PAIR_NCCL),
			    "PIX, no GPUDirect RDMA (the GPU is not able to)");
	assert_string_equal(word(m, GPU, NEAR, PP_F_PAIR_NCCL_GDR), "no");
	drop(m);
}

static void test_coherent_link(void **state)
{
	struct machine *m = make();
	struct pp_object *gpu = pp_object_find(&m->n.facts, PP_GPU, places[GPU].bdf);

	(void)state;
	pp_fact_str(&m->n.facts, m->n.self, PP_F_KERNEL_ARCH, "aarch64", NULL);
	pp_fact_bool(&m->n.facts, gpu, PP_F_GPU_C2C, true, NULL);
	pp_choice_facts(&m->n);
	assert_string_equal(word(m, GPU, OTHER_PORT, PP_F_PAIR_NCCL), "P2C, GPUDirect RDMA");
	assert_memory_equal(word(m, DEEP_GPU, OTHER_PORT, PP_F_PAIR_NCCL), "unknown: whether", 16);
	assert_memory_equal(word(m, DEEP_GPU, OTHER_NODE, PP_F_PAIR_NCCL), "SYS, no", 7);
	drop(m);
}

static void test_no_tree(void **state)
{
	struct machine *m = make();

	(void)state;
	m->n.pci = (struct pp_pci){.why = "/sys/bus/pci: absent"};
	pp_choice_facts(&m->n);
	assert_string_equal(word(m, GPU, NEAR, PP_F_PAIR_NCCL), "unknown: /sys/bus/pci: absent");
	assert_string_equal(word(m, GPU, NEAR, PP_F_PAIR_UCX), "unknown: /sys/bus/pci: absent");
	drop(m);
}

/* The text of a fact of the node after comparing with a recorded answer; NULL: none recorded. */
static const char *compared(const char *data, enum pp_fact_id id, unsigned int nvlinks)
{
	static char text[1024];
	struct machine *m = make();
	struct pp_record *record = NULL;
	struct pp_error err = {0};
	struct pp_object *o = NULL;
	char *doc = NULL;
	int16_t links[4] = {0, (int16_t)nvlinks, (int16_t)nvlinks, 0};
	int i = 0;

	while ((o = pp_object_next(&m->n.facts, PP_GPU, o)))
		pp_fact_int(&m->n.facts, o, PP_F_GPU_INDEX, i++, NULL);
	o = pp_object_find(&m->n.facts, PP_HCA, places[NEAR].bdf);
	pp_fact_str(&m->n.facts, o, PP_F_HCA_NAME, "mlx5_0", NULL);
	o = pp_object_find(&m->n.facts, PP_HCA, places[OTHER_NODE].bdf);
	pp_fact_str(&m->n.facts, o, PP_F_HCA_NAME, "mlx5_1", NULL);
	m->n.nvlinks = links;
	m->n.n_gpus = 2;
	assert_int_equal(pp_record_new(1 << 20, &record), 0);
	assert_true(asprintf(&doc, "{\"outcome\": \"answered\", \"data\": %s}",
			     data ? data : "{}") > 0);
	if (data)
		assert_int_equal(
			pp_record_put(record, PP_ENTRY_ANSWER, "nvidia-smi", doc, strlen(doc), 0),
			0);
	assert_int_equal(pp_source_replay_record(record, &m->n.src, &err), 0);
	pp_smi_compare(&m->n);
	(void)pp_fact_text(pp_fact_get(m->n.self, id), text, sizeof(text));
	pp_source_free(m->n.src);
	free(doc);
	drop(m);
	return text;
}

#define ANSWER(text) "{\"path\": \"/usr/bin/nvidia-smi\", \"text\": \"" text "\"}"
#define MATRIX(gpu1_nic1, nic1_gpu1)                              \
	ANSWER("\\tGPU0\\tGPU1\\tNIC0\\tNIC1\\tCPU Affinity\\n"   \
	       "GPU0\\t X \\tNV18\\tPIX\\tSYS\\t0-7\\n"           \
	       "GPU1\\tNV18\\t X \\tPXB\\t" gpu1_nic1 "\\t0-7\\n" \
	       "NIC0\\tPIX\\tPXB\\t X \\tSYS\\n"                  \
	       "NIC1\\tSYS\\t" nic1_gpu1 "\\tSYS\\t X \\n"        \
	       "NIC Legend:\\n  NIC0: mlx5_0\\n  NIC1: mlx5_1\\n")

static void test_second_witness(void **state)
{
	const enum pp_fact_id differences = PP_F_SMI_DIFFERENCES;

	(void)state;
	assert_string_equal(compared(MATRIX("SYS", "SYS"), differences, 18), "none");
	assert_string_equal(compared(MATRIX("SYS", "SYS"), PP_F_NVIDIA_SMI, 18),
			    "/usr/bin/nvidia-smi");
	assert_string_equal(compared(MATRIX("SYS", "SYS"), differences, 17),
			    "0000:03:00.0 and 0000:08:00.0: nvidia-smi NV18, here 17 NVLinks");
	assert_string_equal(compared(MATRIX("NODE", "NODE"), differences, 18),
			    "0000:08:00.0 and 0000:c1:00.0: nvidia-smi NODE, here SYS");
	assert_string_equal(compared(MATRIX("SYS", "PHB"), differences, 18),
			    "0000:08:00.0 and 0000:c1:00.0: nvidia-smi SYS/PHB, here SYS");
	assert_string_equal(compared("{}", differences, 18),
			    "unknown: nvidia-smi is not in PATH of this process");
	assert_string_equal(compared(NULL, differences, 18), "unknown: not in the recording");
	assert_memory_equal(compared(ANSWER("No devices were found"), differences, 18),
			    "unknown: nvidia-smi topo -m: no matrix", 38);
	assert_memory_equal(compared(ANSWER("\\tGPU7\\tGPU8\\nGPU7\\tX\\tSYS\\nGPU8\\tSYS\\tX\\n"),
				     differences, 18),
			    "unknown: none of its 2 devices", 30);
}

static void write_tool(const char *dir, const char *body)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/nvidia-smi", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fprintf(f, "#!/bin/sh\n%s\n", body);
	(void)fclose(f);
	assert_int_equal(chmod(path, 0700), 0);
}

/* Asks a live source with PATH set to a made tool's directory. */
static void ask_tool(const char *path, const char *want_text, const char *want_detail)
{
	struct pp_question q = pp_smi_question;
	struct pp_source *src = NULL;
	struct pp_error err = {0};
	struct pp_answer a;
	const char *text;

	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(pp_source_live(&src, &err), 0);
	q.deadline = 2 * PP_SECOND;
	assert_int_equal(pp_ask(src, &q, &a), 0);
	text = pp_answer_str(a.data, "text");
	if (want_text && (!text || strcmp(text, want_text) != 0))
		fail_msg("text '%s', want '%s' (%s)", text ? text : "none", want_text, a.detail);
	if (want_detail && !strstr(a.detail, want_detail))
		fail_msg("'%s' does not say '%s'", a.detail, want_detail);
	pp_answer_done(&a);
	pp_source_free(src);
}

static void test_tool(void **state)
{
	char dir[] = "/tmp/peerpath-test-XXXXXX", path[512], *kept = strdup(getenv("PATH"));
	pid_t pid;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), ":relative:/nonexistent:%s:/usr/bin:/bin", dir);
	write_tool(dir, "echo \"$1 $2\"; echo noise >&2");
	ask_tool(path, "topo -m\n", NULL);
	write_tool(dir, "exit 9");
	ask_tool(path, NULL, "ended with status 9");
	write_tool(dir, "kill -SEGV $$");
	ask_tool(path, NULL, "ended by signal 11");
	write_tool(dir, "exec head -c 300000 /dev/zero");
	ask_tool(path, NULL, "more than 256 KiB");
	(void)snprintf(path, sizeof(path), "echo $$ >%s/pid; exec sleep 60", dir);
	write_tool(dir, path);
	(void)snprintf(path, sizeof(path), "%s:/usr/bin:/bin", dir);
	ask_tool(path, NULL, "nvidia-smi topo -m did not return in 2000 ms");
	/* The tool does not outlive the deadline. */
	(void)snprintf(path, sizeof(path), "%s/pid", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(path, sizeof(path), f));
	(void)fclose(f);
	pid = (pid_t)strtoimax(path, NULL, 10);
	for (unsigned int i = 0; i < 100 && !kill(pid, 0); i++)
		(void)usleep(20000);
	assert_int_equal(kill(pid, 0), -1);
	(void)snprintf(path, sizeof(path), "%s/nvidia-smi", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/pid", dir);
	(void)unlink(path);
	(void)rmdir(dir);
	assert_int_equal(setenv("PATH", kept, 1), 0);
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_rules), cmocka_unit_test(test_fused),
		cmocka_unit_test(test_unreadable),  cmocka_unit_test(test_coherent_link),
		cmocka_unit_test(test_no_tree),	    cmocka_unit_test(test_second_witness),
		cmocka_unit_test(test_tool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
