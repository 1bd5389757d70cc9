/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/frame.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "rdma/channel.h"
#include "base/banned.h"

static const char magic[8] = {'p', 'e', 'e', 'r', 'p', 'a', 't', 'h'};
static const char label[] = "peerpath control channel 1";

_Static_assert(PP_FRAME_CODE == crypto_auth_hmacsha256_BYTES, "code");
_Static_assert(sizeof(((struct pp_frame_way *)0)->key) == crypto_auth_hmacsha256_KEYBYTES, "key");
_Static_assert(sizeof(((struct pp_frame_way *)0)->key) == crypto_kdf_KEYBYTES, "derivation");

static void put32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

void pp_frame_greet(const struct pp_frame_greeting *greeting, uint8_t ret[PP_FRAME_GREETING])
{
	memcpy(ret, magic, sizeof(magic));
	put32(ret + 8, greeting->version);
	put32(ret + 12, 0);
	memcpy(ret + 16, greeting->nonce, PP_FRAME_NONCE);
}

int pp_frame_greeting_read(const uint8_t *bytes, size_t len, struct pp_frame_greeting *ret)
{
	size_t first = len < sizeof(magic) ? len : sizeof(magic);

	if (first && memcmp(bytes, magic, first) != 0)
		return -EPROTO;
	if (len < PP_FRAME_GREETING_FIXED)
		return -EAGAIN;
	ret->version = get32(bytes + 8);
	if (ret->version != PP_CHANNEL_VERSION)
		return -EPROTONOSUPPORT;
	if (len < PP_FRAME_GREETING)
		return -EAGAIN;
	if (get32(bytes + 12))
		return -EPROTO;
	memcpy(ret->nonce, bytes + 16, PP_FRAME_NONCE);
	return 0;
}

static void way_key(struct pp_frame_way *way, uint64_t id, const uint8_t *base)
{
	*way = (struct pp_frame_way){.coded = true};
	(void)crypto_kdf_derive_from_key(way->key, sizeof(way->key), id, "pp-chan", base);
}

void pp_frame_keys(const char *token, const uint8_t dialler[PP_FRAME_NONCE],
		   const uint8_t accepter[PP_FRAME_NONCE], struct pp_frame_way *ret_dialler,
		   struct pp_frame_way *ret_accepter)
{
	uint8_t secret[32], base[crypto_kdf_KEYBYTES];
	crypto_generichash_state state;

	/* A token may be longer than the longest key. */
	(void)crypto_generichash(secret, sizeof(secret), (const uint8_t *)token, strlen(token),
				 NULL, 0);
	(void)crypto_generichash_init(&state, secret, sizeof(secret), sizeof(base));
	(void)crypto_generichash_update(&state, (const uint8_t *)label, sizeof(label));
	(void)crypto_generichash_update(&state, dialler, PP_FRAME_NONCE);
	(void)crypto_generichash_update(&state, accepter, PP_FRAME_NONCE);
	(void)crypto_generichash_final(&state, base, sizeof(base));
	way_key(ret_dialler, 1, base);
	way_key(ret_accepter, 2, base);
	sodium_memzero(secret, sizeof(secret));
	sodium_memzero(base, sizeof(base));
}

static void code(const struct pp_frame_way *way, const uint8_t length[PP_FRAME_LENGTH],
		 const void *text, size_t len, uint8_t ret[PP_FRAME_CODE])
{
	crypto_auth_hmacsha256_state state;
	uint8_t number[8];

	put32(number, (uint32_t)(way->number >> 32));
	put32(number + 4, (uint32_t)way->number);
	(void)crypto_auth_hmacsha256_init(&state, way->key, sizeof(way->key));
	(void)crypto_auth_hmacsha256_update(&state, number, sizeof(number));
	(void)crypto_auth_hmacsha256_update(&state, length, PP_FRAME_LENGTH);
	(void)crypto_auth_hmacsha256_update(&state, text, len);
	(void)crypto_auth_hmacsha256_final(&state, ret);
}

size_t pp_frame_head(struct pp_frame_way *way, const char *text, size_t len,
		     uint8_t ret[PP_FRAME_HEAD])
{
	put32(ret, (uint32_t)len);
	if (!way->coded)
		return PP_FRAME_LENGTH;
	code(way, ret, text, len, ret + PP_FRAME_LENGTH);
	way->number++;
	return PP_FRAME_HEAD;
}

int pp_frame_read(struct pp_frame_way *way, const uint8_t *bytes, size_t len, size_t most,
		  struct pp_frame *ret)
{
	size_t head = way->coded ? PP_FRAME_HEAD : PP_FRAME_LENGTH;
	uint8_t expected[PP_FRAME_CODE];
	uint32_t length;

	/* Not the whole head at once: a refusal is shorter. */
	*ret = (struct pp_frame){.need = PP_FRAME_LENGTH};
	if (len < PP_FRAME_LENGTH)
		return -EAGAIN;
	length = get32(bytes);
	if (!length)
		return way->coded ? -EACCES : -EBADMSG;
	if (length > most)
		return -EMSGSIZE;
	ret->need = head + length;
	if (len < ret->need)
		return -EAGAIN;
	if (way->coded) {
		code(way, bytes, bytes + head, length, expected);
		if (sodium_memcmp(expected, bytes + PP_FRAME_LENGTH, PP_FRAME_CODE) != 0)
			return -EBADMSG;
		way->number++;
	}
	ret->text = (const char *)bytes + head;
	ret->len = length;
	return 0;
}
