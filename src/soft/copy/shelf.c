/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/banned.h"

enum {
	MEMORY = SOFT_SHELF_BYTES + SOFT_SHELF_TAIL,
	HUGE_PAGE = 2 << 20,
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	NO_WRITERS = 0x0010, /* F_SEAL_FUTURE_WRITE, Linux 5.1 */
};

_Static_assert((SOFT_SHELF_UNITS + SOFT_SHELF_LOANS) * sizeof(uint32_t) <= SOFT_SHELF_TAIL,
	       "the tail holds them");

/* Of huge pages, where a memfd may have any: who reads it looks each page up. */
static int map(struct soft_shelf *shelf, int fd)
{
	const size_t more = MEMORY + HUGE_PAGE;
	uint8_t *at = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *from;

	if (at == MAP_FAILED)
		return -errno;
	from = at + (-(uintptr_t)at % HUGE_PAGE);
	if (mmap(from, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED) {
		int rc = -errno;

		(void)munmap(at, more);
		return rc;
	}
	if (from > at)
		(void)munmap(at, (size_t)(from - at));
	(void)munmap(from + MEMORY, (size_t)(at + more - (from + MEMORY)));
	(void)madvise(from, SOFT_SHELF_BYTES, MADV_HUGEPAGE);
	/* A child has no business with it. */
	(void)madvise(from, MEMORY, MADV_DONTFORK);
	shelf->bytes = from;
	shelf->generations = (_Atomic uint32_t *)(void *)(from + SOFT_SHELF_BYTES);
	return 0;
}

int soft_shelf_make(struct soft_shelf *shelf)
{
	int fd = memfd_create("peerpath-soft-shelf", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, MEMORY) < 0)
		rc = -errno;
	/* Before it is sealed: it is the one mapping that may be written through. */
	if (rc == 0)
		rc = map(shelf, fd);
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	shelf->fd = fd;
	if (fcntl(fd, F_ADD_SEALS, SEALS | NO_WRITERS) < 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		rc = -errno;
		soft_shelf_done(shelf);
		return rc;
	}
	shelf->free_loans = calloc(SOFT_SHELF_LOANS, sizeof(*shelf->free_loans));
	if (!shelf->free_loans) {
		soft_shelf_done(shelf);
		return -ENOMEM;
	}
	shelf->num_free = SOFT_SHELF_LOANS;
	for (unsigned int i = 0; i < SOFT_SHELF_LOANS; i++)
		shelf->free_loans[i] = (uint16_t)(SOFT_SHELF_LOANS - 1 - i);
	/* 0 is the generation of what is not of a shelf. */
	for (unsigned int i = 0; i < SOFT_SHELF_UNITS + SOFT_SHELF_LOANS; i++)
		atomic_store_explicit(&shelf->generations[i], 1, memory_order_relaxed);
	return 0;
}

void soft_shelf_done(struct soft_shelf *shelf)
{
	if (shelf->bytes) {
		(void)munmap(shelf->bytes, MEMORY);
		(void)close(shelf->fd);
	}
	free(shelf->free_loans);
	memset(shelf, 0, sizeof(*shelf));
	shelf->fd = -1;
}

uint32_t soft_shelf_loan_take(struct soft_shelf *shelf)
{
	return shelf->num_free ? shelf->free_loans[--shelf->num_free] + 1u : 0;
}

void soft_shelf_loan_give(struct soft_shelf *shelf, uint32_t loan)
{
	_Atomic uint32_t *generation = &shelf->generations[SOFT_SHELF_UNITS + loan - 1];
	uint32_t next = atomic_load_explicit(generation, memory_order_relaxed) + 1;

	/* Before the memory is anybody else's. */
	atomic_store(generation, next ? next : 1);
	shelf->free_loans[shelf->num_free++] = (uint16_t)(loan - 1);
}

uint32_t soft_shelf_loan_generation(const struct soft_shelf *shelf, uint32_t loan)
{
	return atomic_load_explicit(&shelf->generations[SOFT_SHELF_UNITS + loan - 1],
				    memory_order_relaxed);
}

bool soft_shelf_loan_of(uint32_t loan, unsigned int *ret_unit)
{
	if (!loan || loan > SOFT_SHELF_LOANS)
		return false;
	*ret_unit = SOFT_SHELF_UNITS + loan - 1;
	return true;
}

uint32_t soft_shelf_generation(const struct soft_shelf *shelf, const void *at, size_t len)
{
	uintptr_t offset = (uintptr_t)at - (uintptr_t)shelf->bytes;

	if (!shelf->bytes || offset >= SOFT_SHELF_BYTES || len > SOFT_SHELF_BYTES - offset)
		return 0;
	return atomic_load_explicit(&shelf->generations[offset / SOFT_STAGING_UNIT],
				    memory_order_relaxed);
}

int soft_shelf_look(int fd, uint64_t at, struct soft_shelf_view **ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct soft_shelf_view *view;
	struct statfs fs;
	struct stat st;
	uint8_t *bytes;

	/* Of huge pages there may be none left when one is touched. */
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstatfs(fd, &fs) < 0 ||
	    fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0 || st.st_size != MEMORY)
		return -EPROTO;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	bytes = mmap(NULL, MEMORY, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED) {
		int rc = -errno;

		free(view);
		return rc;
	}
	(void)madvise(bytes, MEMORY, MADV_DONTFORK);
	view->users = 1;
	view->bytes = bytes;
	view->generations = (const _Atomic uint32_t *)(const void *)(bytes + SOFT_SHELF_BYTES);
	view->at = at;
	for (unsigned int i = 0; i < SOFT_STAGING_SEGMENTS; i++)
		view->segments[i].view = view;
	*ret = view;
	return 0;
}

void soft_shelf_view_get(struct soft_shelf_view *view)
{
	view->users++;
}

static void answered(struct soft_copy *copy)
{
	struct soft_shelf_segment *s = (struct soft_shelf_segment *)copy;

	s->copier->pinned -= copy->what == SOFT_COPY_UNPIN || copy->rc;
	if (copy->what == SOFT_COPY_UNPIN) {
		s->state = SOFT_SHELF_UNASKED;
	} else {
		s->state = copy->rc ? SOFT_SHELF_REFUSED : SOFT_SHELF_LOCKED;
		s->view->error = copy->rc ? copy->rc : s->view->error;
	}
	soft_shelf_view_put(s->view);
}

static void ask(struct soft_shelf_view *view, unsigned int i, enum soft_copy_what what)
{
	struct soft_shelf_segment *s = &view->segments[i];

	s->state = SOFT_SHELF_ASKED;
	s->pin.what = what;
	/* Only its address is used, and the page-lock is one for reading. */
	s->pin.host = (void *)(uintptr_t)(view->bytes + (size_t)i * SOFT_STAGING_SEGMENT);
	s->pin.len = SOFT_STAGING_SEGMENT;
	s->pin.to_device = true;
	s->pin.done = answered;
	s->copier->pinned += what == SOFT_COPY_PIN;
	soft_shelf_view_get(view);
	soft_copy_ask(s->copier, &s->pin);
}

void soft_shelf_view_put(struct soft_shelf_view *view)
{
	if (!view || --view->users)
		return;
	/* Answers may come at once. */
	view->users++;
	for (unsigned int i = 0; i < SOFT_STAGING_SEGMENTS; i++)
		if (view->segments[i].state == SOFT_SHELF_LOCKED)
			ask(view, i, SOFT_COPY_UNPIN);
	soft_imports_release(view);
	if (--view->users)
		return;
	(void)munmap((void *)(uintptr_t)view->bytes, MEMORY);
	free(view);
}

/* Where it is, whatever it is now. */
static bool find(struct soft_shelf_view *view, uint64_t addr, uint32_t generation, uint32_t skip,
		 uint32_t len, struct soft_loan *ret)
{
	uint64_t offset = addr - view->at, within = offset % SOFT_STAGING_SEGMENT;

	if (!generation || offset >= SOFT_SHELF_BYTES ||
	    (uint64_t)skip + len > SOFT_STAGING_SEGMENT - within)
		return false;
	ret->view = view;
	ret->import = NULL;
	ret->at = view->bytes + offset + skip;
	ret->segment = (unsigned int)(offset / SOFT_STAGING_SEGMENT);
	ret->unit = (unsigned int)(offset / SOFT_STAGING_UNIT);
	ret->generation = generation;
	return true;
}

bool soft_shelf_lend(struct soft_shelf_view *view, uint64_t addr, uint32_t generation,
		     uint32_t skip, uint32_t len, struct soft_copier *copier, struct soft_loan *ret)
{
	struct soft_shelf_segment *s;
	struct soft_loan loan;

	if (!find(view, addr, generation, skip, len, &loan))
		return false;
	s = &view->segments[loan.segment];
	if (s->state == SOFT_SHELF_UNASKED && copier->pinned < SOFT_SHELF_PINNED) {
		s->copier = copier;
		ask(view, loan.segment, SOFT_COPY_PIN);
	}
	if (s->state != SOFT_SHELF_LOCKED || !soft_loan_good(&loan))
		return false;
	*ret = loan;
	return true;
}

bool soft_shelf_see(struct soft_shelf_view *view, uint64_t addr, uint32_t generation, uint32_t skip,
		    uint32_t len, struct soft_loan *ret)
{
	struct soft_loan loan;

	if (!find(view, addr, generation, skip, len, &loan) || !soft_loan_good(&loan))
		return false;
	*ret = loan;
	return true;
}

bool soft_loan_good(const struct soft_loan *loan)
{
	/* The maker counts before he writes there again: bytes read before this are older. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&loan->view->generations[loan->unit], memory_order_acquire) ==
	       loan->generation;
}
