/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/ini.h"

static int one(void *arg, const char *section, const char *key, const char *value,
	       unsigned int line, struct pp_error *err)
{
	unsigned int *last = arg;

	(void)err;
	assert(section && *section && !key == !value);
	assert(line >= *last && (!value || strlen(value) <= 8192));
	*last = line;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_error err = {0};
	unsigned int last = 0;
	int r = pp_ini_parse("seed", (const char *)data, size, one, &last, &err);

	assert(!r || (r < 0 && err.code == r && err.text[0]));
	return 0;
}
