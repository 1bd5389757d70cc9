/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands on the wire of a control channel: greetings, frames, their codes. Pure.
 *
 *   greeting, once each way:  "peerpath", version (32 bits), zero (32 bits), nonce (32 bytes)
 *   frame:                    length (32 bits), code (32 bytes, TCP only), text
 *
 * The first 12 bytes of a greeting stay as they are in every version. A code is the HMAC-SHA-256
 * of number, length and text under a key of its direction, so a frame can be neither forged nor
 * repeated, left out, swapped, or sent back to whom it came from. A length of 0, which no text
 * has, is how a side that knows another token refuses; it has no code.
 */
#ifndef PP_RDMA_FRAME_H
#define PP_RDMA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PP_FRAME_NONCE = 32,
	PP_FRAME_CODE = 32,
	PP_FRAME_GREETING = 48,
	PP_FRAME_GREETING_FIXED = 12, /* magic and version */
	PP_FRAME_LENGTH = 4,
	PP_FRAME_HEAD = PP_FRAME_LENGTH + PP_FRAME_CODE,
};

struct pp_frame_greeting {
	uint32_t version;
	uint8_t nonce[PP_FRAME_NONCE];
};

/* One direction of a channel. */
struct pp_frame_way {
	bool coded;
	uint64_t number; /* of the next frame */
	uint8_t key[32];
};

/* What pp_frame_read() found. */
struct pp_frame {
	const char *text; /* inside the bytes given */
	size_t len;
	size_t need; /* bytes that the whole frame has, as far as one can know yet */
};

void pp_frame_greet(const struct pp_frame_greeting *greeting, uint8_t ret[PP_FRAME_GREETING]);
/*
 * -EAGAIN: more bytes are needed. -EPROTO: no peerpath. -EPROTONOSUPPORT: ret->version is not
 * ours; known from the fixed part on.
 */
int pp_frame_greeting_read(const uint8_t *bytes, size_t len, struct pp_frame_greeting *ret);

/* Both directions' keys from the token and both nonces; every frame is coded from here on. */
void pp_frame_keys(const char *token, const uint8_t dialler[PP_FRAME_NONCE],
		   const uint8_t accepter[PP_FRAME_NONCE], struct pp_frame_way *ret_dialler,
		   struct pp_frame_way *ret_accepter);

/* The head of the next frame on @way; returns its size. */
size_t pp_frame_head(struct pp_frame_way *way, const char *text, size_t len,
		     uint8_t ret[PP_FRAME_HEAD]);
/*
 * The frame at the beginning of @bytes. 0: whole, its code is right, @way counts on. -EAGAIN:
 * ret->need bytes are needed. -EMSGSIZE: longer than @most. -EBADMSG: its code is wrong.
 * -EACCES: a refusal.
 */
int pp_frame_read(struct pp_frame_way *way, const uint8_t *bytes, size_t len, size_t most,
		  struct pp_frame *ret);

#endif
