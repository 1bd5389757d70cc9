/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	uint64_t u = 0;
	int64_t i = 0;
	pp_ns ns = 0;
	bool yes;

	if (!pp_parse_u64(text, 3, 1000, &u))
		assert(u >= 3 && u <= 1000);
	if (!pp_parse_i64(text, -5, 5, &i))
		assert(i >= -5 && i <= 5);
	if (!pp_parse_hex(text, 0xffff, &u))
		assert(u <= 0xffff);
	if (!pp_parse_size(text, 1 << 20, &u))
		assert(u <= 1 << 20);
	if (!pp_parse_duration(text, PP_SECOND, &ns))
		assert(ns >= 0 && ns <= PP_SECOND);
	(void)pp_parse_bool(text, &yes);
	assert(!pp_version_compare(text, text));
	pp_sanitize(text, false);
	assert(pp_is_text(text, strlen(text)));
	(void)pp_trim(text);
	free(text);
	return 0;
}
