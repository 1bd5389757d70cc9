/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/board.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "soft/engine/counter.h"
#include "soft/link/slot.h"

#include "base/banned.h"

enum { LOCK_TRIES = 10, LOCK_PAUSE_US = 1000 };

struct soft_board {
	int rows, port;			   /* descriptors: the rows; ports/1 */
	unsigned int slot;		   /* which of the rows is ours */
	pp_ns written;			   /* when text was written last */
	bool down;			   /* the port's state as written last */
	bool behind;			   /* the row is written, the text is not */
	uint64_t base[SOFT_COUNTERS_MAX];  /* of the slot's earlier owners */
	uint64_t own[SOFT_COUNTERS_MAX];   /* of this process, as last written */
	uint64_t shown[SOFT_COUNTERS_MAX]; /* text that this process wrote last */
};

static size_t row_bytes(void)
{
	return soft_counter_count() * sizeof(uint64_t);
}

int soft_board_open(const char *dir, const char *device, unsigned int slot, struct soft_board **ret)
{
	struct soft_board *b = calloc(1, sizeof(*b));
	char path[PATH_MAX];
	int r = 0;

	if (!b)
		return -ENOMEM;
	b->rows = b->port = -1;
	b->slot = slot;
	(void)snprintf(path, sizeof(path), "%s/rows/%s", dir, device);
	b->rows = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	(void)snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/ports/1", dir, device);
	if (b->rows >= 0)
		b->port = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* A short row is one that nobody has written: zeros. */
	if (b->port < 0 || pread(b->rows, b->base, row_bytes(), (off_t)(slot * row_bytes())) < 0)
		r = -errno;
	if (r) {
		soft_board_close(b);
		return r;
	}
	*ret = b;
	return 0;
}

void soft_board_close(struct soft_board *b)
{
	if (!b)
		return;
	if (b->rows >= 0)
		close(b->rows);
	if (b->port >= 0)
		close(b->port);
	free(b);
}

/*
 * One write that is never shorter than what was there leaves no reader half a text. A folder that
 * became unwritable is no reason to disturb the traffic: the text stays behind.
 */
static void write_text(const struct soft_board *b, const char *path, const char *text)
{
	int fd = openat(b->port, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	(void)!pwrite(fd, text, strlen(text), 0);
	close(fd);
}

static void write_value(const struct soft_board *b, size_t i, uint64_t value)
{
	const struct soft_counter *c = soft_counter_at(i);
	char path[128], text[24];

	(void)snprintf(path, sizeof(path), "%s/%s", soft_counter_dirs[c->dir], c->name);
	(void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	write_text(b, path, text);
}

/* As the kernel says it; blanks where a text is shorter than the other, which readers trim. */
static void write_state(struct soft_board *b, bool down)
{
	if (down == b->down)
		return;
	b->down = down;
	write_text(b, "state", down ? "1: DOWN  \n" : "4: ACTIVE\n");
	write_text(b, "phys_state", down ? "3: Disabled\n" : "5: LinkUp  \n");
}

static int sum_rows(const struct soft_board *b, uint64_t sum[SOFT_COUNTERS_MAX])
{
	uint64_t row[SOFT_COUNTERS_MAX];
	size_t n = soft_counter_count();
	ssize_t got = 0;

	memset(sum, 0, sizeof(uint64_t) * SOFT_COUNTERS_MAX);
	for (unsigned int slot = 0; slot < SOFT_SLOTS; slot++) {
		got = pread(b->rows, row, row_bytes(), (off_t)(slot * row_bytes()));
		if (got != (ssize_t)row_bytes())
			break;
		for (size_t i = 0; i < n; i++)
			sum[i] += row[i];
	}
	return got < 0 ? -errno : 0;
}

/* false: another process is at it, and may not have seen our row. */
static bool write_sums(struct soft_board *b, bool at_once)
{
	uint64_t sum[SOFT_COUNTERS_MAX];
	int tries = at_once ? LOCK_TRIES : 1;

	while (flock(b->rows, LOCK_EX | LOCK_NB)) {
		if (--tries <= 0)
			return false;
		usleep(LOCK_PAUSE_US);
	}
	if (!sum_rows(b, sum)) {
		for (size_t i = 0; i < soft_counter_count(); i++)
			if (sum[i] != b->shown[i])
				write_value(b, i, sum[i]);
		memcpy(b->shown, sum, sizeof(b->shown));
	}
	(void)flock(b->rows, LOCK_UN);
	return true;
}

pp_ns soft_board_write(struct soft_board *b, const struct soft_wire *wire, pp_ns now, bool at_once)
{
	uint64_t own[SOFT_COUNTERS_MAX] = {0}, row[SOFT_COUNTERS_MAX];

	soft_counter_read(wire, own);
	write_state(b, soft_wire_fault(wire)->port_down);
	if (!b->behind && !memcmp(own, b->own, sizeof(own)))
		return 0;
	if (!at_once && now - b->written < SOFT_BOARD_EVERY)
		return b->written + SOFT_BOARD_EVERY;
	memcpy(b->own, own, sizeof(own));
	for (size_t i = 0; i < soft_counter_count(); i++)
		row[i] = b->base[i] + own[i];
	b->written = now;
	b->behind = pwrite(b->rows, row, row_bytes(), (off_t)(b->slot * row_bytes())) < 0 ||
		    !write_sums(b, at_once);
	return b->behind ? now + SOFT_BOARD_EVERY : 0;
}
