/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware addresses go through a keyed permutation (a balanced Feistel network over SipHash), so
 * no table is needed and no two become one. Network addresses have too little room for that
 * (documentation ranges are small) and are numbered in order of appearance.
 */
#include "bundle/scrub_map.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { ROUNDS = 8, SET_MIN = 1024, SET_MAX = 1 << 20 };

int pp_scrub_map_new(struct pp_scrub_map **ret)
{
	struct pp_scrub_map *m = calloc(1, sizeof(*m));

	_Static_assert(PP_SCRUB_KEY_BYTES == crypto_shorthash_KEYBYTES, "SipHash's key");
	if (!m || sodium_init() < 0) {
		free(m);
		return -ENOMEM;
	}
	m->arena = PP_ARENA((size_t)4 << 20);
	randombytes_buf(m->key, sizeof(m->key));
	*ret = m;
	return 0;
}

struct pp_scrub_map *pp_scrub_map_free(struct pp_scrub_map *m)
{
	if (!m)
		return NULL;
	pp_arena_done(&m->arena);
	free(m->nets);
	free(m->prefixes);
	free(m->hardware.values);
	sodium_memzero(m, sizeof(*m));
	free(m);
	return NULL;
}

uint64_t pp_scrub_hash(const struct pp_scrub_map *m, char purpose, const void *bytes, size_t len)
{
	uint8_t key[PP_SCRUB_KEY_BYTES], out[crypto_shorthash_BYTES];
	uint64_t v;

	memcpy(key, m->key, sizeof(key));
	key[0] ^= (uint8_t)purpose;
	(void)crypto_shorthash(out, bytes, len, key);
	memcpy(&v, out, sizeof(v));
	return v;
}

/* Permutes the low @bits (even) of @value. */
static uint64_t permute(const struct pp_scrub_map *m, char purpose, uint64_t tweak,
			unsigned int bits, uint64_t value)
{
	uint64_t mask = ((uint64_t)1 << (bits / 2)) - 1;
	uint64_t left = (value >> (bits / 2)) & mask, right = value & mask, next;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		const uint64_t in[3] = {tweak, round, right};

		next = left ^ (pp_scrub_hash(m, purpose, in, sizeof(in)) & mask);
		left = right;
		right = next;
	}
	return left << (bits / 2) | right;
}

static size_t set_slot(const struct pp_scrub_set *s, uint64_t v)
{
	size_t i = (size_t)(v * 0x9e3779b97f4a7c15u >> 20) & (s->slots - 1);

	while (s->values[i] && s->values[i] != v)
		i = (i + 1) & (s->slots - 1);
	return i;
}

static void set_add(struct pp_scrub_map *m, uint64_t v)
{
	struct pp_scrub_set *s = &m->hardware,
			    bigger = {.slots = s->slots ? s->slots * 2 : SET_MIN};

	if (!v || (s->slots && s->values[set_slot(s, v)] == v))
		return;
	if (s->n * 2 >= s->slots) {
		bigger.values = bigger.slots <= SET_MAX ? calloc(bigger.slots, sizeof(v)) : NULL;
		if (!bigger.values) {
			m->failed = true;
			return;
		}
		for (size_t i = 0; i < s->slots; i++)
			if (s->values[i])
				bigger.values[set_slot(&bigger, s->values[i])] = s->values[i];
		bigger.n = s->n;
		free(s->values);
		*s = bigger;
	}
	s->values[set_slot(s, v)] = v;
	s->n++;
}

bool pp_scrub_known(const struct pp_scrub_map *m, uint64_t hardware)
{
	const struct pp_scrub_set *s = &m->hardware;

	/* Small numbers are numbers: an address "::5" makes no "0000000000000005" a GUID. */
	return hardware >> 36 && s->slots && s->values[set_slot(s, hardware)] == hardware;
}

/*
 * The device's 24 bits of an address, permuted within its vendor. The universal/local bit is left
 * out of the vendor: an interface identifier has it inverted.
 */
static uint32_t device_bits(const struct pp_scrub_map *m, uint64_t vendor, uint64_t device)
{
	return (uint32_t)permute(m, 'm', vendor & 0xfdffff, 24, device & 0xffffff);
}

void pp_scrub_mac(struct pp_scrub_map *m, uint8_t mac[6])
{
	uint64_t v = 0;
	uint32_t device;

	for (int i = 0; i < 6; i++)
		v = v << 8 | mac[i];
	/* nobody's: zero, and groups (broadcast is one) */
	if (!v || (mac[0] & 1))
		return;
	set_add(m, v);
	device = device_bits(m, v >> 24, v);
	mac[3] = (uint8_t)(device >> 16);
	mac[4] = (uint8_t)(device >> 8);
	mac[5] = (uint8_t)device;
}

/* Made from a MAC address: the standard way (ff:fe), or Mellanox's (03:00). */
static bool from_mac(uint64_t guid)
{
	uint64_t middle = guid >> 24 & 0xffff;

	return middle == 0xfffe || middle == 0x0300;
}

uint64_t pp_scrub_guid(struct pp_scrub_map *m, uint64_t guid)
{
	uint64_t v = guid;

	if (!guid || guid == UINT64_MAX)
		return guid;
	set_add(m, guid);
	if (from_mac(guid))
		return (guid & ~(uint64_t)0xffffff) | device_bits(m, guid >> 40, guid);
	do
		v = permute(m, 'g', 0, 64, v);
	while (from_mac(v) || !v || v == UINT64_MAX);
	return v;
}

void pp_scrub_uuid(const struct pp_scrub_map *m, uint8_t uuid[16])
{
	uint8_t in[17], version = uuid[6] & 0xf0, variant = uuid[8] & 0xc0;
	uint64_t half;

	if (sodium_is_zero(uuid, 16))
		return;
	memcpy(in, uuid, 16);
	for (uint8_t i = 0; i < 2; i++) {
		in[16] = i;
		half = pp_scrub_hash(m, 'u', in, sizeof(in));
		memcpy(uuid + (size_t)8 * i, &half, sizeof(half));
	}
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | version);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | variant);
}

void pp_scrub_shape(const struct pp_scrub_map *m, char *text, size_t len)
{
	const uint64_t seed = pp_scrub_hash(m, 's', text, len);
	uint64_t in[2] = {seed}, h;

	for (size_t i = 0; i < len; i++) {
		in[1] = i;
		h = pp_scrub_hash(m, 'c', in, sizeof(in));
		if (text[i] >= '0' && text[i] <= '9')
			text[i] = (char)('0' + h % 10);
		else if (text[i] >= 'a' && text[i] <= 'z')
			text[i] = (char)('a' + h % 26);
		else if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] = (char)('A' + h % 26);
	}
}
