/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno x call x environment: what a registration that was refused most probably means. Each row is
 * one of the table that was drawn up from the kernel's, rdma-core's and the GPU driver's sources
 * and from public reports; the environment is a node's facts. The first diagnosis must be the
 * row's, and where the facts speak against the usual cause that one must be gone.
 */
#include "explain_rules.h"
#include "facts_text.h"

#include "base/compiler.h"

#define PLAIN                                \
	"kernel.release = 6.8.0\n"           \
	"kernel.dmabuf_umem = yes\n"         \
	"kernel.config.infiniband_odp = y\n" \
	"nvidia.loaded = yes\n"              \
	"nvidia.flavour = open\n"            \
	"nv_peer_mem.loaded = no\n"          \
	"limits.cap_ipc_lock = no\n"         \
	"limits.user_namespace = no\n"       \
	"kmsg.dmabuf_attach_refused = no\n"  \
	"0000:01:00.0 gpu.name = NVIDIA H200\n"
#define NO_PEERMEM "nvidia_peermem.loaded = no\n"
#define PEERMEM	   "nvidia_peermem.loaded = yes\nnvidia_peermem.client = yes\n"
#define BAR1_FREE                                            \
	"0000:01:00.0 gpu.bar1_total_bytes = 274877906944\n" \
	"0000:01:00.0 gpu.bar1_free_bytes = 274000000000\n"
#define BAR1_FULL                                         \
	"0000:01:00.0 gpu.bar1_total_bytes = 268435456\n" \
	"0000:01:00.0 gpu.bar1_free_bytes = 8388608\n"
#define ONE_RXE	 "node.hcas = 1\nvirtual/rxe0 hca.driver = rdma_rxe\n"
#define ONE_MLX5 "node.hcas = 1\n0000:02:00.0 hca.driver = mlx5_core\n"
#define RXE_AND_MLX5 \
	"virtual/rxe0 hca.driver = rdma_rxe\n0000:02:00.0 hca.driver = mlx5_core\nnode.hcas = 2\n"
#define LOCKS_ALL   "limits.memlock_bytes = -1\nlimits.container = none\n"
#define LOCKS_64K   "limits.memlock_bytes = 65536\n"
#define LOCKS_NONE  "limits.memlock_bytes = 0\n"
#define NO_RDMA_MAX "limits.cgroup_rdma_max = none\n"
#define RDMA_MAX    "limits.cgroup_rdma_max = mlx5_0 hca_handle=2 hca_object=20\n"

static const struct {
	const char *text, *facts;
	const char *first; /* "": nothing is wrong, or nothing known */
	const char *gone;  /* what the facts speak against; NULL */
} rows[] = {
	/* 9 EBADF */
	{"ibv_reg_dmabuf_mr of the exported descriptor failed: errno 9", BAR1_FREE LOCKS_ALL,
	 "dmabuf-descriptor-gone", NULL},
	/* 12 ENOMEM of a DMA-BUF: BAR1, then the IOMMU or keys; never locked memory */
	{"ibv_reg_dmabuf_mr of GPU memory: errno 12", BAR1_FULL LOCKS_64K, "bar1-exhausted-dmabuf",
	 "memlock-small"},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 12", BAR1_FREE LOCKS_64K, "dmabuf-not-mapped",
	 "bar1-exhausted-dmabuf"},
	/* 12 ENOMEM by address: locked memory, BAR1, keys */
	{"ibv_reg_mr of host memory: errno 12", LOCKS_64K BAR1_FREE, "memlock-small", NULL},
	{"ibv_reg_mr of GPU memory (peermem): errno 12", LOCKS_64K BAR1_FREE PEERMEM,
	 "memlock-small", "bar1-exhausted-peermem"},
	{"ibv_reg_mr of GPU memory (peermem): errno 12", LOCKS_ALL BAR1_FULL PEERMEM,
	 "bar1-exhausted-peermem", "memlock-small"},
	{"ibv_reg_mr of host memory: errno 12", LOCKS_ALL BAR1_FREE, "device-out-of-keys",
	 "memlock-small"},
	/* 11 EAGAIN */
	{"ibv_reg_mr of host memory: errno 11", RDMA_MAX, "cgroup-rdma-limit", NULL},
	{"ibv_open_device: errno 11", RDMA_MAX, "cgroup-rdma-limit", NULL},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 11", RDMA_MAX, "cgroup-rdma-limit", NULL},
	{"ibv_reg_mr of host memory: errno 11", NO_RDMA_MAX, "mkey-exhausted", "cgroup-rdma-limit"},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 11", NO_RDMA_MAX, "mkey-exhausted",
	 "cgroup-rdma-limit"},
	/* 1 EPERM */
	{"ibv_reg_mr of host memory: errno 1", LOCKS_NONE, "memlock-small", NULL},
	/* 13, 2, 1 of the device file */
	{"ibv_open_device: errno 13", "0000:02:00.0 hca.uverbs_access = no\n", "open-uverbs-denied",
	 NULL},
	{"ibv_open_device: errno 2", "0000:02:00.0 hca.uverbs_access = no\n", "open-uverbs-denied",
	 NULL},
	{"ibv_open_device: errno 1", "0000:02:00.0 hca.uverbs_access = no\n", "open-uverbs-denied",
	 NULL},
	/* 14 EFAULT of a GPU's address, in the order of the table */
	{"ibv_reg_mr of GPU memory: errno 14", NO_PEERMEM BAR1_FREE, "peermem-missing", NULL},
	{"ibv_reg_mr of GPU memory: errno 14",
	 "nvidia_peermem.loaded = yes\nnvidia_peermem.client = no\n" BAR1_FREE,
	 "peermem-not-registered", "peermem-missing"},
	{"ibv_reg_mr of GPU memory: errno 14", PEERMEM BAR1_FULL, "bar1-exhausted-peermem",
	 "peermem-missing"},
	{"ibv_reg_mr of GPU memory: errno 14",
	 PEERMEM BAR1_FREE "0000:01:00.0 gpu.name = NVIDIA GeForce RTX 4090\n", "geforce-gpu",
	 "peermem-missing"},
	{"ibv_reg_mr of GPU memory: errno 14",
	 PEERMEM BAR1_FREE "torch.alloc_conf = expandable_segments:True\n", "vmm-memory",
	 "peermem-missing"},
	{"ibv_reg_mr of host memory: errno 14", NO_PEERMEM, "host-memory-gone", "peermem-missing"},
	/* 22 EINVAL */
	{"ibv_reg_dmabuf_mr of GPU memory: errno 22", BAR1_FREE, "mr-bad-range", NULL},
	{"insmod: ERROR: could not insert module nvidia-peermem.ko: errno 22", NO_PEERMEM,
	 "peermem-load-refused", NULL},
	/* nvidia_p2p_get_pages, as a kretprobe sees it */
	{"nvidia_p2p_get_pages returned -22", PEERMEM BAR1_FREE, "p2p-pages-refused", NULL},
	{"nvidia_p2p_get_pages returned -16", PEERMEM BAR1_FREE, "p2p-pages-refused", NULL},
	{"nvidia_p2p_get_pages returned -19", PEERMEM BAR1_FREE, "p2p-pages-refused", NULL},
	{"nvidia_p2p_get_pages returned -5", PEERMEM BAR1_FREE, "p2p-pages-refused", NULL},
	{"nvidia_p2p_get_pages returned -524", PEERMEM BAR1_FREE, "p2p-not-supported",
	 "dmabuf-topology-refused"},
	/* 93, 95 */
	{"ibv_reg_dmabuf_mr of GPU memory: errno 93", "kernel.dmabuf_umem = no\n",
	 "dmabuf-unsupported-kernel", NULL},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 95", BAR1_FREE, "dmabuf-unsupported-provider",
	 NULL},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 95", "kernel.config.infiniband_odp = n\n",
	 "odp-unsupported-mlx5", NULL},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 95", ONE_RXE, "dmabuf-software-device",
	 "odp-unsupported-mlx5"},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 95", ONE_MLX5, "dmabuf-unsupported-provider",
	 "dmabuf-software-device"},
	{"ibv_reg_dmabuf_mr of GPU memory: errno 95", RXE_AND_MLX5, "dmabuf-unsupported-provider",
	 "dmabuf-software-device"},
	/* 524 */
	{"ibv_reg_dmabuf_mr of GPU memory: errno 524", "kmsg.dmabuf_attach_refused = yes\n",
	 "dmabuf-topology-refused", NULL},
	{"ibv_reg_dmabuf_mr of GPU memory: Unknown error 524", "", "dmabuf-topology-refused", NULL},
	/* the export */
	{"cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801)",
	 "nvidia.flavour = proprietary\n", "gpu-cannot-export", NULL},
	{"cuMemGetHandleForAddressRange: CUDA_ERROR_INVALID_VALUE (1)", BAR1_FREE, "mr-bad-range",
	 NULL},
	{"cuMemGetHandleForAddressRange: CUDA_ERROR_INVALID_VALUE (1)",
	 "torch.alloc_conf = expandable_segments:True\n", "vmm-memory", NULL},
	{"cuMemGetHandleForAddressRange: errno 24", BAR1_FREE, "too-many-files", NULL},
	/* completions that a registration is to blame for */
	{"ibv_poll_cq: completion with status 4, vendor error 0x51", "", "wc-local-protection",
	 NULL},
	{"ibv_poll_cq: completion with status 10, vendor error 0x88", "", "wc-remote-access", NULL},
	{"ibv_poll_cq: completion with status 12, vendor error 0x81", "", "wc-retry-exceeded",
	 NULL},
	{"ibv_poll_cq: completion with status 13", "", "wc-rnr", NULL},
};

static bool names(const struct pp_explanation *x, const char *id)
{
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->list[i].known->rule.id, id))
			return true;
	return false;
}

/* True when the row is as it should be. */
static bool is_right(const struct pp_known_set *known, size_t i)
{
	struct pp_explanation x;
	struct pp_explain *e;
	struct machine m;
	const char *first;
	bool right;

	machine_init(&m);
	assert_true(machine_read(&m, "[m]\n" PLAIN, "m") > 0);
	if (rows[i].facts[0]) {
		char facts[1024];

		(void)snprintf(facts, sizeof(facts), "[m]\n%s", rows[i].facts);
		assert_true(machine_read(&m, facts, "m") > 0);
	}
	assert_int_equal(pp_explain_new(known, &e), 0);
	pp_explain_here(e);
	pp_explain_push(e, rows[i].text, strlen(rows[i].text));
	assert_int_equal(pp_explain_finish(e, &m.facts, &x), 0);
	first = x.n ? x.list[0].known->rule.id : "";
	right = !strcmp(first, rows[i].first) && (!rows[i].gone || !names(&x, rows[i].gone));
	if (!right)
		print_message("\"%s\" with\n%s  %s stands first of %zu, wanted %s%s%s\n",
			      rows[i].text, rows[i].facts, first, x.n, rows[i].first,
			      rows[i].gone ? " and no " : "", rows[i].gone ? rows[i].gone : "");
	pp_explanation_done(&x);
	pp_explain_free(e);
	machine_done(&m);
	return right;
}

static void test_rows(void **state)
{
	unsigned int wrong = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		wrong += !is_right(*state, i);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

	return cmocka_run_group_tests(tests, load, unload);
}
