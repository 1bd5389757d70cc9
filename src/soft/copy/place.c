/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one copy into memory that a client may be polling.
 *
 * Observers are another thread, another process that maps the same memory, or a GPU that reads it
 * over the bus; the writer is the engine. What each may rely on:
 *   - the copy ends with the destination's last whole aligned 8 bytes, then the up to 7 bytes
 *     behind them, each stored at once and with release: who sees them (and loads with acquire, or
 *     on a processor that does not reorder loads) sees all that lies before them;
 *   - an aligned 8-byte word is never seen half written, in the middle neither, where the
 *     processor stores 16 aligned bytes at once (x86-64 with AVX, ARMv8.4);
 *   - on x86-64, whose stores become visible in program order, the whole copy is ascending.
 * memcpy() promises none of this: it is free to copy the last bytes first, and does.
 */
#include "soft/copy/place.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/banned.h"

/* 16 bytes at any address, and at an address that is a multiple of 16. */
typedef uint64_t any16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t aligned16 __attribute__((vector_size(16), may_alias));

#define STORE(type, to, from)                                                 \
	do {                                                                  \
		type v_;                                                      \
                                                                              \
		memcpy(&v_, from, sizeof(v_));                                \
		__atomic_store_n((type *)(void *)(to), v_, __ATOMIC_RELEASE); \
	} while (0)

/* Ascending, by the largest pieces that their addresses allow. For a few bytes. */
static void store_pieces(uint8_t *to, const uint8_t *from, size_t len)
{
	while (len) {
		uintptr_t at = (uintptr_t)to;
		size_t n = 1;

		if (at % 8 == 0 && len >= 8) {
			STORE(uint64_t, to, from);
			n = 8;
		} else if (at % 4 == 0 && len >= 4) {
			STORE(uint32_t, to, from);
			n = 4;
		} else if (at % 2 == 0 && len >= 2) {
			STORE(uint16_t, to, from);
			n = 2;
		} else {
			STORE(uint8_t, to, from);
		}
		to += n;
		from += n;
		len -= n;
	}
}

/*
 * @to is a multiple of 16; returns the bytes copied, the largest multiple of 16 in @len. The
 * fence keeps the compiler from reordering the stores and from making a memcpy() of the loop; it
 * is no instruction.
 */
static size_t store_blocks(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t done;

	for (done = 0; done + 16 <= len; done += 16) {
		*(aligned16 *)(void *)(to + done) = *(const any16 *)(const void *)(from + done);
		atomic_signal_fence(memory_order_seq_cst);
	}
	return done;
}

void soft_copy_place(void *to, const void *from, size_t len)
{
	uint8_t *out = to;
	const uint8_t *in = from;
	size_t head = -(uintptr_t)out & 15;
	size_t done;

	/* What follows the blocks: the last whole word and what is behind it, 8 to 15 bytes. */
	if (len < head + 16 + 15) {
		store_pieces(out, in, len);
		return;
	}
	store_pieces(out, in, head);
	done = head + store_blocks(out + head, in + head, len - head - 15);
	store_pieces(out + done, in + done, len - done);
}
