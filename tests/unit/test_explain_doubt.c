/* SPDX-License-Identifier: Apache-2.0 */
/* When "nothing wrong" may be said, and what several NCCL processes say together. */
#include "explain_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static enum pp_exit answer(const struct pp_known_set *known, const char *text, char ret_first[64])
{
	struct pp_explanation x;
	struct pp_explain *e;
	enum pp_exit code;

	assert_int_equal(pp_explain_new(known, &e), 0);
	pp_explain_push(e, text, strlen(text));
	assert_int_equal(pp_explain_finish(e, NULL, &x), 0);
	code = pp_explanation_exit(&x);
	(void)snprintf(ret_first, 64, "%s", x.n ? x.list[0].known->rule.id : "(none)");
	pp_explanation_done(&x);
	pp_explain_free(e);
	return code;
}

#define NO_PLUGIN "n1:1:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so\n"

static void test_answers(void **state)
{
	static const struct {
		const char *text, *first;
		enum pp_exit code;
	} rows[] = {
		{NO_PLUGIN, "nccl-no-plugin", PP_EXIT_PASS},
		/* an error that no rule knows is not dismissed with what is harmless */
		{NO_PLUGIN "all_reduce_perf: fatal: the moon is in the wrong phase\n",
		 "nccl-no-plugin", PP_EXIT_UNKNOWN},
		{"NCCL version 2.27.3+cuda12.9\nmytest: error: the moon is in the wrong phase\n",
		 "(none)", PP_EXIT_UNKNOWN},
		/* counters and conditions read like errors, and are none */
		{NO_PLUGIN "rx_errors: 0, failed: 0, no error\nit would have failed when full\n",
		 "nccl-no-plugin", PP_EXIT_PASS},
		/* the kernel's log of a healthy machine is full of such words */
		{"[    0.000000] Linux version 6.8.0 (gcc 13)\n"
		 "[    1.200000] ACPI: _OSC evaluation failed (AE_NOT_FOUND)\n",
		 "(none)", PP_EXIT_PASS},
		/* CUDA 12 on a driver of CUDA 11 cannot work; 11.7 on 11.4 can */
		{"n1:1:1 [0] NCCL INFO cudaDriverVersion 11040\nNCCL version 2.18.3+cuda12.1\n",
		 "nccl-old-driver", PP_EXIT_BAD},
		{"n1:1:1 [0] NCCL INFO cudaDriverVersion 11040\nNCCL version 2.14.3+cuda11.7\n",
		 "(none)", PP_EXIT_PASS},
		{"n1:1:1 [0] NCCL INFO cudaDriverVersion 12080\nNCCL version 2.18.3+cuda12.1\n",
		 "(none)", PP_EXIT_PASS},
		/* settings that differ matter where something failed, and between processes */
		{"n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
		 "n2:8:8 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n",
		 "(none)", PP_EXIT_PASS},
		{"n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
		 "n2:8:8 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n"
		 "[rank1]: Watchdog caught collective operation timeout\n",
		 "nccl-settings-differ", PP_EXIT_BAD},
	};
	char first[64];

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		enum pp_exit code = answer(*state, rows[i].text, first);

		if (strcmp(first, rows[i].first) != 0 || code != rows[i].code)
			fail_msg("%s\n%s stands first, exit %d", rows[i].text, first, (int)code);
	}
}

/* Other wordings and releases of what public reports showed: as NCCL's sources and its tests print
 * it. */
static void test_other_wordings(void **state)
{
	static const struct {
		const char *first, *text;
	} rows[] = {
		{"cuda-peers-exhausted", "host:9:9 [3] transport/p2p.cc:238 NCCL WARN Cuda failure "
					 "'peer mapping resources exhausted'\n"
					 "host:9:9 [3] NCCL INFO transport/p2p.cc:340 -> 1\n"},
		{"cuda-peers-exhausted",
		 "RuntimeError: CUDA error: peer mapping resources exhausted\n"
		 "CUDA kernel errors might be asynchronously reported at some other API call\n"},
		{"cuda-peers-exhausted",
		 "cudaDeviceEnablePeerAccess(8, 0) returned cudaErrorTooManyPeers\n"},
		{"gid-wrong",
		 "n1:4:9 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_3\n"
		 "n1:4:9 [0] misc/ibvwrap.cc:160 NCCL WARN Call to ibv_modify_qp failed with 110 "
		 "Connection timed out, on dev mlx5_3:1, curr state INIT, next state RTR, local "
		 "GID index 3, local GID ::ffff:169.254.3.1, remote GID ::ffff:10.0.0.4\n"},
		{"gpu-arch-missing",
		 "NCCL version 2.21.5+cuda12.4\n"
		 "#  Rank  0 Group  0 Pid 1 on h device 0 [0x01] NVIDIA GeForce RTX 5080\n"
		 "h:1:9 [0] enqueue.cc:1402 NCCL WARN Cuda failure 'named symbol not found'\n"},
		{"gpu-p2p-mapping",
		 "[  118.2] NVRM: kbusCreateStaticBar1IOMMUMappingForGpuPair_GH100: IOMMU mapping "
		 "failed from GPU3 to GPU1\n"},
		{"gpu-p2p-mapping",
		 "kernel: NVRM: GPU0 kbusCreateP2PMapping_GM200: P2P type 5 is not supported\n"},
		{"gpu-p2p-mapping", "[  44.1] NVRM: kbusSetP2PMailboxBar1Area_GM200: P2P mailbox "
				    "area size is not set\n"},
		{"nccl-address-empty",
		 "gpu-a12:9001:9050 [1] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ens9f0\n"
		 "gpu-a12:9001:9050 [1] misc/socket.cc:585 NCCL WARN ncclSocketInit: connecting to "
		 "address  with family 0 is neither AF_INET(2) nor AF_INET6(10)\n"},
		{"nccl-algo-forced", "n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Rings\n"
				     "n:1:1 [0] graph/tuning.cc:109 NCCL WARN Unrecognized element "
				     "token \"Rings\" when parsing \"Rings\"\n"},
		{"nccl-ifname-absent",
		 "n7:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ib7\n"
		 "n7:1:1 [0] bootstrap.cc:126 NCCL WARN Bootstrap : no socket interface found\n"},
		{"nccl-ifname-absent", "n7:1:1 [0] bootstrap.cc:577 NCCL WARN no device found "
				       "matching exactly bond9, verify NCCL_OOB_NET_IFNAME\n"},
		{"nccl-no-interface", "7b1c2d:21:21 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no "
				      "socket interface found\n"},
		{"nccl-no-interface", "[0] include/socket.h:390 NCCL WARN Net : Socket creation "
				      "failed : Address family not supported by protocol\n"},
		{"nccl-no-interface", "7b1c2d:21:44 [0] transport/net_socket.cc:61 NCCL WARN "
				      "NET/Socket : no interface found\n"},
		{"nccl-no-plugin", "NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using "
				   "internal implementation\n"},
		{"nccl-no-plugin",
		 "n:1:1 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : "
		 "libnccl-net.so: cannot open shared object file: No such file or directory\n"},
		{"nccl-no-plugin",
		 "n:1:1 [0] NCCL INFO PROFILER/Plugin: Could not find: libnccl-profiler.so. \n"
		 "n:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. \n"},
		{"nccl-old-driver",
		 "n:1:1 [0] NCCL INFO cudaDriverVersion 11020\n"
		 "NCCL version 2.19.3+cuda12.2\n"
		 "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\n"
		 "n:1:1 [0] init.cc:1 NCCL WARN Cuda failure 35 'CUDA driver version is "
		 "insufficient for CUDA runtime version'\n"},
		{"nccl-old-driver", "n:1:1 [0] NCCL INFO cudaDriverVersion 11040\n"
				    "NCCL version 2.21.5+cuda12.4\n"
				    "n:1:1 [0] NCCL INFO Using network Socket\n"
				    "ncclUnhandledCudaError: Call to CUDA function failed.\n"},
		{"nccl-old-driver",
		 "NCCL version 2.14.3+cuda11.7\n"
		 "n: Test NCCL failure common.cu:961 'unhandled cuda error'\n"
		 "n:4:5 [0] enqueue.cc:120 NCCL WARN Cuda failure 'API call is not supported in "
		 "the installed CUDA driver'\n"
		 "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\n"},
		{"nccl-older-than-gpu",
		 "NCCL version 2.25.1+cuda12.8\n"
		 "host:1:2 [1] enqueue.cc:86 NCCL WARN cudaArch 1200 ncclMaxSharedMem 82240 "
		 "exceeds device/fn maxSharedMem 79856\n"
		 "host: Test NCCL failure common.cu:1005 'internal error - please report this "
		 "issue to the NCCL developers / '\n"},
		{"nccl-older-than-gpu",
		 "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353, "
		 "internal error, NCCL version 2.25.1\n"
		 "ncclInternalError: Internal check failed.\n"
		 "Last error:\n"
		 "ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856\n"},
		{"nccl-plugin-not-found",
		 "n:1:1 [0] NCCL INFO TUNER/Plugin: Plugin load returned 11 : /opt/t/libtuner.so: "
		 "cannot open shared object file: No such file or directory : when loading "
		 "/opt/t/libtuner.so\n"},
		{"nccl-plugin-not-found",
		 "n:1:1 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net-ofi.so) returned 2 : "
		 "libnccl-net-ofi.so: cannot open shared object file: No such file or directory\n"},
		{"nccl-plugin-not-found",
		 "n:1:1 [0] NCCL INFO NCCL_PROFILER_PLUGIN set by environment to inspector\n"
		 "n:1:1 [0] NCCL INFO PROFILER/Plugin: Could not find: inspector "
		 "libnccl-profiler-inspector.so\n"},
		{"nccl-ranks-differ",
		 "n2:5:6 [1] transport/net_ib.cc:1150 NCCL WARN NET/IB : req 0/1 tag 7 peer "
		 "10.0.0.9<4441> collective mismatch error, local size 8192 remote size 131072\n"},
		{"nccl-settings-differ",
		 "a:1:1 [0] NCCL INFO NCCL_PROTO set by environment to Simple\n"
		 "b:2:2 [0] NCCL INFO NCCL_PROTO set by environment to LL128\n"
		 "b:2:9 [0] proxy.cc:1 NCCL WARN NET/IB : req 0/1 tag 7 peer 10.0.0.9<4441> "
		 "collective mismatch error, local size 8192 remote size 131072\n"},
		{"nccl-shm-small",
		 "jax.errors.JaxRuntimeError: INTERNAL: NCCL operation ncclCommInitRank failed:\n"
		 "unhandled system error. Last NCCL warning(error) log entry (may be unrelated) "
		 "'Error while\n"
		 "creating shared memory segment /dev/shm/nccl-Jd81 (size 9637888), error: No "
		 "space left on\n"
		 "device (28)'.\n"},
		{"nccl-shm-small", "pod-3:88:140 [2] misc/shmutils.cc:72 NCCL WARN Error: failed "
				   "to extend /dev/shm/nccl-3aPq\n"
				   "R1 to 33030532 bytes, error: No space left on device (28)\n"},
		{"nccl-shm-small", "RuntimeError: DataLoader worker (pid 4123) is killed by "
				   "signal: Bus error. It is possible\n"
				   "that dataloader's workers are out of shared memory. Please try "
				   "to raise your shared memory limit.\n"},
		{"nccl-tests-alone",
		 "$ srun -N2 --ntasks-per-node=1 ./build/all_reduce_perf -g 8\n"
		 "# nccl-tests version 2.17.6 nccl-headers=22800 nccl-library=22800\n"
		 "# Collective test starting: all_reduce_perf\n"
		 "# nThread 1 nGpus 8 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) "
		 "warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
		 "# nccl-tests version 2.17.6 nccl-headers=22800 nccl-library=22800\n"
		 "# nThread 1 nGpus 8 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) "
		 "warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
		 "#  Rank  0 Group  0 Pid  811 on  n1 device  0 [0000:07:00] NVIDIA H100\n"
		 "#  Rank  0 Group  0 Pid  902 on  n2 device  0 [0000:07:00] NVIDIA H100\n"
		 "# Avg bus bandwidth    : 240.1\n"},
		{"nccl-tests-alone",
		 "mpirun -np 4 -x NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G\n"
		 "[1,0]<stdout>:# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: "
		 "1048576(bytes) warmup iters: 5 iters: 20 validation: 1\n"
		 "[1,2]<stdout>:# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: "
		 "1048576(bytes) warmup iters: 5 iters: 20 validation: 1\n"
		 "[1,1]<stdout>:# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: "
		 "1048576(bytes) warmup iters: 5 iters: 20 validation: 1\n"
		 "[1,2]<stdout>:# Avg bus bandwidth    : 0 \n"},
		{"ssh-launch",
		 "subprocess.CalledProcessError: Command 'ssh -o PasswordAuthentication=no "
		 "worker-2 hostname' returned non-zero exit status 255.\n"},
		{"ssh-launch", "RuntimeError: Using hostfile at /job/hostfile but host=worker-1 "
			       "was not reachable via ssh. If you are running with a single node "
			       "please remove /job/hostfile or setup passwordless ssh.\n"},
		{"ssh-launch", "pdsh@head: worker-1: ssh exited with exit code 255\n"
			       "worker-1: Permission denied (publickey,password).\n"},
	};
	char first[64];

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		(void)answer(*state, rows[i].text, first);
		if (strcmp(first, rows[i].first) != 0)
			fail_msg("%s\n%s stands first", rows[i].text, first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
					   cmocka_unit_test(test_other_wordings)};

	return cmocka_run_group_tests(tests, load, unload);
}
