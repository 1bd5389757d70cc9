/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/scrub_program.h"

#include <string.h>

#include "base/compiler.h"
#include "bundle/scrub_text.h"
#include "base/banned.h"

/* As the kernel cuts them, at 15 bytes. Digits and dots may follow. */
static const char *const programs[] = {
	"all_gather_perf",
	"all_reduce_perf",
	"alltoall_perf",
	"bash",
	"broadcast_perf",
	"cat",
	"containerd-shim",
	"dash",
	"dcgmi",
	"dockerd",
	"fi_pingpong",
	"hydra_pmi_proxy",
	"ib_atomic_bw",
	"ib_atomic_lat",
	"ib_read_bw",
	"ib_read_lat",
	"ib_send_bw",
	"ib_send_lat",
	"ib_write_bw",
	"ib_write_lat",
	"ibacm",
	"ibv_devices",
	"ibv_devinfo",
	"ibv_rc_pingpong",
	"ibv_srq_pingpon",
	"ibv_uc_pingpong",
	"ibv_ud_pingpong",
	"iwpmd",
	"java",
	"julia",
	"kubelet",
	"mpiexec",
	"mpirun",
	"nv-hostengine",
	"nvidia-cuda-mps",
	"nvidia-persiste",
	"nvidia-smi",
	"opensm",
	"orted",
	"orterun",
	"peerpath",
	"perl",
	"prte",
	"prted",
	"pt_main_thread",
	"python",
	"reduce_perf",
	"reduce_scatter_",
	"rping",
	"ruby",
	"sendrecv_perf",
	"sh",
	"sleep",
	"slurmstepd",
	"srp_daemon",
	"srun",
	"systemd",
	"torchrun",
	"ucmatose",
	"ucx_info",
	"ucx_perftest",
	"udaddy",
};

/* Words of the paths that systemd, Slurm, container engines and distributions make. */
static const char *const words[] = {
	"app",	     "apptainer",  "besteffort",   "bin",	 "burstable", "cgroup",
	"container", "containerd", "cri",	   "crio",	 "cuda",      "docker",
	"escape",    "guaranteed", "init",	   "job",	 "k8s",	      "kubelet",
	"kubepods",  "lib",	   "lib64",	   "libexec",	 "libpod",    "local",
	"lxc",	     "machine",	   "mpirun",	   "node",	 "nvidia",    "opt",
	"payload",   "peerpath",   "persistenced", "pod",	 "podman",    "python",
	"root",	     "sbin",	   "scope",	   "service",	 "session",   "shim",
	"slice",     "slurm",	   "slurmd",	   "slurmstepd", "special",   "ssh",
	"sshd",	     "step",	   "system",	   "systemd",	 "task",      "uid",
	"unified",   "user",	   "usr",
};

/* @more: digits and dots may follow. */
static bool is_listed(const char *const *list, size_t n, const char *text, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		size_t known = strlen(list[i]);

		if (known > len || strncmp(list[i], text, known) != 0)
			continue;
		while (known < len &&
		       ((text[known] >= '0' && text[known] <= '9') || text[known] == '.'))
			known++;
		if (known == len)
			return true;
	}
	return false;
}

static unsigned int hash(const struct pp_scrub_map *m, char purpose, const char *text, size_t len)
{
	return (unsigned int)(pp_scrub_hash(m, purpose, text, len) & 0xffffff);
}

size_t pp_scrub_program(const struct pp_scrub_map *m, const char *name, size_t len,
			struct pp_buf *out)
{
	if (!len || is_listed(programs, PP_ARRAY_LEN(programs), name, len)) {
		pp_buf_add(out, name, len);
		return 0;
	}
	pp_buf_printf(out, "prog-%06x", hash(m, 'g', name, len));
	return 1;
}

static bool is_number(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return true;
}

size_t pp_scrub_parts(const struct pp_scrub_map *m, const char *path, size_t len,
		      struct pp_buf *out)
{
	size_t replaced = 0, n;

	for (size_t i = 0; i < len; i += n) {
		for (n = 0; i + n < len &&
			    (pp_scrub_is_word(path[i + n]) || (unsigned char)path[i + n] >= 0x80);)
			n++;
		if (!n) {
			n = 1;
			pp_buf_char(out, path[i]);
		} else if (is_number(path + i, n) ||
			   is_listed(words, PP_ARRAY_LEN(words), path + i, n)) {
			pp_buf_add(out, path + i, n);
		} else {
			pp_buf_printf(out, "x%06x", hash(m, 'c', path + i, n));
			replaced++;
		}
	}
	return replaced;
}
