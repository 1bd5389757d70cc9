/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

void pp_nccl_table_done(struct pp_nccl_table *t)
{
	free(t->data);
	free(t->slots);
	free(t->tags);
	t->data = t->tags = NULL;
	t->slots = NULL;
	t->n = t->cap = t->n_slots = 0;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const unsigned char *at)
{
	uint64_t w;

	memcpy(&w, at, sizeof(w));
	return w;
}

/* The last bytes of a key, fewer than eight: two pieces that overlap, or three bytes. */
static uint64_t load_tail(const unsigned char *at, size_t n)
{
	uint32_t low, high;

	if (!n)
		return 0;
	if (n < 4)
		return (uint64_t)at[0] << 16 | (uint64_t)at[n / 2] << 8 | at[n - 1];
	memcpy(&low, at, sizeof(low));
	memcpy(&high, at + n - 4, sizeof(high));
	return (uint64_t)high << 32 | low;
}

/* @len is in it, since the rest of a key counts as zero. */
static uint32_t hash(const unsigned char *key, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15ULL + len;

	for (; len >= 8; key += 8, len -= 8)
		h = fold(load(key) ^ h, 0xd6e8feb86659fd93ULL);
	h = fold(load_tail(key, len) ^ h, 0xa0761d6478bd642fULL);
	return (uint32_t)(h ^ h >> 32);
}

/* @len bytes of key and zeros behind them, as the record has it? */
static bool same(const struct pp_nccl_table *t, uint32_t i, const unsigned char *key, size_t len)
{
	const unsigned char *have = pp_nccl_table_at(t, i);

	if (len < t->key && have[len])
		return false;
	for (; len >= 8; key += 8, have += 8, len -= 8)
		if (load(key) != load(have))
			return false;
	return load_tail(key, len) == load_tail(have, len);
}

static unsigned char tag_of(uint32_t h)
{
	return (unsigned char)(h >> 24 | 1);
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t slot_of(const struct pp_nccl_table *t, const void *key, size_t len, uint32_t h)
{
	const unsigned char *tags = t->tags, tag = tag_of(h);
	uint32_t mask = t->n_slots - 1, i = h & mask;

	for (; tags[i]; i = (i + 1) & mask)
		if (tags[i] == tag && t->slots[i].hash == h && same(t, t->slots[i].at, key, len))
			break;
	return i;
}

uint32_t pp_nccl_table_find(const struct pp_nccl_table *t, const void *key)
{
	uint32_t i;

	if (!t->n_slots)
		return PP_NCCL_NONE;
	i = slot_of(t, key, t->key, hash(key, t->key));
	return t->tags[i] ? t->slots[i].at : PP_NCCL_NONE;
}

static bool grow_slots(struct pp_nccl_table *t)
{
	uint32_t n = t->n_slots ? t->n_slots * 2 : 64, i;
	struct pp_nccl_slot *slots = calloc(n, sizeof(*slots));
	unsigned char *tags = calloc(n, 1);

	if (!slots || !tags) {
		free(slots);
		free(tags);
		return false;
	}
	for (uint32_t k = 0; k < t->n_slots; k++) {
		if (!t->tags[k])
			continue;
		for (i = t->slots[k].hash & (n - 1); tags[i]; i = (i + 1) & (n - 1))
			;
		slots[i] = t->slots[k];
		tags[i] = t->tags[k];
	}
	free(t->slots);
	free(t->tags);
	t->slots = slots;
	t->tags = tags;
	t->n_slots = n;
	return true;
}

static bool grow(struct pp_nccl_table *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 16;
	unsigned char *data;

	if (t->n >= t->max)
		return false;
	t->starved = (t->n + 1) * 2 > t->n_slots && !grow_slots(t);
	if (t->starved)
		return false;
	if (t->n < t->cap)
		return true;
	data = realloc(t->data, (size_t)cap * t->record);
	t->starved = !data;
	if (!data)
		return false;
	t->data = data;
	t->cap = cap;
	return true;
}

static uint32_t put(struct pp_nccl_table *t, const void *key, size_t len, bool *ret_new)
{
	uint32_t h = hash(key, len), i = t->n_slots ? slot_of(t, key, len, h) : 0;
	bool is_new = !t->n_slots || !t->tags[i];

	if (ret_new)
		*ret_new = is_new;
	if (!is_new)
		return t->slots[i].at;
	if (t->full || !grow(t)) {
		t->full = true;
		return PP_NCCL_NONE;
	}
	memset(pp_nccl_table_at(t, t->n), 0, t->record);
	memcpy(pp_nccl_table_at(t, t->n), key, len);
	i = slot_of(t, key, len, h);
	t->slots[i] = (struct pp_nccl_slot){t->n, h};
	t->tags[i] = tag_of(h);
	return t->n++;
}

uint32_t pp_nccl_table_put(struct pp_nccl_table *t, const void *key, bool *ret_new)
{
	return put(t, key, t->key, ret_new);
}

uint32_t pp_nccl_table_put_text(struct pp_nccl_table *t, const char *text, size_t len)
{
	return put(t, text, len < t->key ? len : t->key - 1, NULL);
}
