/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.json: what is accepted is sorted, and writes and reads back as itself. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/manifest.h"

static void round_trip(const struct pp_manifest *m)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_MANIFEST_BYTES_MAX);
	struct pp_manifest *again;
	struct pp_error err = {0};

	for (size_t i = 1; i < m->n; i++)
		assert(strcmp(m->items[i - 1].path, m->items[i].path) < 0);
	if (pp_manifest_write(m, &text, &err))
		abort();
	if (pp_manifest_parse(text.data, text.len, &again, &err))
		abort();
	if (pp_manifest_compare(m, again, &err))
		abort();
	pp_manifest_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct pp_manifest *m;
	struct pp_error err = {0};

	if (!pp_manifest_parse(text, size, &m, &err)) {
		round_trip(m);
		pp_manifest_free(m);
	} else {
		assert(err.text[0] && err.code);
	}
	free(text);
	return 0;
}
