/* SPDX-License-Identifier: Apache-2.0 */
/* Config space of any length. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/pci_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_pci_dev d = {.port_type = -1, .ats = -1, .width = -1, .max_width = -1};
	size_t len = size < PP_CONFIG_BYTES ? size : PP_CONFIG_BYTES;
	uint8_t *config = calloc(1, len + !len);

	if (!config)
		abort();
	if (len)
		memcpy(config, data, len);
	pp_pci_decode(&d, config, len);
	assert(len == PP_CONFIG_BYTES || d.acs_state == PP_ACS_UNREADABLE);
	assert(d.width >= -1 && d.width <= 32 && d.max_width >= -1 && d.max_width <= 32);
	for (unsigned int id = 0; id < 0x100; id++) {
		assert(pp_pci_cap(config, len, (uint8_t)id) < (int)len + 1);
		assert(pp_pci_ext_cap(config, len, (uint16_t)id) < (int)len + 1);
	}
	free(config);
	return 0;
}
