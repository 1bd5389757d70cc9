/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/staging.h"

#include <errno.h>
#include <stdlib.h>

#include "mem/copy.h"
#include "mem/cuda.h"
#include "mem/pattern.h"
#include "base/banned.h"

/* A copy engine is near its full rate from 1 MiB on. */
enum { SLOTS = 2, SLOT_BYTES = 4 << 20 };

struct slot {
	struct pp_bounce bounce;
	struct pp_copy *copy;
};

struct pp_staging {
	struct slot slot[SLOTS];
};

struct pp_staging *pp_staging_free(struct pp_memory *m, struct pp_staging *s)
{
	if (!s)
		return NULL;
	for (int i = 0; i < SLOTS; i++) {
		pp_copy_free(m, s->slot[i].copy);
		pp_bounce_free(m, &s->slot[i].bounce);
	}
	free(s);
	return NULL;
}

int pp_staging_new(struct pp_memory *m, struct pp_staging **ret, struct pp_error *err)
{
	struct pp_staging *s = calloc(1, sizeof(*s));
	int r = s ? 0 : pp_error_set(err, -ENOMEM, "out of memory");

	for (int i = 0; i < SLOTS && !r; i++) {
		r = pp_bounce_new(m, SLOT_BYTES, &s->slot[i].bounce, err);
		if (!r)
			r = pp_copy_new(m, &s->slot[i].copy, err);
	}
	if (r) {
		pp_staging_free(m, s);
		return r;
	}
	*ret = s;
	return 0;
}

static size_t chunk(uint64_t done, uint64_t len)
{
	return len - done < SLOT_BYTES ? (size_t)(len - done) : SLOT_BYTES;
}

int pp_staging_fill(struct pp_memory *m, struct pp_staging *s, uint64_t offset, uint64_t len,
		    uint64_t seed, struct pp_error *err)
{
	struct slot *slot;
	unsigned int turn = 0;
	int r = 0, last;
	size_t n;

	for (uint64_t done = 0; done < len && !r; done += n) {
		slot = &s->slot[turn++ % SLOTS];
		n = chunk(done, len);
		r = pp_copy_wait(m, slot->copy, err);
		if (r)
			break;
		pp_pattern_fill(slot->bounce.at, offset + done, n, seed);
		r = pp_copy_in(m, slot->copy, offset + done, slot->bounce.at, n);
		if (r)
			(void)pp_copy_failed(m, slot->copy, err);
	}
	for (int i = 0; i < SLOTS; i++) {
		last = pp_copy_wait(m, s->slot[i].copy, err);
		r = r ? r : last;
	}
	return r;
}

static void add(struct pp_memory_checked *sum, const struct pp_pattern_wrong *wrong, uint64_t at)
{
	if (wrong->bytes && !sum->wrong) {
		sum->first = at + wrong->first;
		sum->expected = wrong->expected;
		sum->found = wrong->found;
	}
	sum->wrong += wrong->bytes;
}

/* Starts the copy of the chunk at @done, if there is one. */
static int fetch(struct pp_memory *m, struct slot *slot, uint64_t offset, uint64_t done,
		 uint64_t len, struct pp_error *err)
{
	int r;

	if (done >= len)
		return 0;
	r = pp_copy_out(m, slot->copy, offset + done, slot->bounce.at, chunk(done, len));
	if (r)
		(void)pp_copy_failed(m, slot->copy, err);
	return r;
}

int pp_staging_check(struct pp_memory *m, struct pp_staging *s, uint64_t offset, uint64_t len,
		     uint64_t seed, uint64_t from, struct pp_memory_checked *ret,
		     struct pp_error *err)
{
	struct pp_memory_checked sum = {.bytes = len};
	struct pp_pattern_wrong wrong;
	struct pp_error dropped;
	unsigned int turn = 0;
	struct slot *slot;
	int r = fetch(m, &s->slot[0], offset, 0, len, err);
	size_t n;

	for (uint64_t done = 0; done < len && !r; done += n) {
		slot = &s->slot[turn++ % SLOTS];
		n = chunk(done, len);
		r = fetch(m, &s->slot[turn % SLOTS], offset, done + n, len, err);
		if (!r)
			r = pp_copy_wait(m, slot->copy, err);
		if (r)
			break;
		pp_pattern_check(slot->bounce.at, from + done, n, seed, &wrong);
		add(&sum, &wrong, offset + done);
	}
	/* After an error nothing may still write into a buffer. */
	for (int i = 0; i < SLOTS && r; i++)
		(void)pp_copy_wait(m, s->slot[i].copy, &dropped);
	if (!r)
		*ret = sum;
	return r;
}
