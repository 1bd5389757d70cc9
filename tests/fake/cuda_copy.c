/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that copies: device memory that nobody can touch (its addresses are mapped without
 * rights; the bytes lie elsewhere), descriptors of it that cannot be mapped, streams whose copies
 * are carried out late, and only when somebody looks at an event behind them.
 *
 * It watches its user, who is to copy in a context of his own, never wait, and leave freed memory
 * alone: what it sees is appended to the file PP_FAKE_CUDA_LOG, a line each:
 *
 *	copy <pid> to-device|to-host <bytes>      wrong <pid> <what>
 *	pin <pid> all|read-only <bytes>           unpin <pid>
 *
 * PP_FAKE_CUDA_DELAY_US: how long a copy takes at most (default 200). PP_FAKE_CUDA: fail-context;
 * fail-copy: every tenth copy of a process fails;
 * no-read-only: memory cannot be page-locked for reading only; hang: no copy of more than 1 MiB is
 *ever done.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum {
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	INVALID_CONTEXT = 201,
	NOT_READY = 600,
	NOT_SUPPORTED = 801,
	LAUNCH_FAILED = 719,
	MEMORY_MAX = 256,
	PINNED_MAX = 256,
	STACK_MAX = 16,
	GRANULARITY = 2 << 20,
	OWNED_MAX = 256,
};

struct context {
	bool primary;
	void *owned[OWNED_MAX]; /* streams and events, which go with it */
	unsigned int num_owned;
};

struct op {
	struct op *next;
	struct context *context;
	bool to_device;
	uint64_t device;
	void *host;
	size_t len;
	int64_t due; /* ns */
	bool fails;
};

struct stream {
	struct op *first, *last;
	uint64_t begun, done;
	struct context *context;
	int64_t busy_until;
	bool failed;
};

struct event {
	struct stream *stream;
	uint64_t behind;
};

static struct memory {
	uint64_t va;
	size_t len;
	uint8_t *bytes;
	bool mapped; /* by cuMemMap() */
} memory[MEMORY_MAX];

static struct {
	uintptr_t at;
	size_t len;
	bool read_only;
} pinned[PINNED_MAX];

static struct context primary = {.primary = true};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct context *stack[STACK_MAX];
static __thread unsigned int depth;
static unsigned int copies;

static bool mode(const char *word)
{
	const char *set = getenv("PP_FAKE_CUDA");

	return set && !strcmp(set, word);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	const char *path = getenv("PP_FAKE_CUDA_LOG");
	char line[256];
	va_list args;
	int fd, n;

	if (!path)
		return;
	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		abort();
	close(fd);
}

static void wrong(const char *what)
{
	say("wrong %d %s\n", getpid(), what);
}

static struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static struct memory *find(uint64_t at)
{
	for (unsigned int i = 0; i < MEMORY_MAX; i++)
		if (memory[i].len && at - memory[i].va < memory[i].len)
			return &memory[i];
	return NULL;
}

/* Bytes of the device: of one mapping, or of several that follow each other. */
static void move(uint64_t device, uint8_t *host, size_t len, bool to_device)
{
	while (len) {
		struct memory *m = find(device);
		size_t offset, part;

		if (!m) {
			wrong("a copy touches memory that is not, or no more, the device's");
			return;
		}
		offset = device - m->va;
		part = m->len - offset < len ? m->len - offset : len;
		if (to_device)
			memcpy(m->bytes + offset, host, part);
		else
			memcpy(host, m->bytes + offset, part);
		device += part;
		host += part;
		len -= part;
	}
}

static bool is_pinned(const void *at, size_t len, bool written)
{
	for (unsigned int i = 0; i < PINNED_MAX; i++)
		if ((uintptr_t)at - pinned[i].at < pinned[i].len &&
		    pinned[i].len - ((uintptr_t)at - pinned[i].at) >= len &&
		    !(written && pinned[i].read_only))
			return true;
	return false;
}

API int cuInit(unsigned int flags)
{
	return flags ? INVALID_VALUE : 0;
}

API int cuDeviceGetCount(int *to)
{
	*to = 1;
	return 0;
}

API int cuDeviceGet(int *to, int ordinal)
{
	*to = 0;
	return ordinal ? 101 : 0;
}

API int cuDeviceGetPCIBusId(char *to, int size, int device)
{
	(void)device;
	(void)strncpy(to, "0000:3B:00.0", (size_t)size);
	return 0;
}

API int cuDeviceGetAttribute(int *to, int attribute, int device)
{
	(void)device;
	*to = attribute == 124 || attribute == 110 || attribute == 116;
	return attribute == 133 ? INVALID_VALUE : 0;
}

API int cuDevicePrimaryCtxRetain(struct context **to, int device)
{
	(void)device;
	*to = &primary;
	return 0;
}

API int cuCtxPushCurrent_v2(struct context *context)
{
	if (depth == STACK_MAX)
		return INVALID_VALUE;
	stack[depth++] = context;
	return 0;
}

API int cuCtxPopCurrent_v2(struct context **to)
{
	if (!depth)
		return INVALID_CONTEXT;
	*to = stack[--depth];
	return 0;
}

API int cuCtxSetCurrent(struct context *context)
{
	if (!depth)
		depth = 1;
	stack[depth - 1] = context;
	return 0;
}

API int cuCtxGetCurrent(struct context **to)
{
	*to = current();
	return 0;
}

API int cuCtxCreate_v2(struct context **to, unsigned int flags, int device)
{
	(void)flags;
	(void)device;
	if (mode("fail-context"))
		return OUT_OF_MEMORY;
	*to = calloc(1, sizeof(**to));
	return *to ? cuCtxPushCurrent_v2(*to) : OUT_OF_MEMORY;
}

API int cuCtxDestroy_v2(struct context *context)
{
	if (context->primary) {
		wrong("the application's context is destroyed");
		return INVALID_VALUE;
	}
	for (unsigned int i = 0; i < context->num_owned; i++)
		free(context->owned[i]);
	free(context);
	return 0;
}

/* A part of the current context. */
static void *part(size_t size)
{
	struct context *c = current();
	void *at = c && c->num_owned < OWNED_MAX ? calloc(1, size) : NULL;

	if (at)
		c->owned[c->num_owned++] = at;
	return at;
}

API int cuCtxSynchronize(void)
{
	if (current() != &primary)
		wrong("cuCtxSynchronize");
	return 0;
}

API int cuThreadExchangeStreamCaptureMode(int *to)
{
	static __thread int was;
	int before = was;

	was = *to;
	*to = before;
	return 0;
}

API int cuStreamCreate(struct stream **to, unsigned int flags)
{
	if (flags != 1)
		wrong("a stream that waits for others");
	if (!current())
		return INVALID_CONTEXT;
	*to = part(sizeof(**to));
	if (!*to)
		return OUT_OF_MEMORY;
	(*to)->context = current();
	return 0;
}

API int cuStreamSynchronize(struct stream *stream)
{
	if (!stream || !stream->context->primary)
		wrong("cuStreamSynchronize");
	return 0;
}

API int cuEventCreate(struct event **to, unsigned int flags)
{
	(void)flags;
	*to = part(sizeof(**to));
	return *to ? 0 : OUT_OF_MEMORY;
}

API int cuEventRecord(struct event *event, struct stream *stream)
{
	pthread_mutex_lock(&lock);
	event->stream = stream;
	event->behind = stream->begun;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void carry_out(struct stream *s)
{
	struct op *op = s->first;

	s->first = op->next;
	if (!s->first)
		s->last = NULL;
	s->done++;
	if (op->fails)
		s->failed = true;
	else
		move(op->device, op->host, op->len, op->to_device);
	free(op);
}

API int cuEventQuery(struct event *event)
{
	struct stream *s = event->stream;
	bool done, failed;

	pthread_mutex_lock(&lock);
	while (s->first && s->done < event->behind && s->first->due <= now())
		carry_out(s);
	done = s->done >= event->behind;
	failed = s->failed;
	pthread_mutex_unlock(&lock);
	return failed ? LAUNCH_FAILED : done ? 0 : NOT_READY;
}

API int cuEventSynchronize(struct event *event)
{
	(void)event;
	wrong("cuEventSynchronize");
	return 0;
}

static int begin(struct op op, struct stream *s)
{
	const char *delay = getenv("PP_FAKE_CUDA_DELAY_US");
	int64_t most = (delay ? atoi(delay) : 200) * INT64_C(1000);
	struct op *copy = malloc(sizeof(*copy));

	if (!copy)
		return OUT_OF_MEMORY;
	say("copy %d %s %zu\n", getpid(), op.to_device ? "to-device" : "to-host", op.len);
	if (!s || s->context->primary || current() != s->context)
		wrong("a copy in the application's context");
	pthread_mutex_lock(&lock);
	if (!is_pinned(op.host, op.len, !op.to_device))
		wrong("a copy of memory that is not page-locked");
	if (!find(op.device))
		wrong("a copy of memory that is not, or no more, the device's");
	op.next = NULL;
	op.fails = mode("fail-copy") && ++copies % 10 == 0;
	op.due = now() + (most ? rand() % most : 0);
	if (mode("hang") && op.len > 1 << 20)
		op.due = INT64_MAX;
	*copy = op;
	if (s->last)
		s->last->next = copy;
	else
		s->first = copy;
	s->last = copy;
	s->begun++;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int cuMemcpyHtoDAsync_v2(uint64_t to, void *from, size_t len, struct stream *s)
{
	return begin((struct op){.to_device = true, .device = to, .host = from, .len = len}, s);
}

API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, struct stream *s)
{
	return begin((struct op){.device = from, .host = to, .len = len}, s);
}

API int cuModuleLoadData(void **to, const void *image)
{
	if (current() == &primary)
		wrong("a kernel in the application's context");
	*to = (void *)(uintptr_t)image;
	return strstr(image, ".entry soft_copy") ? 0 : INVALID_VALUE;
}

API int cuModuleGetFunction(void **to, void *module, const char *name)
{
	*to = module;
	return strcmp(name, "soft_copy") ? INVALID_VALUE : 0;
}

/* The one kernel there is copies: to, from, length. */
API int cuLaunchKernel(void *function, unsigned int x, unsigned int y, unsigned int z,
		       unsigned int block_x, unsigned int block_y, unsigned int block_z,
		       unsigned int shared, struct stream *s, void **arguments, void **more)
{
	uint64_t to = *(uint64_t *)arguments[0], from = *(uint64_t *)arguments[1];
	size_t len = *(uint64_t *)arguments[2];
	bool to_device;

	(void)function;
	(void)shared;
	if (!x || y != 1 || z != 1 || !block_x || block_y != 1 || block_z != 1 || more)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	to_device = find(to) != NULL;
	pthread_mutex_unlock(&lock);
	return begin((struct op){.to_device = to_device,
				 .device = to_device ? to : from,
				 .host = (void *)(uintptr_t)(to_device ? from : to),
				 .len = len},
		     s);
}

static int at_once(uint64_t device, void *host, size_t len, bool to_device)
{
	if (current() != &primary) {
		wrong("a copy that is waited for");
		return INVALID_CONTEXT;
	}
	pthread_mutex_lock(&lock);
	move(device, host, len, to_device);
	pthread_mutex_unlock(&lock);
	return 0;
}

API int cuMemcpyHtoD_v2(uint64_t to, void *from, size_t len)
{
	return at_once(to, from, len, true);
}

API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len)
{
	return at_once(from, to, len, false);
}

/* As the kernel says: the driver may only read what the process may only read. */
static bool writable(const void *at)
{
	unsigned long from, to;
	bool found = false;
	char line[512], rights[5];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 &&
			(uintptr_t)at >= from && (uintptr_t)at < to;
	if (maps)
		(void)fclose(maps);
	return found && rights[1] == 'w';
}

API int cuMemHostRegister_v2(void *at, size_t len, unsigned int flags)
{
	bool read_only = flags & 8;

	if (current() == &primary || !(flags & 1))
		wrong("staging is not every context's");
	if (read_only && mode("no-read-only"))
		return NOT_SUPPORTED;
	if (!read_only && !writable(at))
		return INVALID_VALUE;
	say("pin %d %s %zu\n", getpid(), read_only ? "read-only" : "all", len);
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < PINNED_MAX; i++) {
		if (pinned[i].len)
			continue;
		pinned[i].at = (uintptr_t)at;
		pinned[i].len = len;
		pinned[i].read_only = read_only;
		break;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

API int cuMemHostUnregister(void *at)
{
	int rc = INVALID_VALUE;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < PINNED_MAX && rc; i++) {
		if (!pinned[i].len || pinned[i].at != (uintptr_t)at)
			continue;
		memset(&pinned[i], 0, sizeof(pinned[i]));
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		wrong("memory is let go that was not page-locked");
	else
		say("unpin %d\n", getpid());
	return rc;
}

/* Memory at @va, or anywhere. */
static int make(uint64_t *va, size_t len, bool mapped)
{
	void *at = *va ? (void *)(uintptr_t)*va
		       : mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc = OUT_OF_MEMORY;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < MEMORY_MAX && at != MAP_FAILED; i++) {
		if (memory[i].len)
			continue;
		memory[i].bytes = malloc(len);
		if (!memory[i].bytes)
			break;
		memory[i].va = (uintptr_t)at;
		memory[i].len = len;
		memory[i].mapped = mapped;
		*va = (uintptr_t)at;
		rc = 0;
		break;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int unmake(uint64_t va)
{
	struct memory *m;

	pthread_mutex_lock(&lock);
	m = find(va);
	if (m) {
		free(m->bytes);
		memset(m, 0, sizeof(*m));
	}
	pthread_mutex_unlock(&lock);
	return m ? 0 : INVALID_VALUE;
}

API int cuMemAlloc_v2(uint64_t *to, size_t len)
{
	*to = 0;
	return make(to, (len + GRANULARITY - 1) / GRANULARITY * GRANULARITY, false);
}

API int cuMemFree_v2(uint64_t va)
{
	return unmake(va);
}

API int cuMemGetAllocationGranularity(size_t *to, const void *properties, int option)
{
	(void)properties;
	(void)option;
	*to = GRANULARITY;
	return 0;
}

/* A handle is a length: what it stands for is made when it is mapped. */
API int cuMemCreate(uint64_t *handle, size_t len, const void *properties, unsigned long long flags)
{
	(void)properties;
	(void)flags;
	*handle = len;
	return 0;
}

API int cuMemAddressReserve(uint64_t *to, size_t len, size_t alignment, uint64_t hint,
			    unsigned long long flags)
{
	void *at = mmap(NULL, len + GRANULARITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)alignment;
	(void)hint;
	(void)flags;
	*to = ((uintptr_t)at + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
	return at == MAP_FAILED ? OUT_OF_MEMORY : 0;
}

API int cuMemMap(uint64_t va, size_t len, size_t offset, uint64_t handle, unsigned long long flags)
{
	(void)offset;
	(void)flags;
	return len == handle ? make(&va, len, true) : INVALID_VALUE;
}

API int cuMemSetAccess(uint64_t va, size_t len, const void *access, size_t n)
{
	(void)va;
	(void)len;
	(void)access;
	(void)n;
	return 0;
}

API int cuMemUnmap(uint64_t va, size_t len)
{
	int rc = 0;

	for (uint64_t end = va + len; va < end && !rc; va += GRANULARITY) {
		struct memory *m = find(va);

		rc = m && m->va == va ? unmake(va) : 0;
	}
	return rc;
}

API int cuMemRetainAllocationHandle(uint64_t *handle, void *at)
{
	struct memory *m;

	pthread_mutex_lock(&lock);
	m = find((uintptr_t)at);
	*handle = m ? m->len : 0;
	pthread_mutex_unlock(&lock);
	return m && m->mapped ? 0 : INVALID_VALUE;
}

API int cuMemRelease(uint64_t handle)
{
	(void)handle;
	return 0;
}

API int cuMemGetAddressRange_v2(uint64_t *base, size_t *len, uint64_t at)
{
	struct memory *m;

	pthread_mutex_lock(&lock);
	m = find(at);
	if (m) {
		*base = m->va;
		*len = m->len;
	}
	pthread_mutex_unlock(&lock);
	return m ? 0 : INVALID_VALUE;
}

API int cuPointerGetAttribute(void *to, int attribute, uint64_t at)
{
	struct memory *m;

	pthread_mutex_lock(&lock);
	m = find(at);
	pthread_mutex_unlock(&lock);
	if (!m)
		return INVALID_VALUE;
	*(int *)to = attribute == 2 ? 2 : 0;
	return 0;
}

/* Of the range's size, for writing only: nothing that is opened so can be mapped. */
API int cuMemGetHandleForAddressRange(int *to, uint64_t va, size_t len, int kind,
				      unsigned long long flags)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);
	char path[64];

	if (kind != 1 || flags || va % 4096 || len % 4096 || !find(va) || fd < 0 ||
	    ftruncate(fd, (off_t)len))
		return INVALID_VALUE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*to = open(path, O_WRONLY | O_CLOEXEC);
	close(fd);
	return *to < 0 ? INVALID_VALUE : 0;
}
