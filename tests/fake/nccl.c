/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnccl.so.2 for the fake CUDA of cuda_memory.c: collectives that really move bytes, by TCP
 * between the processes, in a thread of each rank, in order with the stream. It says of itself what
 * NCCL 2.28.9 says (nccl_log.c). With NCCL_NET=IB it registers memory as NCCL does (nccl_ib.c).
 *
 * PP_FAKE_NCCL: KIND[@RANK][:N]: what goes wrong, at which rank (every one), from its N-th
 * operation on (1):
 *	wrong    an element of the result is another
 *	hang     the operation does not end
 *	die      the process is killed
 *	remote   the operation fails as when a peer is gone
 *	refuse   the call fails
 *	init     the communicator cannot be made
 *	init-hang, init-die
 * PP_FAKE_NCCL_PCI: the hca has a PCI function, as one of NVIDIA's has.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct unique_id {
	char bytes[128];
};

static int root_fd = -1;
static __thread int group_depth;
static __thread struct op *group_op;

void *cuda(const char *name)
{
	static void *library;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, name) : NULL;
}

/* Is @kind what shall go wrong, at this rank and operation? */
static bool fault(const char *kind, int rank, unsigned int number)
{
	const char *set = getenv("PP_FAKE_NCCL"), *p;
	size_t len = strlen(kind);

	if (!set || strncmp(set, kind, len) != 0 || !strchr("@:", set[len]))
		return false;
	p = strchr(set, '@');
	if (p && (int)strtol(p + 1, NULL, 10) != rank)
		return false;
	p = strchr(set, ':');
	return number >= (p ? (unsigned int)strtoul(p + 1, NULL, 10) : 1);
}

API int ncclGetVersion(int *to)
{
	*to = 22809;
	return SUCCESS;
}

API const char *ncclGetErrorString(int code)
{
	static const char *const names[] = {
		"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error",
	};

	return code >= 0 && code <= REMOTE ? names[code] : "unknown result code";
}

API const char *ncclGetLastError(struct comm *c)
{
	(void)c;
	return last_warning();
}

API int ncclGetUniqueId(struct unique_id *to)
{
	struct place at = {0};
	int r = wire_listen(&root_fd, &at);

	memset(to, 0, sizeof(*to));
	memcpy(to->bytes, &at, sizeof(at));
	memcpy(to->bytes + 8, &(uint64_t){(uint64_t)getpid() << 32 | (uint64_t)at.port}, 8);
	return r;
}

static int find_gpu(int *ret_bus)
{
	int (*device)(int *), (*bdf)(char *, int, int), which;
	char text[32] = "";

	*(void **)&device = cuda("cuCtxGetDevice");
	*(void **)&bdf = cuda("cuDeviceGetPCIBusId");
	if (!device || !bdf || device(&which) || bdf(text, sizeof(text), which))
		return CUDA_ERROR;
	*ret_bus = (int)(strtoul(text + 5, NULL, 16) << 4);
	return SUCCESS;
}

static int choose_net(struct comm *c)
{
	static const struct {
		const char *name;
		int path;
	} levels[] = {{"LOC", 0}, {"PIX", 4}, {"PXB", 5}, {"PHB", 8}, {"SYS", 9}};
	const char *net = getenv("NCCL_NET"), *level = getenv("NCCL_NET_GDR_LEVEL");
	const char *read = getenv("NCCL_NET_GDR_READ");
	int most = 5;

	say_setting("NCCL_NET_PLUGIN");
	if (!net || !strcmp(net, "Socket")) {
		say(INIT | NET, "NET/Socket : Using [0]%s<0>", wire_interface());
		say(INIT | NET, "Initialized NET plugin Socket");
		say(INIT | NET, "Assigned NET plugin Socket to comm");
		say(INIT, "Using network Socket");
		return SUCCESS;
	}
	if (strcmp(net, "IB") != 0 || !ib_open(&c->ib)) {
		warn("plugin/net.cc:247", "Failed to initialize any NET plugin");
		return INVALID_USAGE;
	}
	say(INIT | NET,
	    "NET/IB: [0] %s:uverbs0:1/RoCE provider=None speed=100000 context=%p pciPath=%s ar=0",
	    ib_name(c->ib), (void *)c->ib, getenv("PP_FAKE_NCCL_PCI") ? "/sys/devices" : "(null)");
	say(INIT | NET, "NET/IB : Made virtual device [0] name=%s speed=100000 ndevs=1",
	    ib_name(c->ib));
	say(INIT | NET, "NET/IB : Using [0]%s:1/RoCE [RO]; OOB %s<0>", ib_name(c->ib),
	    wire_interface());
	say(INIT | NET, "Initialized NET plugin IB");
	say(INIT | NET, "Assigned NET plugin IB to comm");
	say(INIT, "Using network IB");
	if (ib_dmabuf(c->ib))
		say(INIT, "DMA-BUF is available on GPU device 0");
	for (size_t i = 0; level && i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(levels[i].name, level))
			most = levels[i].path;
	c->gdr_receive = ib_dmabuf(c->ib) && most >= 8;
	c->gdr_send = c->gdr_receive && !(read && !strcmp(read, "0"));
	say(NET, "NET/IB : GPU Direct RDMA %s for HCA 0 '%s'",
	    ib_dmabuf(c->ib) ? "Enabled" : "Disabled", ib_name(c->ib));
	say_setting("NCCL_NET_GDR_LEVEL");
	if (ib_dmabuf(c->ib))
		say(GRAPH | NET,
		    "GPU Direct RDMA %s for GPU %d / HCA 0 (distance 8 %s %d), read 0 mode Default",
		    most >= 8 ? "Enabled" : "Disabled", c->rank, most >= 8 ? "<=" : ">", most);
	return SUCCESS;
}

static bool same_node(const struct comm *c, int a, int b)
{
	return !strcmp(c->member[a].host, c->member[b].host);
}

static int count_nodes(struct comm *c)
{
	for (int i = 0; i < c->size; i++) {
		bool first = true;

		for (int k = 0; k < i; k++) {
			if (!same_node(c, i, k))
				continue;
			first = false;
			if (c->member[i].bus != c->member[k].bus)
				continue;
			warn("init.cc:904",
			     "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x",
			     k, i, c->member[i].bus);
			return INVALID_USAGE;
		}
		c->nodes += first;
		c->local_ranks += same_node(c, i, c->rank);
	}
	return SUCCESS;
}

static void connection(const struct comm *c, int channel, int kind, int from, int to)
{
	bool receive = to == c->rank, gdr = receive ? c->gdr_receive : c->gdr_send;

	if (same_node(c, from, to)) {
		if (!receive)
			say(INIT | 4 | 8, "Channel %02d : %d[0] -> %d[0] via SHM/direct/direct",
			    channel, from, to);
		return;
	}
	say(INIT | NET, "Channel %02d/%d : %d[0] -> %d[0] [%s] via NET/%s/0%s%s", channel, kind,
	    from, to, receive ? "receive" : "send", c->ib ? "IB" : "Socket",
	    c->ib && gdr ? "/GDRDMA" : "", kind ? "/Shared" : "");
}

static bool connect_rings(struct comm *c)
{
	int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;

	for (int i = 0; c->size > 1 && i < CHANNELS; i++)
		connection(c, i, 0, before, c->rank);
	for (int i = 0; c->size > 1 && i < CHANNELS; i++)
		connection(c, i, 0, c->rank, next);
	c->rings = true;
	for (int i = 0; c->ib && i < CHANNELS; i++)
		if (!ib_connect(c->ib, c->gdr_receive, c->gdr_send))
			return false;
	say(INIT, "Connected all rings, use ring PXN 0 GDR 1");
	return true;
}

static bool connect_pairs(struct comm *c, const struct op *op)
{
	for (int i = 0; i < c->size; i++) {
		if (i == c->rank)
			continue;
		for (int k = 0; k < CHANNELS && op->in[i].len; k++)
			connection(c, k, 1, i, c->rank);
		for (int k = 0; k < CHANNELS && op->out[i].len; k++)
			connection(c, k, 1, c->rank, i);
	}
	c->pairs = true;
	return !c->ib || ib_connect(c->ib, c->gdr_receive, c->gdr_send);
}

/* Everybody's part to everybody, then the sum of what came, into @to. */
static int reduce_all(struct op *op, size_t count, bool scatter)
{
	struct comm *c = op->comm;
	size_t size = type_size(op->type), len = count * size;
	struct part out[RANKS] = {0}, in[RANKS] = {0};
	uint8_t *got = calloc((size_t)c->size, len ? len : 1);
	int r;

	if (!got)
		return SYSTEM_ERROR;
	for (int i = 0; i < c->size; i++) {
		out[i] = (struct part){
			(void *)(uintptr_t)(op->from + (scatter ? (size_t)i * len : 0)), len};
		in[i] = (struct part){got + (size_t)i * len, len};
	}
	r = wire_exchange(c, out, in);
	for (int i = 1; !r && i < c->size; i++)
		if (!reduce(got, got + (size_t)i * len, count, op->type, op->redop))
			r = INVALID_ARGUMENT;
	if (!r && op->redop == 4)
		divide(got, count, op->type, c->size);
	if (!r)
		memcpy(op->to, got, len);
	free(got);
	return r;
}

static int gather_all(struct op *op)
{
	struct comm *c = op->comm;
	size_t len = op->count * type_size(op->type);
	struct part out[RANKS] = {0}, in[RANKS] = {0};

	for (int i = 0; i < c->size; i++) {
		out[i] = (struct part){(void *)(uintptr_t)op->from, len};
		in[i] = (struct part){op->to + (size_t)i * len, len};
	}
	return wire_exchange(c, out, in);
}

static void spoil(struct op *op)
{
	uint8_t *at = op->to;

	for (int i = 0; !at && i < op->comm->size; i++)
		at = op->in[i].at;
	if (at)
		*at ^= 1;
}

static int carry_out(struct op *op, unsigned int number)
{
	static const char *const names[] = {"AllReduce", "ReduceScatter", "AllGather"};
	struct comm *c = op->comm;
	bool pairs = op->kind == POINT_TO_POINT;
	int r;

	if (pairs ? !c->pairs && !connect_pairs(c, op) : !c->rings && !connect_rings(c))
		return SYSTEM_ERROR;
	if (!pairs)
		say(TUNING, "%s: %zu Bytes -> Algo RING proto %s channel{Lo..Hi}={0..1}",
		    names[op->kind], op->count * type_size(op->type),
		    op->count * type_size(op->type) < 65536 ? "LL" : "SIMPLE");
	if (fault("die", c->rank, number))
		(void)kill(getpid(), SIGKILL);
	while (fault("hang", c->rank, number) && !c->stop)
		usleep(10000);
	if (fault("remote", c->rank, number))
		return REMOTE;
	if (op->kind == ALL_GATHER)
		r = gather_all(op);
	else if (pairs)
		r = wire_exchange(c, op->out, op->in);
	else
		r = reduce_all(op, op->count, op->kind == REDUCE_SCATTER);
	if (!r && fault("wrong", c->rank, number))
		spoil(op);
	return r;
}

static void *work(void *arg)
{
	struct comm *c = arg;
	struct op *op;
	int r;

	for (;;) {
		pthread_mutex_lock(&c->lock);
		while (!c->first && !c->over)
			pthread_cond_wait(&c->news, &c->lock);
		op = c->first;
		if (op && !(c->first = op->next))
			c->last = NULL;
		pthread_mutex_unlock(&c->lock);
		if (!op)
			return NULL;
		r = c->async ? REMOTE : carry_out(op, ++c->started);
		if (r == REMOTE && !c->async)
			warn("misc/socket.cc:915",
			     "socketProgress: Connection closed by remote peer localhost<1>");
		if (r) {
			/* As a kernel that waits for what does not come. */
			c->async = r == INTERNAL_ERROR ? 0 : r;
			while (!c->stop)
				usleep(1000);
		}
		op->done = true;
	}
}

/* What the stream asks until it is 0. */
static int step(void *arg)
{
	struct op *op = arg;
	struct comm *c = op->comm;

	if (!op->begun) {
		op->begun = true;
		pthread_mutex_lock(&c->lock);
		if (c->last)
			c->last->next = op;
		else
			c->first = op;
		c->last = op;
		pthread_cond_signal(&c->news);
		pthread_mutex_unlock(&c->lock);
	}
	if (!op->done)
		return 1;
	free(op);
	return 0;
}

API int ncclCommInitRank(struct comm **to, int size, struct unique_id id, int rank)
{
	const char *host = getenv("NCCL_HOSTID");
	struct comm *c = calloc(1, sizeof(*c));
	struct place root;
	int r;

	if (!c || size < 1 || size > RANKS || rank < 0 || rank >= size)
		return INVALID_ARGUMENT;
	c->rank = rank;
	c->size = size;
	memcpy(&root, id.bytes, sizeof(root));
	memcpy(&c->id, id.bytes + 8, sizeof(c->id));
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->news, NULL);
	say(INIT, "cudaDriverVersion 13000");
	say(INIT, "NCCL version 2.28.9+cuda13.0");
	while (fault("init-hang", rank, 1))
		usleep(10000);
	if (fault("init-die", rank, 1))
		(void)kill(getpid(), SIGKILL);
	if (fault("init", rank, 1)) {
		warn("init.cc:1", "the fake was told to fail");
		return SYSTEM_ERROR;
	}
	r = find_gpu(&c->bus);
	if (!r)
		r = choose_net(c);
	if (!r)
		say(INIT,
		    "ncclCommInitRank comm %p rank %d nranks %d cudaDev 0 nvmlDev 0 busId %x "
		    "commId "
		    "0x%llx - Init START",
		    (void *)c, rank, size, c->bus, (unsigned long long)c->id);
	say_setting("NCCL_HOSTID");
	if (host)
		(void)snprintf(c->member[rank].host, sizeof(c->member[0].host), "%s", host);
	else
		host_name(c->member[rank].host, sizeof(c->member[0].host));
	c->member[rank].bus = c->bus;
	if (!r)
		r = wire_meet(c, root_fd, root);
	if (!r)
		r = count_nodes(c);
	if (r)
		return r;
	say(INIT, "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank 0 MNNVL 0",
	    (void *)c, rank, size, c->nodes, c->local_ranks);
	say_setting("NCCL_PROTO");
	say(INIT,
	    "%d coll channels, %d collnet channels, 0 nvls channels, %d p2p channels, %d p2p "
	    "channels per peer",
	    CHANNELS, CHANNELS, CHANNELS, CHANNELS);
	say(INIT,
	    "ncclCommInitRank comm %p rank %d nranks %d cudaDev 0 nvmlDev 0 busId %x commId 0x%llx "
	    "- "
	    "Init COMPLETE",
	    (void *)c, rank, size, c->bus, (unsigned long long)c->id);
	c->has_worker = !pthread_create(&c->worker, NULL, work, c);
	*to = c;
	return c->has_worker ? SUCCESS : SYSTEM_ERROR;
}

static int leave(struct comm *c, bool abort)
{
	c->stop = abort;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_signal(&c->news);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->worker, NULL);
	if (c->ib)
		ib_close(c->ib);
	wire_leave(c);
	say(INIT, "comm %p rank %d nranks %d cudaDev 0 busId %x - %s COMPLETE", (void *)c, c->rank,
	    c->size, c->bus, abort ? "Abort" : "Destroy");
	free(c);
	return SUCCESS;
}

API int ncclCommDestroy(struct comm *c)
{
	return leave(c, false);
}

API int ncclCommAbort(struct comm *c)
{
	return leave(c, true);
}

API int ncclCommGetAsyncError(struct comm *c, int *to)
{
	*to = c->async;
	return SUCCESS;
}

static int later(struct op *op)
{
	int (*add)(void *, int (*)(void *), void *);

	*(void **)&add = cuda("pp_fake_cuda_later");
	return add && !add(op->stream, step, op) ? SUCCESS : CUDA_ERROR;
}

static int collective(struct op given, struct comm *c, int type, void *stream)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op || !type_size(type) || fault("refuse", c->rank, c->started + 1)) {
		free(op);
		return CUDA_ERROR;
	}
	*op = given;
	op->comm = c;
	op->type = type;
	op->stream = stream;
	return later(op);
}

API int ncclAllReduce(const void *from, void *to, size_t count, int type, int redop, struct comm *c,
		      void *stream)
{
	return collective(
		(struct op){
			.kind = ALL_REDUCE, .from = from, .to = to, .count = count, .redop = redop},
		c, type, stream);
}

API int ncclReduceScatter(const void *from, void *to, size_t count, int type, int redop,
			  struct comm *c, void *stream)
{
	return collective((struct op){.kind = REDUCE_SCATTER,
				      .from = from,
				      .to = to,
				      .count = count,
				      .redop = redop},
			  c, type, stream);
}

API int ncclAllGather(const void *from, void *to, size_t count, int type, struct comm *c,
		      void *stream)
{
	return collective((struct op){.kind = ALL_GATHER, .from = from, .to = to, .count = count},
			  c, type, stream);
}

API int ncclGroupStart(void)
{
	group_depth++;
	return SUCCESS;
}

API int ncclGroupEnd(void)
{
	struct op *op = group_op;

	if (--group_depth || !op)
		return SUCCESS;
	group_op = NULL;
	return later(op);
}

static int one_part(struct part p, bool out, int type, int peer, struct comm *c, void *stream)
{
	int r;

	if (peer < 0 || peer >= c->size)
		return INVALID_ARGUMENT;
	(void)ncclGroupStart();
	if (!group_op)
		group_op = calloc(1, sizeof(*group_op));
	if (!group_op)
		return SYSTEM_ERROR;
	group_op->kind = POINT_TO_POINT;
	group_op->comm = c;
	group_op->type = type;
	group_op->stream = stream;
	*(out ? &group_op->out[peer] : &group_op->in[peer]) = p;
	r = ncclGroupEnd();
	return r;
}

API int ncclSend(const void *from, size_t count, int type, int peer, struct comm *c, void *stream)
{
	return one_part((struct part){(void *)(uintptr_t)from, count * type_size(type)}, true, type,
			peer, c, stream);
}

API int ncclRecv(void *to, size_t count, int type, int peer, struct comm *c, void *stream)
{
	return one_part((struct part){to, count * type_size(type)}, false, type, peer, c, stream);
}
