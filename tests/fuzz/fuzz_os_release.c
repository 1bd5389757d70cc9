/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/os_release.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"PRETTY_NAME", "ID", "VERSION_ID", ""};
	char *text = pp_fuzz_text(data, size);
	char value[16];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!pp_os_release_value(text, keys[i], value, sizeof(value)))
			assert(strnlen(value, sizeof(value)) < sizeof(value));
	free(text);
	return 0;
}
