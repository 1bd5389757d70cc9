/* SPDX-License-Identifier: Apache-2.0 */
/* The input as gzip, and as the text that gzip would have held. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/kconfig.h"

enum { MAX = 1 << 20 };

static void look(const char *text)
{
	static const char *const names[] = {"KPROBE_EVENTS", "DMA_SHARED_BUFFER", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char value = pp_kconfig_value(text, names[i], false);

		assert(!value || strchr("ymn=", value));
		assert(pp_kconfig_value(text, names[i], true) == (value ? value : 'n'));
	}
	(void)pp_kconfig_whole(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), *inflated = NULL;
	int r;

	look(text);
	free(text);
	r = pp_kconfig_inflate(data, size, MAX, &inflated);
	assert(!r || r == -EBADMSG || r == -EFBIG);
	if (!r) {
		assert(strlen(inflated) <= MAX);
		look(inflated);
	}
	free(inflated);
	return 0;
}
