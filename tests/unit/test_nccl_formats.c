/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each row of the table of formats has a line here, in the words of the NCCL release that prints
 * it, and the range of versions is NCCL's history of that line.
 */
#include "unit.h"

#include "nccl/event.h"
#include "nccl/line.h"

#define V(minor, patch) PP_NCCL_V(2, minor, patch)
#define ANY		PP_NCCL_NEWEST
#define INFO(text)	"host0:71:72 [0] NCCL INFO " text
#define WARN(text)	"host0:71:72 [0] transport/net_ib.cc:1190 NCCL WARN " text
#define TRACE(text)	"host0:71:72 [0] NCCL TRACE " text

static const struct sample {
	const char *text;
	enum pp_nccl_kind kind;
	int oldest, newest;
	struct {
		int at;
		uint64_t value;
	} number[2]; /* fields to look at, those with a value of 0 are not */
} SAMPLES[] = {
	{INFO("Channel 00/0 : 0[1a000] -> 1[1b000] [send] via NET/IB/0"), PP_NCCL_CHANNEL, 0, ANY},
	{INFO("Ring 00 : 1[1a000] -> 2[1b000] [receive] via NET/IB/0"), PP_NCCL_CHANNEL, 0,
	 V(7, 99)},
	{INFO("CollNet 00/0 : 1 [send] via COLLNET/SHARP/0/GDRDMA"), PP_NCCL_COLLNET, 0, ANY},
	{INFO("GPU Direct RDMA Enabled for GPU/0-1b000 (rank 3) - NET/0-1 (distance 5 <= 6), read "
	      "0"),
	 PP_NCCL_PAIR_RANK,
	 V(29, 0),
	 V(29, 99),
	 {{2, 3}, {4, 5}}},
	{INFO("GPU Direct RDMA Disabled for GPU/0-1b000 (rank 3) - NET/0-1 (distance 8 > 6)"),
	 PP_NCCL_PAIR_RANK,
	 V(29, 0),
	 V(29, 99),
	 {{2, 3}, {6, 6}}},
	{INFO("GPU Direct RDMA Enabled for GPU 0 / HCA 1 (distance 8 <= 9), read 1 mode Default"),
	 PP_NCCL_PAIR,
	 V(26, 0),
	 V(28, 99),
	 {{3, 8}, {5, 9}}},
	{INFO("GPU Direct RDMA Enabled for GPU 1a000 / HCA 2 (distance 4 <= 5), read 0"),
	 PP_NCCL_PAIR,
	 0,
	 V(28, 99),
	 {{1, 0x1a000}, {5, 5}}},
	{INFO("GPU Direct RDMA Disabled for GPU 3 / HCA 200000 (distance 7 > 4)"),
	 PP_NCCL_PAIR,
	 0,
	 V(28, 99),
	 {{2, 0x200000}, {3, 7}}},
	{INFO("Connected all rings, use ring PXN 0 GDR 1"),
	 PP_NCCL_RINGS_GDR,
	 V(24, 0),
	 ANY,
	 {{1, 1}}},
	{INFO("Connected all rings"), PP_NCCL_RINGS, 0, V(23, 99)},
	{INFO("NCCL version 2.28.9+cuda13.0"), PP_NCCL_VERSION, V(22, 0), ANY, {{1, 28}, {2, 9}}},
	{"NCCL version 2.12.12+cuda11.6", PP_NCCL_VERSION, 0, V(21, 99), {{1, 12}, {2, 12}}},
	{INFO("comm 0x7f rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9 - Init START"),
	 PP_NCCL_INIT_START,
	 V(18, 0),
	 ANY,
	 {{0, 0x7f}, {2, 2}}},
	{INFO("ncclCommInitRank comm 0x7f rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId "
	      "0x9 - "
	      "Init START"),
	 PP_NCCL_INIT_START,
	 V(21, 0),
	 ANY,
	 {{1, 1}}},
	{INFO("[Rank 1] ncclCommInitRank comm 0x7f rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 "
	      "commId 0x9 - Init START"),
	 PP_NCCL_INIT_START,
	 V(29, 0),
	 ANY,
	 {{1, 1}}},
	{INFO("ncclCommSplit comm 0x7f rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x6f "
	      "splitCount 1 color 0 key 1- Init START"),
	 PP_NCCL_INIT_START,
	 V(21, 0),
	 ANY,
	 {{0, 0x7f}, {2, 2}}},
	{INFO("2 coll channels, 4 p2p channels, 1 p2p channels per peer"),
	 PP_NCCL_WIDTH,
	 0,
	 ANY,
	 {{0, 2}}},
	{INFO("TUNER/Plugin: Using my tuner (v4)"), PP_NCCL_TUNER, V(27, 0), ANY, {{1, 4}}},
	{INFO("TUNER/Plugin: Using tuner plugin mine"), PP_NCCL_TUNER, V(21, 0), V(26, 99)},
	{INFO("Using tuner plugin: 'mine'"), PP_NCCL_TUNER, V(19, 0), V(20, 99)},
	{INFO("AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}"),
	 PP_NCCL_PROTOCOL,
	 V(24, 0),
	 ANY,
	 {{1, 1048576}}},
	{INFO("AllReduce: 1048576 Bytes -> Algo 1 proto 2 time 61.560001"),
	 PP_NCCL_PROTOCOL_NUMBER,
	 V(23, 0),
	 V(23, 99),
	 {{1, 1048576}, {3, 2}}},
	{INFO("1048576 Bytes -> Algo 1 proto 2 time 61.560001"),
	 PP_NCCL_PROTOCOL_NUMBER,
	 V(20, 0),
	 V(22, 99),
	 {{0, 1048576}, {2, 2}}},
	{INFO("comm 0x7f rank 1 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE"),
	 PP_NCCL_INIT_COMPLETE,
	 0,
	 ANY,
	 {{2, 2}}},
	{INFO("comm 0x7f rank 1 nranks 2 cudaDev 0 busId 1b000 commId 0x9 - Init COMPLETE"),
	 PP_NCCL_INIT_COMPLETE, V(16, 0), ANY},
	{INFO("comm 0x7f rank 1 nRanks 16 nNodes 2 localRanks 8 localRank 1 MNNVL 0"),
	 PP_NCCL_COMM_NODES,
	 V(20, 0),
	 ANY,
	 {{3, 2}, {4, 8}}},
	{INFO("comm 0x7f rank 1 nranks 2 cudaDev 0 busId 1b000 - Destroy COMPLETE"),
	 PP_NCCL_COMM_DESTROY, 0, ANY},
	{INFO("comm 0x7f rank 1 nranks 2 cudaDev 0 busId 1b000 - Abort COMPLETE"),
	 PP_NCCL_COMM_ABORT, 0, ANY},
	{INFO("Using network AWS Libfabric"), PP_NCCL_USING_NETWORK, 0, ANY},
	{INFO("Initialized NET plugin IB"), PP_NCCL_NET_READY, V(27, 0), ANY},
	{INFO("Assigned NET plugin IB to comm"), PP_NCCL_NET_READY, V(27, 0), ANY},
	{INFO("Assigned GIN plugin GIN_IB to comm"), PP_NCCL_OTHER, V(28, 7), ANY},
	{WARN("Failed to initialize any NET plugin"), PP_NCCL_NET_NONE, V(27, 0), ANY},
	{INFO("Failed to initialize NET plugin IB"), PP_NCCL_NET_FAILED, V(28, 0), ANY},
	{WARN("Error: network IBX not found."), PP_NCCL_NET_NOT_FOUND, V(10, 0), V(26, 99)},
	{INFO("NET/Plugin: Loaded net plugin IBext_v8 (v8)"), PP_NCCL_PLUGIN, 0, ANY, {{1, 8}}},
	{INFO("Successfully loaded external plugin libnccl-net.so"), PP_NCCL_PLUGIN, V(27, 0),
	 V(27, 99)},
	{INFO("Successfully loaded external network plugin libnccl-net.so"), PP_NCCL_PLUGIN,
	 V(28, 0), ANY},
	{INFO("P2P plugin v8 IBext_v8"), PP_NCCL_PLUGIN, 0, ANY},
	{INFO("Plugin Path : /opt/hpcx/libnccl-net.so"), PP_NCCL_PLUGIN, 0, ANY},
	{INFO("NET/Plugin : No plugin found (libnccl-net.so), using internal implementation"),
	 PP_NCCL_OTHER, V(12, 0), V(17, 99)},
	{INFO("NET/Plugin: No plugin found"), PP_NCCL_OTHER, V(21, 0), V(21, 99)},
	{INFO("Using internal network plugin."), PP_NCCL_OTHER, V(21, 0), V(21, 99)},
	{INFO("NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."),
	 PP_NCCL_OTHER, V(22, 0), V(26, 99)},
	{INFO("NET/Plugin: Could not find: libnccl-net.so"), PP_NCCL_OTHER, V(28, 0), ANY},
	{INFO("NET/IB : No device found."), PP_NCCL_IB_NONE, 0, ANY},
	{WARN("NET/IB : No IP interface found."), PP_NCCL_IB_NONE, 0, ANY},
	{INFO("Failed to open libibverbs.so[.1]"), PP_NCCL_IB_NONE, 0, ANY},
	{WARN("Call to ibv_open_device failed"), PP_NCCL_IB_NONE, 0, ANY},
	{WARN("NET/IB : Unable to open device mlx5_0"), PP_NCCL_IB_NONE, 0, ANY},
	{INFO("NET/IB : Using [0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} [RO]; OOB "
	      "eth0:10.0.0.1<0>"),
	 PP_NCCL_IB_USING, V(20, 0), V(23, 99)},
	{INFO("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"), PP_NCCL_IB_USING, 0,
	 ANY},
	{INFO("NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2"),
	 PP_NCCL_IB_VIRTUAL,
	 V(24, 0),
	 ANY,
	 {{0, 4}, {3, 2}}},
	{INFO("NET/IB: [1] mlx5_1:uverbs1:1/IB provider=mlx5 speed=400000 pciPath=/sys/x ar=1"),
	 PP_NCCL_IB_DEVICE,
	 V(27, 0),
	 ANY,
	 {{0, 1}}},
	{INFO("NET/IB: Data Direct DMA Interface is detected for device mlx5_0"), PP_NCCL_OTHER,
	 V(27, 0), ANY},
	{INFO("NET/IB: Dev 0 Port 1 qpn 257 mtu 5 LID 17"), PP_NCCL_OTHER, 0, V(19, 99)},
	{INFO("NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 65537 mtu 5 GID 0 (0/1) fifoRkey=0x2 "
	      "fifoLkey=0x2"),
	 PP_NCCL_OTHER, V(20, 0), V(28, 99)},
	{INFO("NET/IB: ncclIbConnect: QP created: port=1 dev=0 devName=mlx5_0 qp_num=77"),
	 PP_NCCL_OTHER, V(29, 0), ANY},
	{INFO("NET/Socket : Using [0]eth0:10.0.0.1<0>"), PP_NCCL_SOCKET_USING, 0, ANY},
	{INFO("NET/OFI Selected provider is efa, fabric is efa-direct"), PP_NCCL_PROVIDER, 0, ANY},
	{INFO("DMA-BUF is available on GPU device 3"), PP_NCCL_GPU_DMABUF, V(13, 0), ANY, {{0, 3}}},
	{INFO("NET/IB : GPU Direct RDMA Disabled for HCA 2 'mlx5_2' (no module)"),
	 PP_NCCL_HCA_OFF,
	 0,
	 V(12, 99),
	 {{1, 2}}},
	{INFO("NET/IBext_v8 : GPU Direct RDMA Disabled for HCA 2 'mlx5_2'"),
	 PP_NCCL_HCA_OFF,
	 V(13, 0),
	 ANY,
	 {{1, 2}}},
	{INFO("NET/IB : GPU Direct RDMA Enabled for HCA 3 'mlx5_3'"),
	 PP_NCCL_HCA_ON,
	 V(13, 0),
	 ANY,
	 {{1, 3}}},
	{INFO("NET/IB : GPU Direct RDMA (nvidia-peermem) enabled for HCA 1 'mlx5_1"),
	 PP_NCCL_HCA_WORDS,
	 0,
	 ANY,
	 {{2, 1}}},
	{INFO("NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 1 'mlx5_1"),
	 PP_NCCL_HCA_WORDS,
	 0,
	 ANY,
	 {{2, 1}}},
	{INFO("NCCL_NET_GDR_LEVEL set by environment to SYS."), PP_NCCL_SETTING, 0, ANY},
	{INFO("GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/370.8/NVL)"), PP_NCCL_NVLINK, 0, ANY},
	{TRACE("regAddr=0x7f00 size=4096 rkey=0x1 lkey=0x1 fd=-1"),
	 PP_NCCL_REGISTERED,
	 V(20, 0),
	 ANY,
	 {{4, UINT64_MAX}}},
	{WARN("rank 0 failed to NET register userbuff 0x7f00 buffSize 9 GDR flag 1"),
	 PP_NCCL_USER_BUFFER_FAILED, V(24, 0), V(25, 99)},
	{INFO("rank 0 failed to NET register userbuff 0x7f00 buffSize 9 GDR flag 1"),
	 PP_NCCL_USER_BUFFER_FAILED, V(26, 0), ANY},
	{INFO("rank 0 - NET register userbuff 0x7f00 (handle 0x1), buffSize 9"),
	 PP_NCCL_USER_BUFFER, V(24, 0), ANY},
	{INFO("rank 0 - NET reuse buffer 0x7f00"), PP_NCCL_USER_BUFFER, V(24, 0), ANY},
	{WARN("Call to ibv_reg_mr_iova2 failed with error Bad address"), PP_NCCL_REGISTER_FAILED, 0,
	 ANY},
	{WARN("NET/MLX5: Call to mlx5dv_reg_dmabuf_mr failed with error Invalid argument"),
	 PP_NCCL_REGISTER_FAILED, V(28, 0), ANY},
	{WARN("NET/IB : Got completion from peer 10.0.0.1<1> with error 12, opcode 7, len 0, "
	      "vendor err "
	      "129"),
	 PP_NCCL_COMPLETION,
	 0,
	 V(17, 99),
	 {{1, 12}, {4, 129}}},
	{WARN("NET/IB : Got completion from peer 10.0.0.1<1> with error 4, opcode 7, len 0, vendor "
	      "err 81 "
	      "(Send) localGid fe80::1 remoteGid fe80::2"),
	 PP_NCCL_COMPLETION,
	 V(18, 0),
	 V(19, 99),
	 {{1, 4}, {4, 81}}},
	{WARN("NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0 vendor "
	      "err 129 "
	      "(Send) localGid fe80::1 remoteGidsfe80::2"),
	 PP_NCCL_COMPLETION,
	 V(20, 0),
	 V(21, 99),
	 {{1, 12}, {4, 129}}},
	{WARN("NET/IB: Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0 vendor "
	      "err 129 "
	      "(Send) localGid fe80::1 remoteGidsfe80::2 hca mlx5_0"),
	 PP_NCCL_COMPLETION,
	 V(22, 0),
	 V(28, 6),
	 {{1, 12}, {4, 129}}},
	{WARN("NET/IB/GIN: Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0 "
	      "vendor err "
	      "129"),
	 PP_NCCL_COMPLETION,
	 0,
	 ANY,
	 {{1, 12}, {4, 129}}},
	{WARN("NET/IB: Got completion from peer 127.0.0.1<4> with status=IBV_WC_LOC_QP_OP_ERR(2) "
	      "opcode=IBV_WC_RDMA_WRITE(1) reqSize=8192 vendor_err=2 req_type=Send localGid ::1 "
	      "hca s"),
	 PP_NCCL_COMPLETION_NAMED,
	 V(28, 7),
	 V(28, 99),
	 {{3, 2}, {7, 2}}},
	{WARN("NET/IB: Got completion from peer 127.0.0.1<4> with status=IBV_WC_RETRY_EXC_ERR(12) "
	      "opcode=IBV_WC_SEND(0) vendor_err=129 req_type=Send localGid ::1 hca mlx5_0"),
	 PP_NCCL_COMPLETION_NAMED,
	 V(29, 0),
	 ANY,
	 {{3, 12}, {7, 129}}},
	{INFO("NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)"), PP_NCCL_OTHER,
	 V(28, 0), ANY},
	{INFO("NET/IB: ncclIbResiliencyHandleCompletionError: The error is not fatal. Trying to "
	      "continue..."),
	 PP_NCCL_FAILOVER, V(29, 0), ANY},
	{INFO("NET/IB: ncclIbResiliencyReplaceQps: Replacing QP: qpIndex=0 (qp_num=77, devIndex=0) "
	      "to qpIndex=1 (qp_num=78, devIndex=1) on send comm"),
	 PP_NCCL_FAILOVER, V(29, 0), ANY},
	{WARN("NET/IB : mlx5_0:1 Got async fatal event: device fatal"), PP_NCCL_ASYNC, V(23, 0),
	 ANY},
	/* 2.28.3 on the software device, peerpath soft fault qp=fatal and port=down */
	{WARN("NET/IB : soft0:1 async fatal event on QP (0x7f7790a13970): local work queue "
	      "catastrophic error"),
	 PP_NCCL_ASYNC, V(23, 0), ANY},
	{WARN("NET/IB : soft0:1 Got async error event: port error"), PP_NCCL_ASYNC, V(23, 0), ANY},
	{WARN("NET/IB: communicator encountered a fatal error (detected in ncclIbTest)"),
	 PP_NCCL_ASYNC, V(23, 0), ANY},
	{WARN("NET/IB : Got async event : port error"), PP_NCCL_ASYNC, 0, V(22, 99)},
	{WARN("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr "
	      "state "
	      "INIT, next state RTR, local GID index 3"),
	 PP_NCCL_VERB_FAILED,
	 V(24, 0),
	 ANY,
	 {{1, 110}}},
	{WARN("Call to ibv_modify_qp failed with error Connection timed out"), PP_NCCL_VERB_FAILED,
	 0, ANY},
	{WARN("NET/IB : Attempted to connect incompatible devices: local 1 remote 2"),
	 PP_NCCL_UNLIKE_DEVICES, 0, ANY},
	{WARN("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"),
	 PP_NCCL_SETUP_FAILED, 0, ANY},
	{WARN("Mismatched collective detected, please check"), PP_NCCL_SETUP_FAILED, 0, ANY},
	{INFO("init.cc:421 -> 5"), PP_NCCL_RETURN, 0, ANY, {{1, 421}, {2, 5}}},
	{"/GDRDMA/Shared", PP_NCCL_TORN, 0, ANY},
	{"2/GDRDMA", PP_NCCL_TORN, 0, ANY},
	{"(3)/GDRDMA/Shared", PP_NCCL_TORN, 0, ANY},
	{"3)/GDRDMA/Shared", PP_NCCL_TORN, 0, ANY},
	{"# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22807",
	 PP_NCCL_TEST_VERSION,
	 0,
	 ANY,
	 {{1, 22809}, {2, 22807}}},
	{"# Collective test starting: all_reduce_perf", PP_NCCL_TEST_COLLECTIVE, 0, ANY},
	{"#  Rank  3 Group  0 Pid    945 on      node0 device  2 [0000:60:00] NVIDIA H200",
	 PP_NCCL_TEST_RANK,
	 0,
	 ANY,
	 {{0, 3}, {4, 2}}},
	{"#   Rank  3 Pid 945 on node0 device 2 [0x60] Tesla V100",
	 PP_NCCL_TEST_RANK,
	 0,
	 ANY,
	 {{0, 3}}},
	{"# nThread 1 nGpus 1 minBytes 8 maxBytes 8", PP_NCCL_TEST_PARAMETERS, 0, ANY},
	{"# Using devices", PP_NCCL_TEST_DEVICES, 0, ANY},
	{"#       size         count    type   redop     time", PP_NCCL_TEST_COLUMNS, 0, ANY},
	{"# Out of bounds values : 2 FAILED", PP_NCCL_TEST_BOUNDS, 0, ANY, {{0, 2}}},
	{"     1048576        262144     float     sum      -1    61.56   17.03   17.03      0    "
	 "60.01   "
	 "17.47   17.47      0",
	 PP_NCCL_TEST_ROW,
	 0,
	 ANY,
	 {{0, 1048576}}},
	{"[1,0]<stdout>:     1048576        262144     float     sum    61.56   17.03   17.03   "
	 "0e+00    "
	 "60.01   17.47   17.47  0e+00",
	 PP_NCCL_TEST_ROW,
	 0,
	 ANY,
	 {{0, 1048576}}},
	/* -S and -I of nccl-tests 2.19, as its writeBenchmarkLineBody() and writePerIterReport()
	   print */
	{"     1048576        262144     float     sum      -1    61.56   17.03   17.03       0    "
	 "60.01   "
	 "17.47   17.47       0  2026-11-29 15:05:14",
	 PP_NCCL_TEST_ROW,
	 0,
	 ANY,
	 {{0, 1048576}}},
	{"     1048576        262144     float     sum      -1    61.56   17.03   17.03       0    "
	 "58.11    "
	 "70.25    69.90     3.21    60.01   17.47   17.47       0    58.02    66.31    66.01     "
	 "2.17",
	 PP_NCCL_TEST_ROW,
	 0,
	 ANY,
	 {{0, 1048576}}},
	{"     1048576        262144     float     sum      -1    61.56   17.03   17.03       0    "
	 "58.11    "
	 "70.25    69.90     3.21    60.01   17.47   17.47       0    58.02    66.31    66.01     "
	 "2.17  "
	 "2026-11-29 15:05:14",
	 PP_NCCL_TEST_ROW,
	 0,
	 ANY,
	 {{0, 1048576}}},
	{"host0: Test NCCL failure common.cu:959 'remote process exited'",
	 PP_NCCL_APPLICATION_FAILED, 0, ANY},
	{"DistBackendError: NCCL error in: x.cpp:1970, unhandled, NCCL version 2.19.3",
	 PP_NCCL_APPLICATION_FAILED, 0, ANY},
	{"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825", PP_NCCL_APPLICATION_FAILED, 0,
	 ANY},
	{"mpirun noticed that process rank 1 with PID 4242 on node n2 exited on signal 9 (Killed).",
	 PP_NCCL_PROCESS_ENDED, 0, ANY},
	{"E1130 10:00:00 9 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: "
	 "-9) local_rank: 1 (pid: 44) of binary: /usr/bin/python3",
	 PP_NCCL_PROCESS_ENDED, 0, ANY},
	{"peerpath nccl: rank 1 on n2: agent was killed by signal 9 (KILL), at all_reduce of 8 "
	 "bytes",
	 PP_NCCL_PROCESS_ENDED, 0, ANY},
	{"mpirun: process rank 1 ended with status 9", PP_NCCL_OTHER, 0, ANY},
	{WARN("something that nobody has seen"), PP_NCCL_WARNING, 0, ANY},
	{INFO("something that nobody has seen"), PP_NCCL_OTHER, 0, ANY},
};

static struct pp_nccl_span span(const char *text)
{
	return (struct pp_nccl_span){text, strlen(text)};
}

static void test_samples(void **state)
{
	static struct pp_nccl_formats formats;
	struct pp_nccl_event event;
	struct pp_nccl_line line;
	size_t pos;

	(void)state;
	pp_nccl_formats_init(&formats);
	for (size_t i = 0; i < sizeof(SAMPLES) / sizeof(SAMPLES[0]); i++) {
		const struct sample *s = &SAMPLES[i];

		pos = 0;
		assert_true(pp_nccl_line_next(s->text, strlen(s->text), &pos, &line));
		pp_nccl_event_read(&formats, &line, &event);
		if (event.kind != s->kind || event.oldest != s->oldest || event.newest != s->newest)
			fail_msg("kind %d, %d..%d: %s", (int)event.kind, event.oldest, event.newest,
				 s->text);
		for (size_t k = 0; k < 2; k++)
			if (s->number[k].value &&
			    event.field[s->number[k].at].value != s->number[k].value)
				fail_msg("field %d: %s", s->number[k].at, s->text);
		assert_false(pp_nccl_line_next(s->text, strlen(s->text), &pos, &line));
	}
}

/* No row of the table is without a sample. */
static void test_every_format_has_a_sample(void **state)
{
	struct pp_nccl_field field[PP_NCCL_FIELDS];
	struct pp_nccl_line line;
	size_t pos, k, n = sizeof(SAMPLES) / sizeof(SAMPLES[0]);

	(void)state;
	for (size_t i = 0; i < pp_nccl_format_count(); i++) {
		for (k = 0; k < n; k++) {
			pos = 0;
			(void)pp_nccl_line_next(SAMPLES[k].text, strlen(SAMPLES[k].text), &pos,
						&line);
			if (pp_nccl_match(pp_nccl_format_pattern(i), line.message, field))
				break;
		}
		if (k == n)
			fail_msg("no sample of: %s", pp_nccl_format_pattern(i));
	}
}

static void test_channels(void **state)
{
	static const struct {
		const char *text, *network;
		struct pp_nccl_channel want;
	} rows[] = {
		{"Channel 03/1 : 9[5] -> 2[0] [receive] via NET/IBext_v8/3(7)/GDRDMA(PCI)/Shared",
		 "IBext_v8",
		 {PP_NCCL_VIA_NET, PP_NCCL_RECEIVE, 3, 1, 9, 2, .device = 3, .proxy = 7,
		  .gdr = true, .pci = true, .shared = true, .oldest = V(26, 0), .newest = ANY}},
		{"Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA",
		 "AWS Libfabric",
		 {PP_NCCL_VIA_NET, PP_NCCL_SEND, 0, 0, 0, 1, .device = 0, .proxy = -1, .gdr = true,
		  .oldest = V(12, 0), .newest = ANY}},
		{"Channel 00/0 : 0[1a000] -> 1[3f000] [send] via NET/Socket/2/Shared",
		 "Socket",
		 {PP_NCCL_VIA_NET, PP_NCCL_SEND, 0, 0, 0, 1, .device = 2, .proxy = -1,
		  .shared = true, .oldest = V(12, 0), .newest = V(17, 99)}},
		{"Channel 00 : 0[1a000] -> 1[3f000] [send] via NET/IB/2/GDRDMA",
		 "IB",
		 {PP_NCCL_VIA_NET, PP_NCCL_SEND, 0, -1, 0, 1, .device = 2, .proxy = -1, .gdr = true,
		  .newest = V(11, 99)}},
		{"Ring 01 : 0 -> 1 [send] via NET/IB/2",
		 "IB",
		 {PP_NCCL_VIA_NET, PP_NCCL_SEND, 1, -1, 0, 1, .device = 2, .proxy = -1,
		  .newest = V(7, 99)}},
		{"CollNet 00/0 : 5 [receive] via COLLNET/SHARP/1/GDRDMA",
		 "SHARP",
		 {PP_NCCL_VIA_COLLNET, PP_NCCL_RECEIVE, 0, 0, 5, 5, .device = 1, .proxy = -1,
		  .gdr = true, .newest = ANY}},
		{"Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
		 "SHM/direct/direct",
		 {PP_NCCL_VIA_SHM, PP_NCCL_BOTH, 0, -1, 0, 1, .device = -1, .proxy = -1,
		  .newest = ANY}},
		{"Channel 00 : 0[1a000] -> 1[3f000] via direct shared memory",
		 "direct shared memory",
		 {PP_NCCL_VIA_SHM, PP_NCCL_BOTH, 0, -1, 0, 1, .device = -1, .proxy = -1,
		  .newest = V(17, 99)}},
		{"Channel 05/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
		 "P2P/CUMEM/read",
		 {PP_NCCL_VIA_P2P, PP_NCCL_BOTH, 5, 0, 0, 1, .device = -1, .proxy = -1,
		  .oldest = V(12, 0), .newest = ANY}},
		{"Channel 05/0 : 0[0] -> 1[1] via P2P/MNNVL",
		 "P2P/MNNVL",
		 {PP_NCCL_VIA_MNNVL, PP_NCCL_BOTH, 5, 0, 0, 1, .device = -1, .proxy = -1,
		  .oldest = V(12, 0), .newest = ANY}},
	};
	struct pp_nccl_channel c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct pp_nccl_channel *w = &rows[i].want;

		assert_true(pp_nccl_channel_read(span(rows[i].text), &c));
		assert_true(pp_nccl_span_is(c.network, rows[i].network));
		if (c.transport != w->transport || c.direction != w->direction ||
		    c.channel != w->channel || c.connection != w->connection || c.from != w->from ||
		    c.to != w->to || c.device != w->device || c.proxy != w->proxy ||
		    c.gdr != w->gdr || c.pci != w->pci || c.shared != w->shared ||
		    c.oldest != w->oldest || c.newest != w->newest)
			fail_msg("%s", rows[i].text);
	}
}

static void test_no_channels(void **state)
{
	static const char *const rows[] = {
		"Channel 00/02 : 0 1",
		"Channel 00/24 :    0   1   2   3",
		"Ring 00 : 1 -> 0 -> 1",
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDR",
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/",
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/0",
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0(PCI)",
		"Channel 00/0 : 99999999999[0] -> 1[0] [send] via NET/IB/0",
		"Channel 99999999999999999999999/0 : 0[0] -> 1[0] [send] via NET/IB/0",
		"Channel 00/0 : 0[0] -> 1[0] [send] via",
	};
	struct pp_nccl_channel c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (pp_nccl_channel_read(span(rows[i]), &c))
			fail_msg("%s", rows[i]);
}

static void test_prefixes(void **state)
{
	static const char TWO[] =
		"[1,0]<stdout>:n-0.x:7:8 [1] NCCL INFO one 0:n1:9:10 [0] NCCL INFO two";
	static const char LATE[] =
		"[2026-11-29 15:05:14] vm:945:946 [0] init.cc:904 (ncclInit) NCCL WARN w";
	struct pp_nccl_line line;
	size_t pos = 0;

	(void)state;
	assert_true(pp_nccl_line_next(TWO, strlen(TWO), &pos, &line));
	assert_true(pp_nccl_span_is(line.host, "n-0.x"));
	assert_int_equal(line.pid, 7);
	assert_int_equal(line.tid, 8);
	assert_true(pp_nccl_line_next(TWO, strlen(TWO), &pos, &line));
	assert_true(pp_nccl_span_is(line.host, "n1"));
	assert_true(pp_nccl_span_is(line.message, "two"));
	assert_false(pp_nccl_line_next(TWO, strlen(TWO), &pos, &line));
	pos = 0;
	assert_true(pp_nccl_line_next(LATE, strlen(LATE), &pos, &line));
	assert_int_equal(line.level, PP_NCCL_WARN);
	assert_true(line.has_function);
	assert_true(pp_nccl_span_is(line.stamp, "2026-11-29 15:05:14"));
	assert_true(pp_nccl_span_is(line.host, "vm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),	 cmocka_unit_test(test_every_format_has_a_sample),
		cmocka_unit_test(test_channels), cmocka_unit_test(test_no_channels),
		cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
