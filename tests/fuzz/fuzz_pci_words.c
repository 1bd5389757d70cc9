/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of sysfs: speeds, widths, ranges of CPUs, regions. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "node/numa.h"
#include "node/pci_attributes.h"

enum { RANGES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct pp_range ranges[RANGES];
	int n = pp_range_parse(text, ranges, RANGES);

	assert(n <= RANGES);
	for (int i = 0; i < n; i++)
		assert(ranges[i].first <= ranges[i].last);
	assert(pp_pci_speed_parse(text) >= -1);
	assert(pp_pci_width_parse(text) >= -1 && pp_pci_width_parse(text) <= 32);
	(void)pp_pci_largest_bar(text);
	free(text);
	return 0;
}
