/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs that nobody can touch: its addresses are mapped without rights, the bytes lie in a
 * memfd. It is shared between processes as CUDA shares it: by descriptors of cuMemCreate()'s
 * handles, by IPC handles of what cuMemAlloc() gave. The last who has it mapped keeps it.
 */
#include "cuda_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMORY_MAX = 2048 };

static struct memory memory[MEMORY_MAX];
static uint64_t ids;

struct memory *fake_find(uint64_t at)
{
	for (unsigned int i = 0; i < MEMORY_MAX; i++)
		if (memory[i].len && at - memory[i].va < memory[i].len)
			return &memory[i];
	return NULL;
}

/* Takes @fd. */
static struct block *block_of(int fd, size_t len, int device)
{
	struct block *b = fd < 0 ? NULL : calloc(1, sizeof(*b));

	if (b)
		b->bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!b || b->bytes == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		free(b);
		return NULL;
	}
	b->fd = fd;
	b->len = len;
	b->device = device;
	b->refs = 1;
	return b;
}

static struct block *block_new(size_t len, int device)
{
	int fd = memfd_create("fake-gpu", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)len)) {
		close(fd);
		return NULL;
	}
	return block_of(fd, len, device);
}

static void block_put_locked(struct block *b)
{
	if (--b->refs)
		return;
	(void)munmap(b->bytes, b->len);
	close(b->fd);
	free(b);
}

static void block_put(struct block *b)
{
	pthread_mutex_lock(&fake_lock);
	block_put_locked(b);
	pthread_mutex_unlock(&fake_lock);
}

/* @b at @va, or anywhere; another reference. */
static int make(uint64_t *va, struct block *b, unsigned int access)
{
	void *at = *va ? (void *)(uintptr_t)*va
		       : mmap(NULL, b->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc = OUT_OF_MEMORY;

	pthread_mutex_lock(&fake_lock);
	for (unsigned int i = 0; i < MEMORY_MAX && at != MAP_FAILED; i++) {
		if (memory[i].len)
			continue;
		b->refs++;
		memory[i] = (struct memory){.va = (uintptr_t)at,
					    .len = b->len,
					    .block = b,
					    .id = ++ids,
					    .reads = access,
					    .writes = access};
		*va = (uintptr_t)at;
		rc = 0;
		break;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

static int unmake(uint64_t va)
{
	struct memory *m;

	pthread_mutex_lock(&fake_lock);
	m = fake_find(va);
	if (m && m->block->imported)
		fake_say("let-go %d %s %zu\n", getpid(), m->block->vmm ? "vmm" : "ipc", m->len);
	if (m) {
		block_put_locked(m->block);
		memset(m, 0, sizeof(*m));
	}
	pthread_mutex_unlock(&fake_lock);
	return m ? 0 : INVALID_VALUE;
}

/* ── allocated ── */

API int cuMemAlloc_v2(uint64_t *to, size_t len)
{
	struct block *b =
		block_new((len + GRANULARITY - 1) / GRANULARITY * GRANULARITY, fake_gpu());
	int rc;

	if (!b)
		return OUT_OF_MEMORY;
	*to = 0;
	rc = make(to, b, 1u << b->device);
	block_put(b);
	return rc;
}

API int cuMemFree_v2(uint64_t va)
{
	return unmake(va);
}

/* What an IPC handle holds here. */
struct ipc {
	pid_t pid;
	int fd, device;
	size_t len;
};
struct ipc_handle {
	char bytes[64];
};

API int cuIpcGetMemHandle(struct ipc_handle *to, uint64_t at)
{
	struct ipc ipc = {.pid = getpid()};
	bool good;
	struct memory *m;

	pthread_mutex_lock(&fake_lock);
	m = fake_find(at);
	good = m && !m->block->vmm && !fake_mode("no-export");
	if (good) {
		ipc.fd = m->block->fd;
		ipc.device = m->block->device;
		ipc.len = m->len;
	}
	pthread_mutex_unlock(&fake_lock);
	if (!good)
		return INVALID_VALUE;
	memset(to, 0, sizeof(*to));
	memcpy(to, &ipc, sizeof(ipc));
	fake_say("export %d ipc %zu\n", getpid(), ipc.len);
	return 0;
}

API int cuIpcOpenMemHandle_v2(uint64_t *to, struct ipc_handle handle, unsigned int flags)
{
	struct block *b;
	struct ipc ipc;
	char path[64];
	int rc;

	memcpy(&ipc, &handle, sizeof(ipc));
	if (fake_in_primary())
		fake_wrong("memory of others is mapped in the application's context");
	if (flags != 1 || fake_mode("no-import") || ipc.pid == getpid())
		return INVALID_CONTEXT;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", ipc.pid, ipc.fd);
	b = block_of(open(path, O_RDWR | O_CLOEXEC), ipc.len, ipc.device);
	if (!b)
		return INVALID_VALUE;
	b->imported = true;
	*to = 0;
	rc = make(to, b, 1u << fake_gpu());
	block_put(b);
	fake_say("import %d ipc %zu\n", getpid(), ipc.len);
	return rc;
}

API int cuIpcCloseMemHandle(uint64_t at)
{
	return unmake(at);
}

/* ── mapped ── */

API int cuMemGetAllocationGranularity(size_t *to, const void *properties, int option)
{
	(void)properties;
	(void)option;
	*to = GRANULARITY;
	return 0;
}

/* A handle is its block. Of the properties the place counts. */
API int cuMemCreate(uint64_t *handle, size_t len, const int *properties, unsigned long long flags)
{
	struct block *b = block_new(len, properties[3]);

	(void)flags;
	if (!b)
		return OUT_OF_MEMORY;
	b->vmm = true;
	*handle = (uintptr_t)b;
	return 0;
}

API int cuMemRelease(uint64_t handle)
{
	block_put((struct block *)(uintptr_t)handle);
	return 0;
}

API int cuMemRetainAllocationHandle(uint64_t *handle, void *at)
{
	struct memory *m;
	int rc = INVALID_VALUE;

	pthread_mutex_lock(&fake_lock);
	m = fake_find((uintptr_t)at);
	if (m && m->block->vmm) {
		m->block->refs++;
		*handle = (uintptr_t)m->block;
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
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

API int cuMemAddressFree(uint64_t at, size_t len)
{
	pthread_mutex_lock(&fake_lock);
	if (fake_find(at) || fake_find(at + len - 1))
		fake_wrong("addresses are given back that memory is mapped at");
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

API int cuMemMap(uint64_t va, size_t len, size_t offset, uint64_t handle, unsigned long long flags)
{
	struct block *b = (struct block *)(uintptr_t)handle;

	(void)flags;
	return len == b->len && !offset ? make(&va, b, 0) : INVALID_VALUE;
}

/* Of each GPU: to read 1, both 3. */
API int cuMemSetAccess(uint64_t va, size_t len, const int *access, size_t n)
{
	uint64_t end = va + len;
	int rc = 0;

	if (n != 1 || access[0] != 1 || access[1] < 0 || access[1] >= fake_gpus() ||
	    (access[2] != 1 && access[2] != 3))
		return INVALID_VALUE;
	if (access[2] == 1 && fake_mode("both-ways"))
		return NOT_SUPPORTED;
	pthread_mutex_lock(&fake_lock);
	while (va < end && !rc) {
		struct memory *m = fake_find(va);

		if (!m || (m->block->imported && fake_mode("no-access"))) {
			rc = INVALID_VALUE;
			break;
		}
		m->reads |= 1u << access[1];
		m->writes |= access[2] == 3 ? 1u << access[1] : 0;
		va = m->va + m->len;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

API int cuMemUnmap(uint64_t va, size_t len)
{
	int rc = 0;

	for (uint64_t end = va + len; va < end && !rc; va += GRANULARITY) {
		struct memory *m = fake_find(va);

		rc = m && m->va == va ? unmake(va) : 0;
	}
	return rc;
}

API int cuMemExportToShareableHandle(int *to, uint64_t handle, int type, unsigned long long flags)
{
	const struct block *b = (const struct block *)(uintptr_t)handle;

	if (type != 1 || flags)
		return INVALID_VALUE;
	if (fake_mode("no-export"))
		return NOT_SUPPORTED;
	*to = fcntl(b->fd, F_DUPFD, 0);
	fake_say("export %d vmm %zu\n", getpid(), b->len);
	return *to < 0 ? OUT_OF_MEMORY : 0;
}

API int cuMemImportFromShareableHandle(uint64_t *handle, void *from, int type)
{
	struct block *b = NULL;
	struct stat st;

	if (fake_in_primary())
		fake_wrong("memory of others is mapped in the application's context");
	if (type != 1 || fake_mode("no-import") || fstat((int)(intptr_t)from, &st))
		return NOT_SUPPORTED;
	b = block_of(fcntl((int)(intptr_t)from, F_DUPFD_CLOEXEC, 0), (size_t)st.st_size, 0);
	if (!b)
		return INVALID_VALUE;
	b->vmm = b->imported = true;
	*handle = (uintptr_t)b;
	fake_say("import %d vmm %zu\n", getpid(), b->len);
	return 0;
}

/* ── what is asked of an address ── */

API int cuMemGetAddressRange_v2(uint64_t *base, size_t *len, uint64_t at)
{
	struct memory *m;

	pthread_mutex_lock(&fake_lock);
	m = fake_find(at);
	if (m) {
		*base = m->va;
		*len = m->len;
	}
	pthread_mutex_unlock(&fake_lock);
	return m ? 0 : INVALID_VALUE;
}

API int cuPointerGetAttribute(void *to, int attribute, uint64_t at)
{
	struct memory *m;

	pthread_mutex_lock(&fake_lock);
	m = fake_find(at);
	if (m && attribute == 7)
		*(uint64_t *)to = m->id;
	else if (m)
		*(int *)to = attribute == 2 ? 2 : attribute == 9 ? m->block->device : 0;
	pthread_mutex_unlock(&fake_lock);
	return m ? 0 : INVALID_VALUE;
}

/* Of the range's size, for writing only: nothing that is opened so can be mapped. */
API int cuMemGetHandleForAddressRange(int *to, uint64_t va, size_t len, int kind,
				      unsigned long long flags)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);
	char path[64];

	if (kind != 1 || flags || va % 4096 || len % 4096 || !fake_find(va) || fd < 0 ||
	    ftruncate(fd, (off_t)len))
		return INVALID_VALUE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*to = open(path, O_WRONLY | O_CLOEXEC);
	close(fd);
	return *to < 0 ? INVALID_VALUE : 0;
}
