/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of 128 bytes that are written whole, as NCCL's LL128 protocol does: their reader looks at
 * the last word of a line and takes the rest for written. Both ends of every message are multiples
 * of a line; a line is all of one round, or all of the one before.
 */
#include "traffic.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 128, LONGEST = 3 << 20 };

static const size_t sizes[] = {LINE, 8 * LINE, 61 * LINE, 600 << 10, (1 << 20) + LINE, LONGEST};

static bool over(const struct end *e)
{
	struct pollfd fd = {.fd = e->talk, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* How many lines are of this round. */
static size_t look(struct end *e, uint8_t *have, size_t at, size_t len, uint8_t round)
{
	size_t fresh = 0;

	gpu_get(&e->memory, at, have, len);
	for (size_t line = 0; line < len; line += LINE) {
		for (size_t i = 1; i < LINE; i++)
			if (have[line + i] != have[line])
				end_fault("line %zu of %zu bytes: byte %zu is %02x, byte 0 %02x",
					  line / LINE, len, i, have[line + i], have[line]);
		fresh += have[line] == round;
	}
	return fresh * LINE;
}

void traffic_lines(struct end *e, bool first, const struct traffic *t)
{
	uint8_t *bytes = malloc(LONGEST), round = 1;
	size_t at = 3 * LINE, looks = 0;

	end_connect(e, first ? t->source : t->target, LONGEST + 4096, 0);
	memset(bytes, 0, LONGEST);
	gpu_put(&e->memory, at, bytes, LONGEST);
	end_meet(e);
	for (unsigned int n = 0; n < t->rounds; n++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++, round++) {
			if (first) {
				memset(bytes, round, sizes[s]);
				gpu_put(&e->memory, at, bytes, sizes[s]);
				end_meet(e);
				end_post(e, IBV_WR_RDMA_WRITE, round, at, sizes[s], at);
				(void)end_wait(e);
			} else {
				struct ibv_wc wc;

				end_meet(e);
				do {
					(void)ibv_poll_cq(e->cq, 1, &wc);
					(void)look(e, bytes, at, sizes[s], round);
					looks++;
				} while (!over(e));
				/* The sender has its completion. */
				if (look(e, bytes, at, sizes[s], round) != sizes[s])
					end_fault("%zu bytes are said to be there", sizes[s]);
			}
			end_meet(e);
		}
	}
	free(bytes);
	end_close(e);
	if (!first)
		printf("lines: whole, %zu looks\n", looks);
}
