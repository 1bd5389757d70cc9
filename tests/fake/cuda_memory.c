/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other half of the fake libcuda.so.1: a GPU's memory, which is ordinary memory here, so that
 * what is exported as a DMA-BUF (a memfd) can be mapped by whoever imports it.
 *
 * Copies are asynchronous in earnest: a copy is made when its stream is next looked at, one copy a
 * look, so that whoever reads before an event says so reads what was there before. As the real
 * driver: a copy to or from memory that nobody has is refused, an export must begin and end with
 * pages of one allocation, memory of cuMemCreate has no SYNC_MEMOPS and is no one allocation.
 *
 * PP_FAKE_CUDA_FAIL: "cuMemAlloc_v2=2,cuMemGetHandleForAddressRange=801@2": which call gives which
 * CUresult, from its n-th time on. PP_FAKE_CUDA: exclusive: another process has the GPU;
 * prohibited: nobody may; unordered: writes of a NIC must be flushed; spans: an export may reach
 * over several segments. PP_FAKE_GPU_BUS: the bus of GPU 0 (18; else 3b).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum {
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	UNAVAILABLE = 46,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_READY = 600,
	NOT_SUPPORTED = 801,
	SEGMENT = 2 << 20,
	PAGE = 4096,
	MOST = 64,
	MOST_COPIES = 256,
};

/* An allocation, or a segment: a memfd, and where it is mapped (0: nowhere yet). */
struct memory {
	bool used, made; /* made: by cuMemCreate */
	int fd;
	uint64_t at, size;
};

struct range {
	uint64_t at, size;
};

/* A copy, or something of a library's that is asked until it is done (0). */
struct copy {
	void *to;
	const void *from;
	size_t len;
	int (*step)(void *arg);
	void *arg;
};

struct stream {
	struct copy copy[MOST_COPIES];
	unsigned long started, done;
};

struct event {
	struct stream *stream;
	unsigned long until;
};

static struct memory memories[MOST];
static struct range reserved[MOST], locked[MOST];
static int contexts, streams, events, flushes;
static void *current;
static char context_of[2];

static bool word(const char *name)
{
	const char *set = getenv("PP_FAKE_CUDA");

	return set && !strcmp(set, name);
}

/* What PP_FAKE_CUDA_FAIL says of this call of @name, its @count-th. */
static int demanded(const char *name, unsigned int count)
{
	const char *p = getenv("PP_FAKE_CUDA_FAIL");
	size_t len = strlen(name);
	unsigned int code, from;

	for (; p && *p; p += strcspn(p, ","), p += *p == ',') {
		if (strncmp(p, name, len) != 0 || p[len] != '=')
			continue;
		for (p += len + 1, code = 0; *p >= '0' && *p <= '9'; p++)
			code = code * 10 + (unsigned int)(*p - '0');
		from = 1;
		if (*p == '@')
			for (p++, from = 0; *p >= '0' && *p <= '9'; p++)
				from = from * 10 + (unsigned int)(*p - '0');
		if (count >= from)
			return (int)code;
	}
	return 0;
}

/* Counts begin anew: every one of them when it is next looked at. */
static unsigned int era;

API int pp_fake_cuda_count_again(void)
{
	return (int)++era;
}

static unsigned int counted(unsigned int *calls, unsigned int *of)
{
	if (*of != era)
		*calls = 0;
	*of = era;
	return ++*calls;
}

#define MAY_FAIL                                                        \
	do {                                                            \
		static unsigned int calls_, of_;                        \
		int code_ = demanded(__func__, counted(&calls_, &of_)); \
		if (code_)                                              \
			return code_;                                   \
	} while (0)

#define NEEDS_CONTEXT                           \
	do {                                    \
		if (!current)                   \
			return INVALID_CONTEXT; \
	} while (0)

/* For tests: what was made and not undone. */
API int pp_fake_cuda_live(void)
{
	int n = contexts + streams + events;

	for (int i = 0; i < MOST; i++)
		n += memories[i].used + (reserved[i].size != 0) + (locked[i].size != 0);
	return n;
}

API int pp_fake_cuda_flushes(void)
{
	return flushes;
}

API int cuDeviceGetByPCIBusId(int *to, const char *bdf)
{
	const char *bus = getenv("PP_FAKE_GPU_BUS");
	char first[16];

	MAY_FAIL;
	(void)snprintf(first, sizeof(first), "0000:%s:00.0", bus ? bus : "3b");
	if (!strcasecmp(bdf, first))
		*to = 0;
	else if (!strcasecmp(bdf, "0000:9a:00.0") && !word("one"))
		*to = 1;
	else
		return INVALID_DEVICE;
	return 0;
}

API int cuDeviceTotalMem_v2(size_t *to, int device)
{
	(void)device;
	*to = (size_t)143771 << 20;
	return 0;
}

API int cuDevicePrimaryCtxRetain(void **to, int device)
{
	MAY_FAIL;
	if (device < 0 || device > 1)
		return INVALID_DEVICE;
	if (word("exclusive") || word("prohibited"))
		return UNAVAILABLE;
	contexts++;
	*to = &context_of[device];
	return 0;
}

API int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	if (!contexts)
		return INVALID_CONTEXT;
	if (!--contexts)
		current = NULL;
	return 0;
}

API int cuCtxSetCurrent(void *context)
{
	current = context;
	return 0;
}

API int cuCtxGetDevice(int *to)
{
	NEEDS_CONTEXT;
	*to = current == &context_of[1];
	return 0;
}

API int cuCtxSynchronize(void)
{
	NEEDS_CONTEXT;
	return 0;
}

static struct memory *new_memory(uint64_t size)
{
	for (int i = 0; i < MOST; i++) {
		struct memory *m = &memories[i];

		if (m->used)
			continue;
		m->fd = memfd_create("fake-gpu", MFD_CLOEXEC);
		if (m->fd < 0 || ftruncate(m->fd, (off_t)size))
			return NULL;
		m->used = true;
		m->made = false;
		m->at = 0;
		m->size = size;
		return m;
	}
	return NULL;
}

static void drop(struct memory *m)
{
	(void)close(m->fd);
	*m = (struct memory){0};
}

/* Who has [at, at + len); NULL: nobody, or several. */
static struct memory *owner(uint64_t at, uint64_t len)
{
	for (int i = 0; i < MOST; i++) {
		struct memory *m = &memories[i];

		if (m->used && m->at && at >= m->at && at < m->at + m->size)
			return len <= m->size - (at - m->at) ? m : NULL;
	}
	return NULL;
}

/* Is all of it somebody's? */
static bool mapped(uint64_t at, uint64_t len)
{
	for (const struct memory *m; len; at = m->at + m->size) {
		m = owner(at, 1);
		if (!m)
			return false;
		len -= len < m->at + m->size - at ? len : m->at + m->size - at;
	}
	return true;
}

API int cuMemAlloc_v2(uint64_t *to, size_t size)
{
	struct memory *m;
	void *at;

	MAY_FAIL;
	NEEDS_CONTEXT;
	if (!size)
		return INVALID_VALUE;
	m = new_memory((size + PAGE - 1) & ~(size_t)(PAGE - 1));
	at = m ? mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0) : MAP_FAILED;
	if (at == MAP_FAILED)
		return OUT_OF_MEMORY;
	*to = m->at = (uintptr_t)at;
	return 0;
}

API int cuMemFree_v2(uint64_t at)
{
	struct memory *m = owner(at, 1);

	MAY_FAIL;
	NEEDS_CONTEXT;
	if (!m || m->made || m->at != at)
		return INVALID_VALUE;
	(void)munmap((void *)(uintptr_t)at, m->size);
	drop(m);
	return 0;
}

API int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t at)
{
	const struct memory *m = owner(at, 1);

	MAY_FAIL;
	NEEDS_CONTEXT;
	if (!m)
		return INVALID_VALUE;
	*base = m->at;
	*size = m->size;
	return 0;
}

API int cuPointerGetAttribute(void *to, int attribute, uint64_t at)
{
	MAY_FAIL;
	if (!owner(at, 1))
		return INVALID_VALUE;
	switch (attribute) {
	case 9: /* device ordinal */
		*(int *)to = current == &context_of[1];
		return 0;
	case 15: /* for GPUDirect RDMA */
		*(unsigned char *)to = 1;
		return 0;
	default:
		return INVALID_VALUE;
	}
}

API int cuPointerSetAttribute(const void *value, int attribute, uint64_t at)
{
	const struct memory *m = owner(at, 1);

	MAY_FAIL;
	NEEDS_CONTEXT;
	if (!m || attribute != 6 || *(const unsigned int *)value != 1)
		return INVALID_VALUE;
	return m->made ? NOT_SUPPORTED : 0;
}

API int cuMemGetHandleForAddressRange(void *to, uint64_t at, size_t size, int type,
				      unsigned long long flags)
{
	const struct memory *m = owner(at, word("spans") ? 1 : size);

	MAY_FAIL;
	NEEDS_CONTEXT;
	if (flags || type != 1)
		return NOT_SUPPORTED;
	if (word("proprietary"))
		return NOT_SUPPORTED;
	/* A memfd cannot stand for a part that begins elsewhere. */
	if (!m || at != m->at || !size || at % PAGE || size % PAGE)
		return INVALID_VALUE;
	*(int *)to = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	return 0;
}

API int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	MAY_FAIL;
	NEEDS_CONTEXT;
	if (target || scope != 100)
		return INVALID_VALUE;
	flushes++;
	return 0;
}

/* The properties as the driver's header has them: type, handle types, place, two bytes of flags. */
static bool property(const int *p)
{
	return p[0] == 1 && (p[1] == 0 || p[1] == 1) && p[2] == 1 && (p[3] == 0 || p[3] == 1) &&
	       ((const unsigned char *)p)[25] == 1;
}

API int cuMemGetAllocationGranularity(size_t *to, const int *p, int option)
{
	MAY_FAIL;
	if (!property(p) || option > 1)
		return INVALID_VALUE;
	*to = SEGMENT;
	return 0;
}

API int cuMemCreate(uint64_t *to, size_t size, const int *p, unsigned long long flags)
{
	struct memory *m;

	MAY_FAIL;
	if (!property(p) || flags || !size || size % SEGMENT)
		return INVALID_VALUE;
	m = new_memory(size);
	if (!m)
		return OUT_OF_MEMORY;
	m->made = true;
	*to = (uint64_t)(m - memories) + 1;
	return 0;
}

static struct memory *of_handle(uint64_t handle)
{
	return handle && handle <= MOST && memories[handle - 1].used && memories[handle - 1].made
		       ? &memories[handle - 1]
		       : NULL;
}

API int cuMemRelease(uint64_t handle)
{
	struct memory *m = of_handle(handle);

	if (!m || m->at)
		return INVALID_VALUE;
	drop(m);
	return 0;
}

API int cuMemAddressReserve(uint64_t *to, size_t size, size_t alignment, uint64_t at,
			    unsigned long long flags)
{
	void *there;

	MAY_FAIL;
	if (!size || size % SEGMENT || alignment || at || flags)
		return INVALID_VALUE;
	there = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (int i = 0; i < MOST && there != MAP_FAILED; i++) {
		if (reserved[i].size)
			continue;
		reserved[i] = (struct range){(uintptr_t)there, size};
		*to = (uintptr_t)there;
		return 0;
	}
	return OUT_OF_MEMORY;
}

API int cuMemAddressFree(uint64_t at, size_t size)
{
	for (int i = 0; i < MOST; i++) {
		if (reserved[i].at != at || reserved[i].size != size)
			continue;
		(void)munmap((void *)(uintptr_t)at, size);
		reserved[i] = (struct range){0};
		return 0;
	}
	return INVALID_VALUE;
}

API int cuMemMap(uint64_t at, size_t size, size_t offset, uint64_t handle, unsigned long long flags)
{
	struct memory *m = of_handle(handle);
	void *there;

	MAY_FAIL;
	if (!m || offset || flags || size != m->size || m->at)
		return INVALID_VALUE;
	there = mmap((void *)(uintptr_t)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd, 0);
	if (there == MAP_FAILED)
		return OUT_OF_MEMORY;
	m->at = at;
	return 0;
}

API int cuMemUnmap(uint64_t at, size_t size)
{
	struct memory *m = owner(at, size);

	if (!m || !m->made || m->at != at)
		return INVALID_VALUE;
	(void)mmap((void *)(uintptr_t)at, size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	m->at = 0;
	return 0;
}

API int cuMemSetAccess(uint64_t at, size_t size, const int *access, size_t count)
{
	MAY_FAIL;
	if (count != 1 || access[0] != 1 || access[2] != 3 || !mapped(at, size))
		return INVALID_VALUE;
	return mprotect((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE) ? OUT_OF_MEMORY : 0;
}

API int cuMemHostRegister_v2(void *at, size_t size, unsigned int flags)
{
	MAY_FAIL;
	NEEDS_CONTEXT;
	for (int i = 0; i < MOST && flags == 1; i++) {
		if (locked[i].size)
			continue;
		locked[i] = (struct range){(uintptr_t)at, size};
		return 0;
	}
	return INVALID_VALUE;
}

API int cuMemHostUnregister(void *at)
{
	NEEDS_CONTEXT;
	for (int i = 0; i < MOST; i++) {
		if (locked[i].at != (uintptr_t)at)
			continue;
		locked[i] = (struct range){0};
		return 0;
	}
	return INVALID_VALUE;
}

API int cuStreamCreate(void **to, unsigned int flags)
{
	MAY_FAIL;
	NEEDS_CONTEXT;
	(void)flags;
	*to = calloc(1, sizeof(struct stream));
	streams += *to != NULL;
	return *to ? 0 : OUT_OF_MEMORY;
}

API int cuStreamDestroy_v2(void *stream)
{
	NEEDS_CONTEXT;
	free(stream);
	streams--;
	return 0;
}

API int cuEventCreate(void **to, unsigned int flags)
{
	MAY_FAIL;
	NEEDS_CONTEXT;
	(void)flags;
	*to = calloc(1, sizeof(struct event));
	events += *to != NULL;
	return *to ? 0 : OUT_OF_MEMORY;
}

API int cuEventDestroy_v2(void *event)
{
	free(event);
	events--;
	return 0;
}

API int cuEventRecord(void *event, void *stream)
{
	struct event *e = event;
	struct stream *s = stream;

	MAY_FAIL;
	e->stream = s;
	e->until = s->started;
	return 0;
}

/* False: it is not done yet, and what is behind it waits. */
static bool make_one(struct stream *s)
{
	const struct copy *c = &s->copy[s->done % MOST_COPIES];

	if (c->step && c->step(c->arg))
		return false;
	if (!c->step)
		memcpy(c->to, c->from, c->len);
	s->done++;
	return true;
}

static void make_one_in_time(struct stream *s)
{
	while (!make_one(s))
		(void)usleep(20);
}

API int cuEventQuery(void *event)
{
	const struct event *e = event;

	MAY_FAIL;
	NEEDS_CONTEXT;
	if (!e->stream || e->stream->done >= e->until)
		return 0;
	(void)make_one(e->stream);
	return NOT_READY;
}

API int cuEventSynchronize(void *event)
{
	const struct event *e = event;

	MAY_FAIL;
	NEEDS_CONTEXT;
	while (e->stream && e->stream->done < e->until)
		make_one_in_time(e->stream);
	return 0;
}

static int add(struct stream *s, struct copy c)
{
	if (!current)
		return INVALID_CONTEXT;
	if (!s)
		return INVALID_HANDLE;
	if (s->started - s->done == MOST_COPIES)
		make_one_in_time(s);
	s->copy[s->started++ % MOST_COPIES] = c;
	return 0;
}

static int start(struct stream *s, void *to, const void *from, size_t len)
{
	return add(s, (struct copy){.to = to, .from = from, .len = len});
}

/* For the fake NCCL: its part of a stream, in order with the copies. */
API int pp_fake_cuda_later(void *stream, int (*step)(void *arg), void *arg)
{
	return add(stream, (struct copy){.step = step, .arg = arg});
}

API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream)
{
	MAY_FAIL;
	return mapped(to, len) ? start(stream, (void *)(uintptr_t)to, from, len) : INVALID_VALUE;
}

API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream)
{
	MAY_FAIL;
	return mapped(from, len) ? start(stream, to, (const void *)(uintptr_t)from, len)
				 : INVALID_VALUE;
}
