/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of CUDA beside traffic that the GPU waits for. A kernel spins until a word arrives from
 * the other process, behind data; then the call is made, by the application, in its context, which
 * may hold that context's lock until the GPU is idle. If the device copied in this context, the
 * word would never come.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 12, MESSAGE = 1 << 20, WORD = MESSAGES * MESSAGE, PAGEABLE = 8 << 20 };

static const char spin_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
			       ".visible .entry spin(.param .u64 word)\n"
			       "{\n"
			       ".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<3>;\n"
			       "ld.param.u64 %rd1, [word];\n"
			       "cvta.to.global.u64 %rd2, %rd1;\n"
			       "AGAIN:\n"
			       "ld.volatile.global.u32 %r1, [%rd2];\n"
			       "setp.eq.s32 %p1, %r1, 0;\n"
			       "@%p1 bra AGAIN;\n"
			       "ret;\n"
			       "}\n";
static const char other_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
				".visible .entry other()\n{\nret;\n}\n";

#define CALL(name, ...) ((int (*)(__VA_ARGS__))gpu_call(name))

struct stage {
	struct end *end;
	void *stream, *kernel, *pinned, *pageable, *locked;
	uint64_t spare, scratch;
};

static void c_free(struct stage *s)
{
	gpu_must(CALL("cuMemFree_v2", uint64_t)(s->spare), "cuMemFree");
}

static void c_free_host(struct stage *s)
{
	gpu_must(CALL("cuMemFreeHost", void *)(s->pinned), "cuMemFreeHost");
}

static void c_module(struct stage *s)
{
	void *module;

	(void)s;
	gpu_must(CALL("cuModuleLoadData", void **, const void *)(&module, other_ptx),
		 "cuModuleLoadData");
}

static void c_register(struct stage *s)
{
	gpu_must(CALL("cuMemHostRegister_v2", void *, size_t, unsigned int)(s->locked, PAGEABLE, 0),
		 "cuMemHostRegister");
	gpu_must(CALL("cuMemHostUnregister", void *)(s->locked), "cuMemHostUnregister");
}

static void c_alloc(struct stage *s)
{
	(void)s;
	gpu_must(CALL("cuMemAlloc_v2", uint64_t *, size_t)(&(uint64_t){0}, 64 << 20), "cuMemAlloc");
}

static void c_host_alloc(struct stage *s)
{
	void *at;

	(void)s;
	gpu_must(CALL("cuMemHostAlloc", void **, size_t, unsigned int)(&at, 16 << 20, 0),
		 "cuMemHostAlloc");
}

static void c_alloc_async(struct stage *s)
{
	uint64_t at;

	gpu_must(CALL("cuMemAllocAsync", uint64_t *, size_t, void *)(&at, 1 << 20, s->stream),
		 "cuMemAllocAsync");
}

static void c_memset(struct stage *s)
{
	gpu_must(CALL("cuMemsetD8_v2", uint64_t, unsigned char, size_t)(s->scratch, 1, 4096),
		 "cuMemsetD8");
}

static void c_stream(struct stage *s)
{
	gpu_must(CALL("cuStreamSynchronize", void *)(s->stream), "cuStreamSynchronize");
}

static void c_context(struct stage *s)
{
	(void)s;
	gpu_must(CALL("cuCtxSynchronize", void)(), "cuCtxSynchronize");
}

static void c_pageable(struct stage *s)
{
	gpu_must(CALL("cuMemcpyDtoH_v2", void *, uint64_t, size_t)(s->pageable, s->scratch,
								   PAGEABLE),
		 "cuMemcpyDtoH");
}

static void c_launch(struct stage *s)
{
	void *args[] = {&s->scratch};

	/* A queue behind the kernel that spins, until the launch itself waits. */
	for (unsigned int i = 0; i < 2000; i++)
		gpu_must(CALL("cuLaunchKernel", void *, unsigned int, unsigned int, unsigned int,
			      unsigned int, unsigned int, unsigned int, unsigned int, void *,
			      void **,
			      void **)(s->kernel, 1, 1, 1, 1, 1, 1, 0, s->stream, args, NULL),
			 "cuLaunchKernel");
}

/* The other process takes back what this one has mapped of it. */
static void c_peer_dereg(struct stage *s)
{
	end_meet(s->end);
	end_meet(s->end);
}

static const struct {
	const char *name;
	void (*call)(struct stage *s);
} calls[] = {
	{"peer-dereg", c_peer_dereg},	   {"cuMemFree", c_free},
	{"cuMemFreeHost", c_free_host},	   {"cuModuleLoadData", c_module},
	{"cuMemHostRegister", c_register}, {"cuMemAlloc", c_alloc},
	{"cuMemHostAlloc", c_host_alloc},  {"cuMemAllocAsync", c_alloc_async},
	{"cuMemsetD8", c_memset},	   {"cuStreamSynchronize", c_stream},
	{"cuCtxSynchronize", c_context},   {"cuMemcpyDtoH-pageable", c_pageable},
	{"cuLaunchKernel-2000", c_launch},
};

static void set_up(struct stage *s)
{
	void *module;
	uint32_t one = 1;

	gpu_must(CALL("cuStreamCreate", void **, unsigned int)(&s->stream, 1), "cuStreamCreate");
	gpu_must(CALL("cuModuleLoadData", void **, const void *)(&module, spin_ptx), "spin");
	gpu_must(CALL("cuModuleGetFunction", void **, void *, const char *)(&s->kernel, module,
									    "spin"),
		 "spin");
	gpu_must(CALL("cuMemAlloc_v2", uint64_t *, size_t)(&s->spare, 32 << 20), "spare");
	gpu_must(CALL("cuMemAlloc_v2", uint64_t *, size_t)(&s->scratch, PAGEABLE), "scratch");
	gpu_must(CALL("cuMemHostAlloc", void **, size_t, unsigned int)(&s->pinned, 4096, 0),
		 "pinned");
	gpu_must(CALL("cuMemcpyHtoD_v2", uint64_t, const void *, size_t)(s->scratch, &one, 4),
		 "scratch");
	s->pageable = malloc(PAGEABLE);
	s->locked = aligned_alloc(4096, PAGEABLE);
	memset(s->locked, 1, PAGEABLE);
}

static void spin(struct stage *s, uint64_t word)
{
	void *args[] = {&word};

	gpu_must(CALL("cuLaunchKernel", void *, unsigned int, unsigned int, unsigned int,
		      unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
		      void **)(s->kernel, 1, 1, 1, 1, 1, 1, 0, s->stream, args, NULL),
		 "cuLaunchKernel");
}

static void receiver(struct end *e, const struct traffic *t)
{
	uint8_t *have = malloc(WORD);
	struct stage s;
	double begin, after;
	size_t c;

	for (c = 0; c < sizeof(calls) / sizeof(calls[0]) && strcmp(calls[c].name, t->call);)
		c++;
	if (c == sizeof(calls) / sizeof(calls[0]))
		end_fault("no such call");
	s.end = e;
	memset(have, 0, WORD);
	gpu_put(&e->memory, 0, have, WORD);
	gpu_put(&e->memory, WORD, have, 4096);
	set_up(&s);
	spin(&s, e->memory.at + WORD);
	end_meet(e);
	begin = end_seconds();
	calls[c].call(&s);
	after = end_seconds();
	gpu_must(CALL("cuStreamSynchronize", void *)(s.stream), "cuStreamSynchronize");
	printf("call: %s: returned after %.1f ms, the GPU was done after %.1f ms\n", t->call,
	       (after - begin) * 1e3, (end_seconds() - begin) * 1e3);
	gpu_get(&e->memory, 0, have, WORD);
	for (size_t i = 0; i < WORD; i++)
		if (have[i] != 0x77)
			end_fault("byte %zu", i);
	free(have);
	end_meet(e);
}

/* Memory that the peer has mapped, for having been sent messages from it, and that goes now. */
static void taken_back(struct end *e, enum gpu_kind kind)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {e->peer.at, e->peer.rkey}};
	uint8_t bytes[64] = {0};

	e->also = gpu_take(kind, 4096, 0);
	e->also_mr = end_register(e, &e->also);
	if (!e->also_mr)
		end_fault("no registration: %m");
	gpu_put(&e->also, 0, bytes, sizeof(bytes));
	sge = (struct ibv_sge){e->also.at, sizeof(bytes), e->also_mr->lkey};
	for (unsigned int i = 0; i < 20; i++) {
		if (ibv_post_send(e->qp, &wr, &bad))
			end_fault("ibv_post_send");
		(void)end_wait(e);
		usleep(2000);
	}
}

static void take_back(struct end *e)
{
	double begin;

	end_meet(e);
	begin = end_seconds();
	if (ibv_dereg_mr(e->also_mr))
		end_fault("ibv_dereg_mr");
	printf("call: peer-dereg: taken back after %.1f ms\n", (end_seconds() - begin) * 1e3);
	gpu_give(&e->also);
	e->also_mr = NULL;
	end_meet(e);
}

void traffic_call(struct end *e, bool first, const struct traffic *t)
{
	bool dereg = !strcmp(t->call, "peer-dereg");
	uint8_t *bytes = malloc(WORD + 4096);

	end_connect(e, first ? t->source : t->target, WORD + 4096, 0);
	if (!first) {
		receiver(e, t);
	} else {
		memset(bytes, 0x77, WORD + 4096);
		gpu_put(&e->memory, 0, bytes, WORD + 4096);
		if (dereg)
			taken_back(e, t->source);
		end_meet(e);
		if (dereg)
			take_back(e);
		usleep(200000); /* the call has begun */
		for (unsigned int i = 0; i < MESSAGES; i++)
			end_post(e, IBV_WR_RDMA_WRITE, i, (size_t)i * MESSAGE, MESSAGE,
				 (size_t)i * MESSAGE);
		end_post(e, IBV_WR_RDMA_WRITE, MESSAGES, WORD, 4, WORD);
		for (unsigned int i = 0; i <= MESSAGES; i++)
			(void)end_wait(e);
		end_meet(e);
	}
	free(bytes);
	end_close(e);
}
