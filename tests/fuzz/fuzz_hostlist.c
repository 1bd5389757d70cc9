/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's host lists: bounded work, names that fit, an error's text. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/hostlist.h"

struct seen {
	unsigned int n, most;
};

static bool see(void *arg, const char *name)
{
	struct seen *seen = arg;

	assert(strlen(name) <= PP_HOSTLIST_NAME && !strpbrk(name, "[], \n"));
	return ++seen->n < seen->most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct seen all = {.most = 1000}, first = {.most = 1};
	struct pp_error err = {0};
	int r = pp_hostlist_expand(text, see, &all, &err);

	assert(!r || ((r == -EINVAL || r == -E2BIG) && err.text[0]));
	assert(r || all.n);
	r = pp_hostlist_expand(text, see, &first, &err);
	assert(first.n <= 1 && (first.n == (all.n > 0)));
	free(text);
	return 0;
}
