/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "trace/buffer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_buffers b;
	size_t attached = 0;
	int r = pp_buffers_parse((const char *)data, size, &b);

	assert(r == 0 || r == -EBADMSG);
	assert(b.n <= PP_BUFFERS_MAX);
	if (r) {
		assert(!b.item && !b.attached && !b.n);
		return 0;
	}
	assert(b.report.state == PP_SURFACE_READ || b.report.why[0]);
	for (size_t i = 0; i < b.n; i++) {
		assert(b.item[i].exporter[0]);
		assert((size_t)b.item[i].first + b.item[i].n_attached <= b.n_attached);
		attached += b.item[i].n_attached;
	}
	assert(attached == b.n_attached);
	for (size_t i = 0; i < b.n_attached; i++)
		assert(memchr(b.attached[i], '\0', sizeof(b.attached[i])));
	pp_buffers_done(&b);
	return 0;
}
