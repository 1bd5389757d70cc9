/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory. A device pins pages and so finds bad addresses at registration; here the list of
 * mappings says it, at a cost that grows with their number and not with the range.
 */
#include "soft/abi/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "soft/copy/cuda_memory.h"
#include "base/banned.h"

enum { PAGE = 4096, MINCORE_PAGES = 16384 };

/*
 * Memory of a GPU is not to be had, as the kernel says too where no driver of the GPU's lends it
 * (nvidia-peermem). In the list it is a hole, without rights, or the GPU's device; CUDA is asked
 * about the last only: looking for its library takes the loader's locks, in which the child of a
 * fork can be caught.
 */
static const char GPU_DEVICE[] = " /dev/nvidia";

/* Hexadecimal digits from @p on; @ret_end at what follows. */
static uint64_t take_hex(const char *p, const char **ret_end)
{
	uint64_t n = 0;

	for (;; p++) {
		unsigned int c = (unsigned char)*p;
		unsigned int digit = c - '0' < 10 ? c - '0' : c - 'a' < 6 ? c - 'a' + 10 : 16;

		if (digit == 16)
			break;
		n = n << 4 | digit;
	}
	*ret_end = p;
	return n;
}

/* One line "7f00-7f01 rw-p ..." moves *at on while the mapping goes on from it. */
static int take_mapping(const char *line, uint64_t *at, bool writable)
{
	const char *p;
	uint64_t from = take_hex(line, &p), to;

	if (*p++ != '-')
		return -EFAULT;
	to = take_hex(p, &p);
	if (to <= *at)
		return 0;
	if (from > *at || p[0] != ' ' || p[1] != 'r' || (writable && p[2] != 'w'))
		return -EFAULT;
	if (strstr(p, GPU_DEVICE) && soft_cuda_is_device(*at))
		return -EFAULT;
	*at = to;
	return 0;
}

/* Reads the list line by line until @end is reached: mappings come in ascending order. */
static int check_list(int fd, uint64_t at, uint64_t end, bool writable)
{
	char text[16384];
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *newline;

		have += (size_t)n;
		text[have] = '\0';
		while ((newline = memchr(line, '\n', have - (size_t)(line - text)))) {
			*newline = '\0';
			if (take_mapping(line, &at, writable))
				return -EFAULT;
			if (at >= end)
				return 0;
			line = newline + 1;
		}
		have -= (size_t)(line - text);
		/* A line holds a path, which is shorter than this. */
		if (have >= sizeof(text) - 1)
			return -EFAULT;
		memmove(text, line, have);
	}
	return -EFAULT;
}

/* Without /proc: holes are seen, rights are not. */
static int check_core(uint64_t at, uint64_t end)
{
	unsigned char there[MINCORE_PAGES];

	for (at &= ~(uint64_t)(PAGE - 1); at < end;) {
		uint64_t len = end - at < (uint64_t)MINCORE_PAGES * PAGE
				       ? end - at
				       : (uint64_t)MINCORE_PAGES * PAGE;

		if (mincore((void *)(uintptr_t)at, len, there))
			return -EFAULT;
		at += len;
	}
	return 0;
}

int soft_mr_range_check(uint64_t addr, uint64_t len, bool writable)
{
	uint64_t end;
	PP_AUTO_CLOSE int fd = -1;

	if (__builtin_add_overflow(addr, len, &end))
		return -EINVAL;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? check_core(addr, end) : check_list(fd, addr, end, writable);
}

int soft_mr_make_host(const struct soft_mr_request *q, struct soft_mr_object *mr)
{
	int r;

	if (q->fd >= 0)
		return -ENODEV;
	r = soft_mr_range_check(q->addr, q->length, q->writable);
	if (r)
		return r;
	mr->region.base = (uint8_t *)(uintptr_t)q->addr;
	mr->region.ops = &soft_region_host;
	return 0;
}
