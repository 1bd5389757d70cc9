/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host: anonymous pages of the processor, huge ones and on one NUMA node when asked. Placement is
 * by the system calls, so that no libnuma is needed; pages are there before anybody measures.
 */
#include "mem/kind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

/* <linux/mempolicy.h>, <linux/mman.h>: libc has no names for them. */
enum { PREFERRED = 1, ASK_NODE = 1, OF_ADDRESS = 2, POPULATE_WRITE = 23, MOST_NODES = 1024 };

enum { SAMPLES = 3 };

struct huge {
	uint64_t bytes; /* of one page */
	uint64_t free;	/* pages */
};

/* "Hugepagesize:       2048 kB": the number behind @key, @unit times. */
static void take(const char *line, const char *key, uint64_t unit, uint64_t *ret)
{
	char number[24] = "";
	size_t n = strlen(key), len;
	uint64_t value;

	if (strncmp(line, key, n) != 0)
		return;
	line += n + strspn(line + n, " \t");
	len = strspn(line, "0123456789");
	if (!len || len >= sizeof(number))
		return;
	memcpy(number, line, len);
	if (!pp_parse_u64(number, 0, UINT32_MAX, &value))
		*ret = value * unit;
}

static struct huge huge_pages(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	struct huge h = {.bytes = 2 << 20};
	char line[128];

	if (!f)
		return h;
	while (fgets(line, sizeof(line), f)) {
		take(line, "Hugepagesize:", 1024, &h.bytes);
		take(line, "HugePages_Free:", 1, &h.free);
	}
	(void)fclose(f);
	if (h.bytes < 65536 || h.bytes & (h.bytes - 1))
		h.bytes = 2 << 20;
	return h;
}

static int no_huge(const struct pp_memory *m, const struct huge *h, struct pp_error *err)
{
	uint64_t need = m->allocated / h->bytes;

	return pp_error_set(
		err, -ENOMEM,
		"%llu huge pages of %llu KiB are needed, %llu are free: as root, sysctl "
		"vm.nr_hugepages=N (or hugepages=N for the kernel at boot) with N at "
		"least %llu more than now",
		(unsigned long long)need, (unsigned long long)(h->bytes >> 10),
		(unsigned long long)h->free,
		(unsigned long long)(need > h->free ? need - h->free : need));
}

/* Before the first touch. A kernel, or a container's filter, that refuses is told in the note. */
static int place(struct pp_memory *m, struct pp_error *err)
{
	unsigned long mask[MOST_NODES / (8 * sizeof(unsigned long))] = {0};
	const unsigned int bits = 8 * sizeof(mask[0]), node = (unsigned int)m->options.numa;
	char path[64];

	if (m->options.numa < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", node);
	if (node >= MOST_NODES || (!access("/sys/devices/system/node", F_OK) && access(path, F_OK)))
		return pp_error_set(err, -EINVAL,
				    "no NUMA node %u here (/sys/devices/system/node lists them)",
				    node);
	mask[node / bits] = 1UL << node % bits;
	/* Preferred: a node without room makes memory elsewhere, which is seen below. */
	if (syscall(SYS_mbind, m->allocation, m->allocated, PREFERRED, mask, MOST_NODES, 0))
		(void)snprintf(m->note, sizeof(m->note), "not placed on NUMA node %u: mbind: %s",
			       node, pp_errno_name(errno));
	return 0;
}

/* Looks where a few pages really came to lie. */
static void look(struct pp_memory *m)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at;
	int node;

	if (m->options.numa < 0 || m->note[0])
		return;
	for (unsigned int i = 0; i < SAMPLES; i++) {
		at = m->allocation + (m->allocated - page) / (SAMPLES - 1) * i / page * page;
		node = -1;
		if (syscall(SYS_get_mempolicy, &node, NULL, 0, at, ASK_NODE | OF_ADDRESS))
			return;
		if (node != m->options.numa) {
			(void)snprintf(m->note, sizeof(m->note),
				       "NUMA node %d was asked, node %d has pages of it",
				       m->options.numa, node);
			return;
		}
	}
	(void)snprintf(m->note, sizeof(m->note), "NUMA node %d", m->options.numa);
}

/* Kernels before 5.14 do not populate on demand: there each page is touched. */
static int populate(struct pp_memory *m)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = (uint8_t *)(uintptr_t)m->allocation;

	if (!madvise(at, m->allocated, POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	for (uint64_t i = 0; i < m->allocated; i += page)
		at[i] = 0;
	return 0;
}

static int make(struct pp_memory *m, struct pp_error *err)
{
	struct huge h = m->options.huge ? huge_pages() : (struct huge){0};
	uint64_t unit = m->options.huge ? h.bytes : (uint64_t)sysconf(_SC_PAGESIZE);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (m->options.huge ? MAP_HUGETLB : 0), r;
	void *at;

	r = pp_memory_round(m->size + m->options.inside, unit, &m->allocated, err);
	if (r)
		return r;
	at = mmap(NULL, m->allocated, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (at == MAP_FAILED)
		return m->options.huge ? no_huge(m, &h, err)
				       : pp_error_set(err, -errno, "memory of %llu bytes: %s",
						      (unsigned long long)m->allocated,
						      pp_errno_name(errno));
	m->allocation = (uintptr_t)at;
	m->at = m->allocation + m->options.inside;
	r = place(m, err);
	if (r)
		return r;
	r = populate(m);
	if (r)
		return m->options.huge
			       ? no_huge(m, &h, err)
			       : pp_error_set(err, r, "memory of %llu bytes: %s",
					      (unsigned long long)m->allocated, pp_errno_name(r));
	look(m);
	return pp_memory_add_segment(m, m->allocation, m->allocated, err);
}

static void unmake(struct pp_memory *m)
{
	if (m->allocation)
		(void)munmap((void *)(uintptr_t)m->allocation, m->allocated);
}

const struct pp_memory_ops pp_memory_host_ops = {.make = make, .unmake = unmake};
