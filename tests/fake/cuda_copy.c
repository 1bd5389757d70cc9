/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that copies: device memory that nobody can touch (its addresses are mapped without
 * rights; the bytes lie elsewhere), descriptors of it that cannot be mapped, streams whose copies
 * are carried out late, and only when somebody looks at an event behind them.
 *
 * It watches its user, who is to copy in a context of his own, never wait, and leave freed memory
 * alone: what it sees is appended to the file PP_FAKE_CUDA_LOG, a line each:
 *
 *	copy <pid> to-device|to-host|direct <bytes>   wrong <pid> <what>
 *	pin <pid> all|read-only <bytes>               unpin <pid>
 *	export|import|let-go <pid> vmm|ipc <bytes>    batch <pid> <copies>
 *
 * PP_FAKE_CUDA_DELAY_US: how long a copy takes at most (default 200). PP_FAKE_CUDA_GPUS: how many
 * (default 1). PP_FAKE_CUDA_LINES: copies fill lines of 128 bytes one by one, in descending order,
 * some of them at each look at an event. PP_FAKE_CUDA, words with commas between: fail-context;
 * fail-copy: every tenth copy of a process fails; fail-direct: copies between two places of GPUs
 * do; no-read-only: memory cannot be page-locked for reading only; hang: no copy of more than 1 MiB
 * is ever done; hang-direct: nor one between two places of GPUs; no-export, no-import, no-access:
 * sharing memory fails there; no-batch: it takes no several copies at once; both-ways: access
 *cannot be had for reading alone.
 */
#include "cuda_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	PINNED_MAX = 256,
	STACK_MAX = 16,
	OWNED_MAX = 256,
	GPUS_MAX = 2,
	LINE = 128,
	LINES_AT_ONCE = 64,
};

struct context {
	bool primary;
	int device;
	void *owned[OWNED_MAX]; /* streams and events, which go with it */
	unsigned int num_owned;
};

struct op {
	struct op *next;
	struct context *context;
	bool to_device;
	uint64_t device, from; /* from: of a copy between two places of GPUs */
	void *host;
	size_t len, left;
	int64_t due; /* ns */
	bool fails, kernel;
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

static struct {
	uintptr_t at;
	size_t len;
	bool read_only;
} pinned[PINNED_MAX];

static struct context primaries[GPUS_MAX] = {{.primary = true}, {.primary = true, .device = 1}};
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct context *stack[STACK_MAX];
static __thread unsigned int depth;
static unsigned int copies;

bool fake_mode(const char *word)
{
	const char *set = getenv("PP_FAKE_CUDA");
	size_t len = strlen(word);

	for (; set && *set; set += strcspn(set, ","), set += *set == ',')
		if (!strncmp(set, word, len) && (!set[len] || set[len] == ','))
			return true;
	return false;
}

int fake_gpus(void)
{
	const char *set = getenv("PP_FAKE_CUDA_GPUS");

	return set && !strcmp(set, "2") ? 2 : 1;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void fake_say(const char *format, ...)
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

void fake_wrong(const char *what)
{
	fake_say("wrong %d %s\n", getpid(), what);
}

static struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

bool fake_in_primary(void)
{
	return current() && current()->primary;
}

int fake_gpu(void)
{
	return current() ? current()->device : 0;
}

/* Bytes at @at that a copy, in a context of @gpu, may touch, and how many there are in a row; NULL:
 * none, and that was wrong. */
static uint8_t *reach(uint64_t at, const struct op *op, int gpu, bool writes, size_t *ret_len)
{
	struct memory *m = fake_find(at);
	unsigned int may;

	if (!m) {
		fake_wrong("a copy touches memory that is not, or no more, the device's");
		return NULL;
	}
	may = writes ? m->writes : m->reads;
	/* The copy engines find allocated memory of any GPU of the process. */
	if (!(may >> gpu & 1) && (m->block->vmm || op->kernel)) {
		fake_wrong(writes ? "a copy writes where its GPU may not"
				  : "a copy reads where its GPU may not");
		return NULL;
	}
	*ret_len = m->len - (at - m->va);
	return m->block->bytes + (at - m->va);
}

/* Bytes [at, at+len) of a copy: of one mapping, or of several that follow each other. */
static bool move(const struct op *op, int gpu, size_t at, size_t len)
{
	while (len) {
		size_t part = len, more = len;
		uint8_t *bytes = reach(op->device + at, op, gpu, op->to_device, &more);
		uint8_t *other = (uint8_t *)op->host + at;

		part = more < part ? more : part;
		if (bytes && op->from) {
			other = reach(op->from + at, op, gpu, false, &more);
			part = more < part ? more : part;
		}
		if (!bytes || !other)
			return false;
		memcpy(op->to_device ? bytes : other, op->to_device ? other : bytes, part);
		at += part;
		len -= part;
	}
	return true;
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
	*to = fake_gpus();
	return 0;
}

API int cuDeviceGet(int *to, int ordinal)
{
	*to = ordinal;
	return ordinal >= 0 && ordinal < fake_gpus() ? 0 : 101;
}

API int cuDeviceGetPCIBusId(char *to, int size, int device)
{
	(void)strncpy(to, device ? "0000:9A:00.0" : "0000:3B:00.0", (size_t)size);
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
	*to = &primaries[device];
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
	if (fake_mode("fail-context"))
		return OUT_OF_MEMORY;
	*to = calloc(1, sizeof(**to));
	if (*to)
		(*to)->device = device;
	return *to ? cuCtxPushCurrent_v2(*to) : OUT_OF_MEMORY;
}

API int cuCtxDestroy_v2(struct context *context)
{
	if (context->primary) {
		fake_wrong("the application's context is destroyed");
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
	if (!fake_in_primary())
		fake_wrong("cuCtxSynchronize");
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
		fake_wrong("a stream that waits for others");
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
		fake_wrong("cuStreamSynchronize");
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
	pthread_mutex_lock(&fake_lock);
	event->stream = stream;
	event->behind = stream->begun;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* Some of the lines of a copy, from its end. true: all of it is done. */
static bool carry_on(const struct stream *s, struct op *op)
{
	for (unsigned int n = 0; op->left && n < LINES_AT_ONCE; n++) {
		size_t behind = (op->device + op->left) % LINE;
		size_t part = behind ? behind : LINE;

		part = part < op->left ? part : op->left;
		op->left -= part;
		if (!move(op, s->context->device, op->left, part))
			return true;
	}
	return !op->left;
}

/* The first copy, or some of it. true: it is over. */
static bool carry_out(struct stream *s)
{
	struct op *op = s->first;

	if (op->fails)
		s->failed = true;
	else if (!getenv("PP_FAKE_CUDA_LINES") || !op->to_device)
		(void)move(op, s->context->device, 0, op->len);
	else if (!carry_on(s, op))
		return false;
	s->first = op->next;
	if (!s->first)
		s->last = NULL;
	s->done++;
	free(op);
	return true;
}

API int cuEventQuery(struct event *event)
{
	struct stream *s = event->stream;
	bool done, failed;

	pthread_mutex_lock(&fake_lock);
	while (s->first && s->done < event->behind && s->first->due <= now())
		if (!carry_out(s))
			break;
	done = s->done >= event->behind;
	failed = s->failed;
	pthread_mutex_unlock(&fake_lock);
	return failed ? LAUNCH_FAILED : done ? 0 : NOT_READY;
}

/* An application may wait; who copies for the device may not. */
API int cuEventSynchronize(struct event *event)
{
	const struct timespec nap = {.tv_nsec = 20000};
	int64_t until = now() + INT64_C(10000000000);
	int rc = NOT_READY;

	fake_wrong("cuEventSynchronize");
	while (event->stream && now() < until && (rc = cuEventQuery(event)) == NOT_READY)
		(void)nanosleep(&nap, NULL);
	return event->stream ? rc : 0;
}

static void append(struct stream *s, struct op *op)
{
	if (s->last)
		s->last->next = op;
	else
		s->first = op;
	s->last = op;
	s->begun++;
}

/* Memory that cuMemAlloc() gave has an owner: the context in which it was called. */
static bool is_owned(uint64_t at)
{
	const struct memory *m = fake_find(at);

	return m && !m->block->vmm && !m->block->imported;
}

static int begin(struct op op, struct stream *s)
{
	const char *delay = getenv("PP_FAKE_CUDA_DELAY_US");
	int64_t most = (delay ? atoi(delay) : 200) * INT64_C(1000);
	struct op *copy = malloc(sizeof(*copy));

	if (!copy)
		return OUT_OF_MEMORY;
	fake_say("copy %d %s %zu\n", getpid(),
		 op.from	? "direct"
		 : op.to_device ? "to-device"
				: "to-host",
		 op.len);
	if (!s || s->context->primary || current() != s->context)
		fake_wrong("a copy in the application's context");
	pthread_mutex_lock(&fake_lock);
	if (!op.from && !is_pinned(op.host, op.len, !op.to_device))
		fake_wrong("a copy of memory that is not page-locked");
	if (!op.kernel && (is_owned(op.device) || (op.from && is_owned(op.from))))
		fake_wrong("the copy engines would wait for the application's context");
	if (!fake_find(op.device) || (op.from && !fake_find(op.from)))
		fake_wrong("a copy of memory that is not, or no more, the device's");
	op.next = NULL;
	op.left = op.len;
	op.fails = (fake_mode("fail-copy") && ++copies % 10 == 0) ||
		   (fake_mode("fail-direct") && op.from);
	op.due = now() + (most ? rand() % most : 0);
	if ((fake_mode("hang") && op.len > 1 << 20) || (fake_mode("hang-direct") && op.from))
		op.due = INT64_MAX;
	*copy = op;
	append(s, copy);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

API int cuMemcpyHtoDAsync_v2(uint64_t to, void *from, size_t len, struct stream *s)
{
	return begin((struct op){.to_device = true, .device = to, .host = from, .len = len}, s);
}

/* CUDA_MEMCPY2D */
struct rows {
	struct {
		size_t x, y;
		int type;
		void *host;
		uint64_t device;
		void *array;
		size_t pitch;
	} from, to;
	size_t width, height;
};

API int cuMemcpy2DAsync_v2(const struct rows *r, struct stream *s)
{
	if (r->from.x || r->from.y || r->to.x || r->to.y || r->from.type != 1 || r->to.type != 2 ||
	    !r->width || !r->height || r->from.pitch != r->width || r->to.pitch != r->width)
		fake_wrong("rows that do not lie side by side");
	return begin((struct op){.to_device = true,
				 .device = r->to.device,
				 .host = r->from.host,
				 .len = r->width * r->height},
		     s);
}

API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, struct stream *s)
{
	return begin((struct op){.device = from, .host = to, .len = len}, s);
}

API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t len, struct stream *s)
{
	return begin((struct op){.to_device = true, .device = to, .from = from, .len = len}, s);
}

/* CUmemcpyAttributes. */
struct together {
	int order;
	struct {
		int type, id;
	} from, to;
	unsigned int flags;
};

/* Either place may be a GPU's. */
static struct op between(uint64_t to, uint64_t from, size_t len)
{
	bool to_device, from_device;

	pthread_mutex_lock(&fake_lock);
	to_device = fake_find(to) != NULL;
	from_device = fake_find(from) != NULL;
	pthread_mutex_unlock(&fake_lock);
	return (struct op){.to_device = to_device,
			   .device = to_device ? to : from,
			   .from = to_device && from_device ? from : 0,
			   .host = (void *)(uintptr_t)(to_device ? from : to),
			   .len = len};
}

/* Those of a call have no order: here the last is carried out first. */
API int cuMemcpyBatchAsync(const uint64_t *to, const uint64_t *from, const size_t *lens, size_t num,
			   const struct together *how, const size_t *first_of_how, size_t num_how,
			   size_t *ret_fault, struct stream *s)
{
	int rc = 0;

	*ret_fault = SIZE_MAX;
	if (!num || num_how != 1 || *first_of_how || how->order < 1 || how->order > 3 ||
	    fake_mode("no-batch"))
		return INVALID_VALUE;
	fake_say("batch %d %zu\n", getpid(), num);
	for (size_t i = num; i-- && !rc;)
		rc = begin(between(to[i], from[i], lens[i]), s);
	return rc;
}

API int cuModuleLoadData(void **to, const void *image)
{
	if (fake_in_primary())
		fake_wrong("a kernel in the application's context");
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
	struct op op = between(*(uint64_t *)arguments[0], *(uint64_t *)arguments[1],
			       *(uint64_t *)arguments[2]);

	(void)function;
	(void)shared;
	if (!x || y != 1 || z != 1 || !block_x || block_y != 1 || block_z != 1 || more)
		return INVALID_VALUE;
	op.kernel = true;
	return begin(op, s);
}

static int at_once(uint64_t device, void *host, size_t len, bool to_device)
{
	if (!fake_in_primary()) {
		fake_wrong("a copy that is waited for");
		return INVALID_CONTEXT;
	}
	pthread_mutex_lock(&fake_lock);
	(void)move(&(struct op){.to_device = to_device, .device = device, .host = host}, fake_gpu(),
		   0, len);
	pthread_mutex_unlock(&fake_lock);
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

	if (fake_in_primary() || !(flags & 1))
		fake_wrong("staging is not every context's");
	if (read_only && fake_mode("no-read-only"))
		return NOT_SUPPORTED;
	if (!read_only && !writable(at))
		return INVALID_VALUE;
	fake_say("pin %d %s %zu\n", getpid(), read_only ? "read-only" : "all", len);
	pthread_mutex_lock(&fake_lock);
	for (unsigned int i = 0; i < PINNED_MAX; i++) {
		if (pinned[i].len)
			continue;
		pinned[i].at = (uintptr_t)at;
		pinned[i].len = len;
		pinned[i].read_only = read_only;
		break;
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

API int cuMemHostUnregister(void *at)
{
	int rc = INVALID_VALUE;

	pthread_mutex_lock(&fake_lock);
	for (unsigned int i = 0; i < PINNED_MAX && rc; i++) {
		if (!pinned[i].len || pinned[i].at != (uintptr_t)at)
			continue;
		memset(&pinned[i], 0, sizeof(pinned[i]));
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	if (rc)
		fake_wrong("memory is let go that was not page-locked");
	else
		fake_say("unpin %d\n", getpid());
	return rc;
}
