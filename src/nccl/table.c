/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

void pp_nccl_table_done(struct pp_nccl_table *t)
{
	free(t->data);
	free(t->slots);
	t->data = NULL;
	t->slots = NULL;
	t->n = t->cap = t->n_slots = 0;
}

static uint32_t hash(const unsigned char *key, uint32_t len)
{
	uint64_t h = 1469598103934665603ULL, word;
	uint32_t part;

	for (uint32_t i = 0; i < len; i += part) {
		part = len - i < sizeof(word) ? len - i : sizeof(word);
		word = 0;
		memcpy(&word, key + i, part);
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return (uint32_t)h;
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t slot_of(const struct pp_nccl_table *t, const void *key)
{
	uint32_t mask = t->n_slots - 1, i = hash(key, t->key) & mask;

	while (t->slots[i] && memcmp(pp_nccl_table_at(t, t->slots[i] - 1), key, t->key) != 0)
		i = (i + 1) & mask;
	return i;
}

uint32_t pp_nccl_table_find(const struct pp_nccl_table *t, const void *key)
{
	uint32_t at;

	if (!t->n_slots)
		return PP_NCCL_NONE;
	at = t->slots[slot_of(t, key)];
	return at ? at - 1 : PP_NCCL_NONE;
}

static bool grow_slots(struct pp_nccl_table *t)
{
	uint32_t n = t->n_slots ? t->n_slots * 2 : 64;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->n_slots = n;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[slot_of(t, pp_nccl_table_at(t, i))] = i + 1;
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

uint32_t pp_nccl_table_put(struct pp_nccl_table *t, const void *key, bool *ret_new)
{
	uint32_t at = pp_nccl_table_find(t, key);

	if (ret_new)
		*ret_new = at == PP_NCCL_NONE;
	if (at != PP_NCCL_NONE)
		return at;
	if (t->full || !grow(t)) {
		t->full = true;
		return PP_NCCL_NONE;
	}
	memset(pp_nccl_table_at(t, t->n), 0, t->record);
	memcpy(pp_nccl_table_at(t, t->n), key, t->key);
	t->slots[slot_of(t, key)] = t->n + 1;
	return t->n++;
}
