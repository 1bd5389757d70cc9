/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a stranger on a control channel: as a greeting, as a frame without and with code.
 * Nothing that was not coded with the key may pass, and nobody is asked for more than announced.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rdma/channel.h"
#include "rdma/frame.h"

enum { MOST = 4096 };

static void frame(const uint8_t *data, size_t size, bool coded)
{
	struct pp_frame_way way = {.coded = coded}, before;
	struct pp_frame f;
	int r;

	memset(way.key, 0x5a, sizeof(way.key));
	before = way;
	r = pp_frame_read(&way, data, size, MOST, &f);
	assert(f.need <= PP_FRAME_HEAD + MOST);
	if (r == -EAGAIN)
		assert(f.need > size);
	if (r)
		assert(memcmp(&way, &before, sizeof(way)) == 0);
	else
		assert((const uint8_t *)f.text + f.len == data + f.need && f.len <= MOST && f.len);
}

/* What we write ourselves comes back, and not when one bit of it is another. */
static void round_trip(const uint8_t *data, size_t size)
{
	struct pp_frame_way out, in, other;
	uint8_t bytes[PP_FRAME_HEAD + MOST];
	static const uint8_t nonce[2][PP_FRAME_NONCE] = {{1}, {2}};
	struct pp_frame f;
	size_t head, at = data[0] % PP_FRAME_CODE;

	if (size > MOST)
		return;
	pp_frame_keys("token", nonce[0], nonce[1], &out, &other);
	in = out;
	head = pp_frame_head(&out, (const char *)data, size, bytes);
	memcpy(bytes + head, data, size);
	bytes[PP_FRAME_LENGTH + at] ^= 1;
	assert(pp_frame_read(&in, bytes, head + size, MOST, &f) == -EBADMSG);
	bytes[PP_FRAME_LENGTH + at] ^= 1;
	assert(pp_frame_read(&in, bytes, head + size, MOST, &f) == 0);
	assert(f.len == size && memcmp(f.text, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_frame_greeting g = {0};
	uint8_t bytes[PP_FRAME_GREETING];

	if (pp_frame_greeting_read(data, size, &g) == 0) {
		assert(g.version == PP_CHANNEL_VERSION);
		pp_frame_greet(&g, bytes);
		assert(memcmp(bytes, data, sizeof(bytes)) == 0);
	}
	frame(data, size, false);
	frame(data, size, true);
	if (size)
		round_trip(data, size);
	return 0;
}
