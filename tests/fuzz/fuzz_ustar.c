/* SPDX-License-Identifier: Apache-2.0 */
/* The tar reader: what it hands out is always a safe relative path of a bounded member. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "bundle/ustar.h"

struct feed {
	const uint8_t *data;
	size_t len, at;
};

static int from_feed(void *arg, void *buf, size_t size, size_t *ret_len, struct pp_error *err)
{
	struct feed *f = arg;
	size_t n = f->len - f->at < size ? f->len - f->at : size;

	(void)err;
	if (n)
		memcpy(buf, f->data + f->at, n);
	f->at += n;
	*ret_len = n;
	return 0;
}

static int member(void *arg, const struct pp_member *m, struct pp_error *err)
{
	struct pp_error ignored;

	(void)arg;
	(void)err;
	assert(pp_member_path_check(m->path, &ignored) == 0);
	assert(m->len <= PP_MEMBER_BYTES_MAX);
	assert((m->kind == PP_MEMBER_LINK) == (m->target != NULL));
	assert(m->kind != PP_MEMBER_FILE || m->data[m->len] == '\0');
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size, 0};
	const struct pp_tap tap = {from_feed, &f};
	struct pp_error err = {0};

	if (pp_ustar_read(&tap, member, NULL, &err))
		assert(err.text[0] && err.code);
	return 0;
}
