/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/kmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its own size: a byte read beyond it is seen. */
	char *record = malloc(size ? size : 1);
	unsigned int number = 0;
	struct pp_kmsg msg;
	struct pp_bdf bdf;
	int r;

	if (!record)
		abort();
	memcpy(record, data, size);
	r = pp_kmsg_parse(record, size, &msg);
	free(record);
	if (r)
		return 0;
	assert(strnlen(msg.text, sizeof(msg.text)) < sizeof(msg.text));
	assert(msg.level < 8 && msg.time_us >= 0);
	assert(!msg.device[0] || !pp_bdf_parse_kernel(msg.device, &bdf));
	for (const char *p = msg.text; *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 0x7f);
	/* What has an Xid's number is an Xid's message. */
	if (!pp_kmsg_xid(msg.text, &number, &bdf))
		assert(pp_kmsg_classify(msg.text) == PP_KMSG_XID);
	return 0;
}
