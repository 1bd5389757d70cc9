/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/nccl_conf.h"

static int one(void *arg, const char *name, const char *value)
{
	size_t *n = arg;

	assert(strlen(name) < PP_NCCL_WORD && strlen(value) < PP_NCCL_WORD);
	assert(name[0] != '#' && !strchr(name, '=') && !strchr(name, '\n') && !strchr(value, '\n'));
	return ++*n == 1000 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1);
	size_t n = 0;

	if (!text)
		abort();
	memcpy(text, data, size);
	assert(pp_nccl_conf_parse(text, size, one, &n) == (n == 1000 ? -1 : 0));
	free(text);
	return 0;
}
