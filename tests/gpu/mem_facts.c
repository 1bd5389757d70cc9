/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CUDA driver says of memory, and filling, checking and copying it.
 */
#include "mem_probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mem/bar1.h"
#include "mem/cuda.h"

enum { MIB = 1 << 20, LINE = 160 };

static const char *name(const struct pp_memory *m, int code)
{
	static char text[PP_CUDA_TEXT];

	return code ? pp_cuda_error(&m->cuda->call, code, text) : "good";
}

static void device(const struct pp_memory *m)
{
	const struct pp_cuda *c = m->cuda;

	fact("GPU %s: memory %llu MiB, BAR1 %lld MiB of which %lld free", c->name,
	     (unsigned long long)c->memory >> 20, (long long)m->bar1_total >> 20,
	     (long long)m->bar1_free >> 20);
	fact("DMA_BUF %d, GPU_DIRECT_RDMA %d, with VMM %d, POSIX_FD %d, FLUSH_OPTIONS %d, ORDERING "
	     "%d, COMPUTE_MODE %d",
	     c->dmabuf, c->gdr, c->gdr_vmm, c->posix_fd, c->flush_options, c->writes_ordering,
	     c->compute_mode);
}

/* What the kernel's file says of a descriptor: its lines "size:", "exp_name:", "count:". */
static void fdinfo(int fd, const char *what)
{
	char path[64], line[LINE], all[3 * LINE] = "";
	size_t len = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if ((!strncmp(line, "size:", 5) || !strncmp(line, "exp_name:", 9) ||
		     !strncmp(line, "count:", 6)) &&
		    len + strlen(line) + 3 < sizeof(all))
			len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
						len ? ", " : "", line);
	}
	if (f)
		(void)fclose(f);
	fact("%s: %s; lseek to the end: %lld", what, all, (long long)lseek(fd, 0, SEEK_END));
}

/* Exports [at, at + size) and says what came of it; the exported bytes, -1 when refused. */
static long long export(const struct pp_memory *m, uint64_t at, size_t size, const char *what)
{
	int64_t before, after;
	long long bytes = -1;
	int fd = -1, code;

	pp_cuda_enter(m->cuda);
	pp_bar1_read(&m->cuda->bar1, NULL, &before);
	code = m->cuda->call.handle_for_range(&fd, at, size, PP_CUDA_DMABUF_FD, 0);
	pp_bar1_read(&m->cuda->bar1, NULL, &after);
	fact("export of %s, %zu bytes: %s; BAR1 used %lld -> %lld KiB", what, size, name(m, code),
	     (long long)before >> 10, (long long)after >> 10);
	if (!code) {
		fdinfo(fd, what);
		bytes = lseek(fd, 0, SEEK_END);
		(void)close(fd);
	}
	return bytes;
}

static void attributes(const struct pp_memory *m, const char *what)
{
	const struct pp_cuda_calls *call = &m->cuda->call;
	unsigned int on = 1;
	int ordinal = -1, capable = 0, a, b, c;

	pp_cuda_enter(m->cuda);
	a = call->pointer_get(&ordinal, PP_CUDA_DEVICE_ORDINAL, m->at);
	b = call->pointer_get(&capable, PP_CUDA_GDR_CAPABLE, m->at);
	c = call->pointer_set(&on, PP_CUDA_SYNC_MEMOPS, m->at);
	fact("%s: DEVICE_ORDINAL %d (%s)", what, ordinal, name(m, a));
	fact("%s: IS_GPU_DIRECT_RDMA_CAPABLE %d (%s)", what, capable, name(m, b));
	fact("%s: SYNC_MEMOPS: %s", what, name(m, c));
	check(capable == 1, "%s: CUDA says that it is for GPUDirect RDMA", what);
}

static void range(const struct pp_memory *m, uint64_t at, const char *what)
{
	uint64_t base = 0;
	size_t size = 0;
	int code;

	pp_cuda_enter(m->cuda);
	code = m->cuda->call.address_range(&base, &size, at);
	fact("cuMemGetAddressRange of %s: %s, begins %lld bytes before, %zu bytes", what,
	     name(m, code), (long long)(at - base), size);
}

static void plain(const char *gpu)
{
	struct pp_memory *m = memory_new(&(struct pp_memory_options){
		.kind = PP_MEMORY_CUDA, .gpu = gpu, .size = 4 * MIB, .inside = 70000});
	const struct pp_memory_segment *s;
	uint64_t odd = 0;

	if (!m)
		return;
	s = &m->segment[0];
	device(m);
	attributes(m, "cuMemAlloc");
	range(m, m->at, "a pointer 70000 bytes inside");
	check(export(m, s->base, s->size, "an allocation") == (long long)s->size,
	      "an export has the allocation's size");
	(void)export(m, s->base + 65536, 65536, "64 KiB within an allocation");
	(void)export(m, s->base + 4096, 4096, "4 KiB at 4 KiB");
	(void)export(m, s->base + 512, 4096, "4 KiB at 512 bytes");
	(void)export(m, s->base, 1000, "1000 bytes");
	(void)export(m, s->base, s->size + 4 * MIB, "more than the allocation");
	if (!m->cuda->call.alloc(&odd, 1000)) {
		range(m, odd, "cuMemAlloc of 1000 bytes");
		(void)export(m, odd & ~4095ULL, 4096, "the page of cuMemAlloc of 1000 bytes");
		(void)m->cuda->call.free(odd);
	}
	pp_memory_free(m);
}

static void segments(const char *gpu)
{
	struct pp_memory *m = memory_new(&(struct pp_memory_options){.kind = PP_MEMORY_CUDA_VMM,
								     .gpu = gpu,
								     .size = 7 * MIB,
								     .segments = 2,
								     .inside = 1 * MIB});
	uint64_t second;

	if (!m)
		return;
	attributes(m, "cuMemCreate");
	second = m->segment[1].base;
	range(m, m->at, "a pointer in the first of two segments");
	range(m, second + 4096, "a pointer in the second of two segments");
	for (unsigned int i = 0; i < m->n_segments; i++)
		check(export(m, m->segment[i].base, m->segment[i].size, "one segment") ==
			      (long long)m->segment[i].size,
		      "segment %u is exported with its size", i);
	(void)export(m, m->segment[0].base, m->segment[0].size + m->segment[1].size,
		     "both segments in one call");
	(void)export(m, second - 65536, 2 * 65536, "64 KiB on each side of the border");
	(void)export(m, second + 65536, 65536, "64 KiB within the second");
	pp_memory_free(m);
}

/* A byte that is changed behind the checker's back is found, at its place. */
static void payload(struct pp_memory *m, const char *what)
{
	struct pp_memory_checked c = {0};
	uint64_t at = m->size / 2 + 12345;
	struct pp_bounce b = {0};
	struct pp_copy *t = NULL;
	struct pp_error err = {0};
	pp_ns a = pp_clock_monotonic(), f;
	int r = pp_memory_fill(m, 0, m->size, 42, &err);

	f = pp_clock_monotonic();
	if (!r)
		r = pp_memory_check(m, 0, m->size, 42, 0, &c, &err);
	fact("%s: fill %.1f GB/s, check %.1f GB/s", what, (double)m->size / (double)(f - a),
	     (double)m->size / (double)(pp_clock_monotonic() - f));
	check(!r && c.bytes == m->size && !c.wrong, "%s: filled and right (%s)", what,
	      r ? err.text : "");
	if (r || pp_bounce_new(m, 4096, &b, &err) || pp_copy_new(m, &t, &err))
		return;
	r = pp_copy_out(m, t, at, b.at, 1);
	while (!r && !pp_copy_done(m, t))
		;
	b.at[0] ^= 0xff;
	r = r ? r : pp_copy_in(m, t, at, b.at, 1);
	while (!r && !pp_copy_done(m, t))
		;
	r = r ? r : pp_memory_check(m, 0, m->size, 42, 0, &c, &err);
	check(!r && c.wrong == 1 && c.first == at, "%s: one changed byte is found at its place",
	      what);
	pp_copy_free(m, t);
	pp_bounce_free(m, &b);
}

static void speed(struct pp_memory *m, size_t bytes, bool out)
{
	enum { DEPTH = 4, ROUNDS = 64 };
	struct pp_bounce b[DEPTH] = {0};
	struct pp_copy *t[DEPTH] = {0};
	struct pp_error err = {0};
	pp_ns start;
	int r = 0;

	for (int i = 0; i < DEPTH && !r; i++)
		r = pp_bounce_new(m, bytes, &b[i], &err) || pp_copy_new(m, &t[i], &err);
	start = pp_clock_monotonic();
	for (int i = 0; i < ROUNDS && !r; i++) {
		while (!pp_copy_done(m, t[i % DEPTH]))
			;
		r = out ? pp_copy_out(m, t[i % DEPTH], 0, b[i % DEPTH].at, bytes)
			: pp_copy_in(m, t[i % DEPTH], 0, b[i % DEPTH].at, bytes);
	}
	for (int i = 0; i < DEPTH && !r; i++)
		while (!pp_copy_done(m, t[i]))
			;
	fact("copies of %zu KiB %s: %.1f GB/s", bytes >> 10, out ? "out" : "in",
	     (double)bytes * ROUNDS / (double)(pp_clock_monotonic() - start));
	check(!r, "copies of %zu KiB %s", bytes >> 10, out ? "out" : "in");
	for (int i = 0; i < DEPTH; i++) {
		pp_copy_free(m, t[i]);
		pp_bounce_free(m, &b[i]);
	}
}

static void copies(const char *gpu)
{
	static const size_t sizes[] = {4096, 65536, MIB, 4 * MIB};
	struct pp_memory *m = memory_new(
		&(struct pp_memory_options){.kind = PP_MEMORY_CUDA, .gpu = gpu, .size = 256 * MIB});

	if (!m)
		return;
	payload(m, "cuda");
	for (size_t i = 0; i < PP_ARRAY_LEN(sizes); i++) {
		speed(m, sizes[i], true);
		speed(m, sizes[i], false);
	}
	pp_memory_free(m);
	m = memory_new(&(struct pp_memory_options){.kind = PP_MEMORY_CUDA_VMM,
						   .gpu = gpu,
						   .size = 62 * MIB,
						   .segments = 2,
						   .inside = MIB});
	if (m)
		payload(m, "cuda-vmm");
	pp_memory_free(m);
}

void facts(const char *gpu)
{
	plain(gpu);
	segments(gpu);
	copies(gpu);
}
