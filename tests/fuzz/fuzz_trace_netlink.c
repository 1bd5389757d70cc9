/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of objects (one byte), then bytes as recvmsg() would give them. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/resource_parts.h"

/* What was written is JSON, of as many objects as were counted. */
static void check(const struct pp_buf *out, unsigned int count)
{
	json_t *array = json_loads(pp_buf_text(out), 0, NULL);

	assert(array && json_array_size(array) == count);
	json_decref(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum pp_resource_kind kind = size ? data[0] % PP_RESOURCE_KINDS : PP_RESOURCE_MR;
	size_t len = size ? size - 1 : 0;
	void *bytes = malloc(len ? len : 1); /* aligned as the kernel's are */
	struct pp_buf out = PP_BUF((size_t)16 << 20);
	struct pp_json j = PP_JSON(&out, false);
	struct pp_resource_dump d = {.kind = kind, .json = &j};
	unsigned int n = 0;
	int r;

	if (!bytes)
		abort();
	if (len)
		memcpy(bytes, data + 1, len);
	pp_json_array(&j, NULL);
	pp_resource_messages(&d, bytes, len);
	pp_json_end_array(&j);
	check(&out, d.count);
	pp_buf_done(&out);
	out = PP_BUF((size_t)16 << 20);
	j = PP_JSON(&out, false);
	pp_json_array(&j, NULL);
	r = pp_resource_decode(kind, bytes, len, &j, &n);
	assert(r == 0 || r == -EBADMSG);
	pp_json_end_array(&j);
	check(&out, n);
	pp_buf_done(&out);
	free(bytes);
	return 0;
}
