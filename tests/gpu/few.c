/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few bytes into memory of a GPU, as the software device's thread sends them: in a context of its
 * own, from page-locked memory, one copy at a time; once on an idle GPU and once while a kernel of
 * the application's context spins, as NCCL's do.
 *
 *	gpu_few [BYTES]...
 *
 * A JSON object a line: way, bytes, beside (nothing, kernel), target (alloc, vmm), and medians of
 * the time until the call had returned (call_us) and until an event behind it was over (done_us).
 * A way that the driver lacks is left out; one that takes turns with the kernel is tried less.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 200, FEWER = 10, NOT_READY = 600, HOST = 1, DEVICE = 2, MOST = 1 << 20 };
static const double TURN = 1e-3, LOST = 2;

#define CALL(name, ...) ((int (*)(__VA_ARGS__))gpu_call(name))

static const char spin_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
			       ".visible .entry spin(.param .u64 word)\n"
			       "{\n"
			       ".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
			       "ld.param.u64 %rd1, [word];\n"
			       "AGAIN:\n"
			       "ld.volatile.u32 %r1, [%rd1];\n"
			       "setp.eq.s32 %p1, %r1, 0;\n"
			       "@%p1 bra AGAIN;\n"
			       "ret;\n"
			       "}\n";

struct bench {
	void *own, *stream, *event; /* the context of copies, and what lies in it */
	void *host;
	uint32_t *word; /* what the kernel waits for */
	void *kernel_stream, *kernel;
};

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_default(const struct bench *b, uint64_t at, size_t len)
{
	return CALL("cuMemcpyHtoDAsync_v2", uint64_t, const void *, size_t, void *)(at, b->host,
										    len, b->stream);
}

/* CUDA_MEMCPY2D. */
struct rows {
	size_t x, y;
	int type;
	const void *host;
	uint64_t device;
	void *array;
	size_t pitch;
};
struct rows2d {
	struct rows from, to;
	size_t width, height;
};

static int in_rows(const struct bench *b, uint64_t at, size_t len)
{
	struct rows2d r = {.from = {.type = HOST, .host = b->host, .pitch = len / 2},
			   .to = {.type = DEVICE, .device = at, .pitch = len / 2},
			   .width = len / 2,
			   .height = 2};

	return CALL("cuMemcpy2DAsync_v2", const struct rows2d *, void *)(&r, b->stream);
}

/* CUmemcpyAttributes of CUDA 12.8: the source is read in the stream's order, a copy engine is asked
 * for. */
struct attributes {
	int order;
	struct {
		int type, id;
	} from, to;
	unsigned int flags;
};

static int in_batch(const struct bench *b, uint64_t at, size_t len)
{
	struct attributes a = {.order = 1, .flags = 1};
	uint64_t to = at, from = (uintptr_t)b->host;
	size_t n = len, first = 0, fault = 0;

	return CALL("cuMemcpyBatchAsync", uint64_t *, uint64_t *, size_t *, size_t,
		    struct attributes *, size_t *, size_t, size_t *,
		    void *)(&to, &from, &n, 1, &a, &first, 1, &fault, b->stream);
}

/* Words that the front of the GPU writes, without an engine: how far that would lead. */
static int by_words(const struct bench *b, uint64_t at, size_t len)
{
	const uint32_t *from = b->host;
	int r = 0;

	for (size_t i = 0; i < len / 4 && !r; i++)
		r = CALL("cuStreamWriteValue32_v2", void *, uint64_t, uint32_t,
			 unsigned int)(b->stream, at + 4 * i, from[i], 0);
	return r;
}

static const struct way {
	const char *name, *symbol;
	int (*copy)(const struct bench *b, uint64_t at, size_t len);
	size_t most;
} ways[] = {
	{"default", "cuMemcpyHtoDAsync_v2", by_default, MOST},
	{"rows", "cuMemcpy2DAsync_v2", in_rows, MOST},
	{"batch", "cuMemcpyBatchAsync", in_batch, MOST},
	{"words", "cuStreamWriteValue32_v2", by_words, 256},
};

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* false: it was refused, or is lost. */
static bool once(const struct bench *b, const struct way *w, uint64_t at, size_t len,
		 double ret[static 2])
{
	double begin = now();
	int r = w->copy(b, at, len);

	ret[0] = now() - begin;
	if (!r)
		r = CALL("cuEventRecord", void *, void *)(b->event, b->stream);
	while (!r && (r = CALL("cuEventQuery", void *)(b->event)) == NOT_READY &&
	       now() - begin < LOST)
		r = 0;
	ret[1] = now() - begin;
	return !r && ret[1] < LOST;
}

static void measure(const struct bench *b, const struct way *w, const struct gpu_memory *m,
		    size_t len, const char *beside)
{
	static double called[ROUNDS], done[ROUNDS];
	unsigned int n = 0, rounds = ROUNDS;
	double took[2];

	for (; n < rounds; n++) {
		if (!once(b, w, m->at, len, took)) {
			printf("{\"way\": \"%s\", \"bytes\": %zu, \"beside\": \"%s\", "
			       "\"target\": \"%s\", \"refused\": true}\n",
			       w->name, len, beside, gpu_kind_names[m->kind]);
			return;
		}
		if (took[1] > TURN && n >= FEWER)
			rounds = n + 1;
		called[n] = took[0];
		done[n] = took[1];
	}
	qsort(called, n, sizeof(called[0]), by_value);
	qsort(done, n, sizeof(done[0]), by_value);
	printf("{\"way\": \"%s\", \"bytes\": %zu, \"beside\": \"%s\", \"target\": \"%s\", "
	       "\"call_us\": %.2f, \"done_us\": %.2f}\n",
	       w->name, len, beside, gpu_kind_names[m->kind], called[n / 2] * 1e6,
	       done[n / 2] * 1e6);
}

static void measure_all(const struct bench *b, const struct gpu_memory *m, size_t len,
			const char *beside)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (len <= ways[i].most && library && dlsym(library, ways[i].symbol))
			measure(b, &ways[i], m, len, beside);
}

/* In the context that is current: the application's. */
static void prepare_kernel(struct bench *b)
{
	void *module;

	gpu_must(CALL("cuMemHostAlloc", void **, size_t, unsigned int)((void **)&b->word, 4096, 3),
		 "cuMemHostAlloc");
	gpu_must(CALL("cuStreamCreate", void **, unsigned int)(&b->kernel_stream, 1), "stream");
	gpu_must(CALL("cuModuleLoadData", void **, const void *)(&module, spin_ptx), "kernel");
	gpu_must(CALL("cuModuleGetFunction", void **, void *, const char *)(&b->kernel, module,
									    "spin"),
		 "kernel");
}

static void prepare_copies(struct bench *b)
{
	gpu_must(CALL("cuCtxCreate_v2", void **, unsigned int, int)(&b->own, 0, 0), "cuCtxCreate");
	gpu_must(CALL("cuStreamCreate", void **, unsigned int)(&b->stream, 1), "stream");
	gpu_must(CALL("cuEventCreate", void **, unsigned int)(&b->event, 2), "event");
	gpu_must(CALL("cuMemHostAlloc", void **, size_t, unsigned int)(&b->host, MOST, 1),
		 "cuMemHostAlloc");
	memset(b->host, 0x5a, MOST);
}

static void start_kernel(const struct bench *b)
{
	uint32_t *word = b->word;
	void *args[] = {&word};

	*b->word = 0;
	gpu_must(CALL("cuLaunchKernel", void *, unsigned int, unsigned int, unsigned int,
		      unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
		      void **)(b->kernel, 1, 1, 1, 1, 1, 1, 0, b->kernel_stream, args, NULL),
		 "cuLaunchKernel");
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	struct gpu_memory targets[2];
	void *primary;

	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu_open(0);
	gpu_must(CALL("cuCtxGetCurrent", void **)(&primary), "cuCtxGetCurrent");
	targets[0] = gpu_take(GPU_VMM, MOST, 0);
	targets[1] = gpu_take(GPU_ALLOC, MOST, 0);
	prepare_kernel(&b);
	prepare_copies(&b);
	for (unsigned int beside = 0; beside < 2; beside++) {
		gpu_must(CALL("cuCtxSetCurrent", void *)(primary), "context");
		if (beside)
			start_kernel(&b);
		gpu_must(CALL("cuCtxSetCurrent", void *)(b.own), "context");
		/* Copies of allocated memory beside a kernel may never end: the owner's lock. */
		for (unsigned int t = 0; t < 2 - beside; t++)
			for (int i = 1; i < argc; i++) {
				size_t len = strtoul(argv[i], NULL, 0);

				if (len >= 8 && len <= MOST && len % 8 == 0)
					measure_all(&b, &targets[t], len,
						    beside ? "kernel" : "nothing");
			}
	}
	*b.word = 1;
	return 0;
}
