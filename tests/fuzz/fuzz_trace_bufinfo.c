/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of bufinfo: what is read holds together, and where it is whole, scrubbed it is read as
 * the same objects with the same devices.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "bundle/scrub_program.h"
#include "trace/buffer.h"

static void scrubbed(const char *text, size_t size, const struct pp_buffers *before)
{
	static struct pp_scrub_map *map;
	struct pp_buf out = PP_BUF(16 << 20);
	struct pp_buffers after;

	if (!map && pp_scrub_map_new(&map))
		return;
	(void)pp_scrub_bufinfo(map, text, size, &out);
	assert(!out.failed);
	assert(!pp_buffers_parse(pp_buf_text(&out), out.len, &after));
	assert(after.report.state == PP_SURFACE_READ && after.n == before->n &&
	       after.n_attached == before->n_attached);
	for (size_t i = 0; i < after.n; i++)
		assert(after.item[i].size == before->item[i].size &&
		       after.item[i].inode == before->item[i].inode &&
		       !strcmp(after.item[i].exporter, before->item[i].exporter));
	pp_buffers_done(&after);
	pp_buf_done(&out);
}

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
	if (b.report.state == PP_SURFACE_READ)
		scrubbed((const char *)data, size, &b);
	pp_buffers_done(&b);
	return 0;
}
