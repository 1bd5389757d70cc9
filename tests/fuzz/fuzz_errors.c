/* SPDX-License-Identifier: Apache-2.0 */
/* raw.errors of a recording. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "node/source_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct pp_record *record = NULL;
	const struct pp_entry *entries;
	size_t n = 0;

	if (pp_record_new((size_t)4 << 20, &record))
		abort();
	(void)pp_store_parse_errors(text, record);
	entries = pp_record_entries(record, &n);
	for (size_t i = 0; i < n; i++)
		assert(pp_path_normal(entries[i].path));
	pp_record_free(record);
	free(text);
	return 0;
}
