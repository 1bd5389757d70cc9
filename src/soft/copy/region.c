/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of a process by key.
 *
 * Keys come from the kernel's random numbers: whoever sees one learns nothing about the next. A
 * bucket is a key's low bits above the owners': keys are uniform and chosen here, so a peer who
 * sends keys of its choice meets no chain longer than others.
 *
 * Invariants: every region in a chain has a key that is not 0, not resting, and in no other
 * region, owners' bits apart. Buckets are a power of two.
 */
#include "soft/copy/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "soft/copy/place.h"
#include "base/banned.h"

enum {
	BUCKETS_LEAST = 64,
	REGIONS_MAX = 1 << 20,
	RANDOM_WORDS = 32,
	RESTING_SLOTS = 1 << 16,
	/* Of 2^24 keys, owners' bits apart, at most 2^20 + 2^12 are taken: 16 draws in a row do not
	 * all hit one. */
	DRAWS = 16,
};

struct soft_regions {
	struct soft_region **bucket;
	size_t buckets, count;
	uint32_t resting[SOFT_KEYS_RESTING]; /* a ring of freed keys; 0: none */
	uint16_t rests[RESTING_SLOTS];	     /* how many of them by some of their bits */
	size_t next_resting;
	uint32_t random[RANDOM_WORDS]; /* drawn ahead: one system call for many keys */
	size_t random_left;
	pid_t random_of; /* a child must not give the keys that its parent will give */
};

int soft_regions_new(struct soft_regions **ret)
{
	struct soft_regions *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->bucket = calloc(BUCKETS_LEAST, sizeof(struct soft_region *));
	if (!table->bucket) {
		free(table);
		return -ENOMEM;
	}
	table->buckets = BUCKETS_LEAST;
	*ret = table;
	return 0;
}

void soft_regions_free(struct soft_regions *table)
{
	if (!table)
		return;
	explicit_bzero(table->random, sizeof(table->random));
	free(table->bucket);
	free(table);
}

static struct soft_region **bucket_of(const struct soft_regions *table, uint32_t key)
{
	return &table->bucket[key / (SOFT_KEY_OWNERS + 1) & (table->buckets - 1)];
}

static int draw(struct soft_regions *table, uint32_t *ret)
{
	if (table->random_left == 0 || table->random_of != getpid()) {
		ssize_t n;

		do {
			n = getrandom(table->random, sizeof(table->random), 0);
		} while (n < 0 && errno == EINTR);
		if (n != (ssize_t)sizeof(table->random))
			return -EIO;
		table->random_left = RANDOM_WORDS;
		table->random_of = getpid();
	}
	table->random_left--;
	*ret = table->random[table->random_left];
	table->random[table->random_left] = 0;
	return 0;
}

static bool same_but_owners(uint32_t a, uint32_t b)
{
	return (a | SOFT_KEY_OWNERS) == (b | SOFT_KEY_OWNERS);
}

static size_t slot_of(uint32_t key)
{
	return key / (SOFT_KEY_OWNERS + 1) % RESTING_SLOTS;
}

static bool is_resting(const struct soft_regions *table, uint32_t key)
{
	if (!table->rests[slot_of(key)])
		return false;
	for (size_t i = 0; i < SOFT_KEYS_RESTING; i++)
		if (table->resting[i] && same_but_owners(table->resting[i], key))
			return true;
	return false;
}

static int choose_key(struct soft_regions *table, uint32_t *ret)
{
	for (int i = 0; i < DRAWS; i++) {
		uint32_t key;
		int err = draw(table, &key);

		if (err)
			return err;
		if (same_but_owners(key, 0) || soft_regions_of(table, key) ||
		    is_resting(table, key))
			continue;
		*ret = key;
		return 0;
	}
	return -EIO;
}

/* Longer chains are no error: without memory for more buckets the table stays as it is. */
static void grow(struct soft_regions *table)
{
	size_t old = table->buckets;
	struct soft_region **bucket = calloc(old * 2, sizeof(struct soft_region *));

	if (!bucket)
		return;
	for (size_t i = 0; i < old; i++) {
		struct soft_region *region = table->bucket[i];

		while (region) {
			struct soft_region *next = region->next;
			struct soft_region **to =
				&bucket[region->key / (SOFT_KEY_OWNERS + 1) & (old * 2 - 1)];

			region->next = *to;
			*to = region;
			region = next;
		}
	}
	free(table->bucket);
	table->bucket = bucket;
	table->buckets = old * 2;
}

int soft_regions_add(struct soft_regions *table, struct soft_region *region)
{
	struct soft_region **bucket;
	int err;

	if (table->count >= REGIONS_MAX)
		return -ENOMEM;
	err = choose_key(table, &region->key);
	if (err)
		return err;
	if (table->count >= table->buckets)
		grow(table);
	bucket = bucket_of(table, region->key);
	region->next = *bucket;
	*bucket = region;
	table->count++;
	return 0;
}

void soft_regions_remove(struct soft_regions *table, struct soft_region *region)
{
	struct soft_region **at = bucket_of(table, region->key);

	while (*at && *at != region)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = region->next;
	region->next = NULL;
	table->count--;
	if (table->resting[table->next_resting])
		table->rests[slot_of(table->resting[table->next_resting])]--;
	table->resting[table->next_resting] = region->key;
	table->rests[slot_of(region->key)]++;
	table->next_resting = (table->next_resting + 1) % SOFT_KEYS_RESTING;
}

struct soft_region *soft_regions_find(const struct soft_regions *table, uint32_t key)
{
	struct soft_region *region = *bucket_of(table, key);

	while (region && region->key != key)
		region = region->next;
	return region;
}

struct soft_region *soft_regions_of(const struct soft_regions *table, uint32_t key)
{
	struct soft_region *region = *bucket_of(table, key);

	while (region && !same_but_owners(region->key, key))
		region = region->next;
	return region;
}

size_t soft_regions_count(const struct soft_regions *table)
{
	return table->count;
}

void soft_regions_each(const struct soft_regions *table, void (*each)(void *, struct soft_region *),
		       void *arg)
{
	for (size_t i = 0; i < table->buckets; i++) {
		struct soft_region *next;

		for (struct soft_region *region = table->bucket[i]; region; region = next) {
			next = region->next; /* @each may free it */
			each(arg, region);
		}
	}
}

struct soft_region *soft_regions_check(const struct soft_regions *table, const void *pd,
				       uint32_t key, uint64_t va, uint64_t len, uint32_t access)
{
	struct soft_region *region = soft_regions_find(table, key);
	uint64_t offset, end, va_end;

	if (!region || region->window || region->pd != pd || (region->access & access) != access)
		return NULL;
	if (__builtin_add_overflow(va, len, &va_end) ||
	    __builtin_sub_overflow(va, region->iova, &offset) ||
	    __builtin_add_overflow(offset, len, &end) || end > region->length)
		return NULL;
	return region;
}

static uint8_t *host_direct(const struct soft_region *region, uint64_t offset)
{
	return region->base + offset;
}

static int host_fetch(const struct soft_region *region, uint64_t offset, void *to, size_t len)
{
	memcpy(to, region->base + offset, len);
	return 0;
}

static int host_store(struct soft_region *region, uint64_t offset, const void *from, size_t len)
{
	soft_copy_place(region->base + offset, from, len);
	return 0;
}

/* The memory is the client's. */
static void host_release(struct soft_region *region)
{
	(void)region;
}

const struct soft_region_ops soft_region_host = {host_direct, host_fetch, host_store, host_release};
