/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrubber on one file, as text, as an answer, as PCI configuration space and as gzip: the
 * result is a record of the same shape.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "bundle/scrub.h"

static const char *const paths[] = {
	"/etc/x",
	"/proc/sys/kernel/hostname",
	"/proc/net/if_inet6",
	"/sys/devices/pci0000:00/0000:00:00.0/config",
	"/sys/class/dmi/id/product_serial",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_record *in = NULL, *out = NULL;
	struct pp_scrub_counts counts;
	struct pp_error err = {0};
	size_t n_in, n_out;

	if (size > 1 << 16 || pp_record_new((size_t)8 << 20, &in))
		return 0;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (pp_record_put(in, PP_ENTRY_FILE, paths[i], data, size, 0))
			abort();
	if (pp_record_put(in, PP_ENTRY_ANSWER, "a", data, size, 0))
		abort();
	if (!pp_scrub_record(in, &out, &counts, &err)) {
		(void)pp_record_entries(in, &n_in);
		(void)pp_record_entries(out, &n_out);
		assert(n_out == n_in ||
		       n_out + 1 == n_in); /* an answer that is no JSON is dropped */
	} else {
		assert(err.text[0] && err.code);
	}
	pp_record_free(out);
	pp_record_free(in);
	return 0;
}
