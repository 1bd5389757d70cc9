/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an observer's file: whatever comes is counted or malformed, and gives a well-formed
 * record. */
#include "fuzz.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "nccl/observation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_observed o = {0};
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&text, false);
	json_t *record;

	for (const uint8_t *end = data + size; data < end;) {
		const uint8_t *stop = memchr(data, '\n', (size_t)(end - data));
		size_t len = (size_t)((stop ? stop : end) - data);

		(void)pp_observed_add(&o, (const char *)data, len);
		data += len + 1;
	}
	assert(o.n_errors <= PP_OBSERVED_ERRORS && o.n_devices <= PP_OBSERVED_DEVICES);
	pp_json_object(&j, NULL);
	pp_observed_write(&j, "observed", &o);
	pp_json_end_object(&j);
	record = json_loadb(text.data, text.len, 0, NULL);
	assert(record);
	json_decref(record);
	return 0;
}
