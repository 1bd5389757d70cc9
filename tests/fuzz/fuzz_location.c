/* SPDX-License-Identifier: Apache-2.0 */
/* Where a peer is, as an option or a launcher's variable says it. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/location.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct pp_location l = {.port = 77};
	struct pp_error err = {0};
	int r = pp_location_parse(text, 5, &l, &err);

	if (r)
		assert(r == -EINVAL && err.text[0] && l.port == 77);
	else
		assert(strlen(l.host) < sizeof(l.host) && !strpbrk(l.host, "/ \n[]"));
	free(text);
	return 0;
}
