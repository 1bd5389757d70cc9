/* SPDX-License-Identifier: Apache-2.0 */
/* A token file's content: what passes is a token. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rdma/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char token[PP_TOKEN_MOST + 1] = "before";
	struct pp_error err = {0};
	int r = pp_token_parse((const char *)data, size, token, &err);

	if (r)
		assert(r == -EINVAL && err.text[0] && strcmp(token, "before") == 0);
	else
		assert(pp_token_check(token, &err) == 0 && strlen(token) <= size);
	return 0;
}
