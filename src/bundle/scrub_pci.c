/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/scrub_pci.h"

#include <string.h>

#include "base/banned.h"

/* PCI Express Base Specification, 7.6.3 (headers) and 7.9.3 (serial number). */
enum { FIRST = 0x100, ID_SERIAL = 0x0003, SERIAL_AT = 4, SERIAL_LEN = 8, STEPS_MAX = 960 };

void pp_scrub_config(uint8_t *config, size_t len)
{
	size_t at = FIRST;
	uint32_t header;

	for (int steps = 0; steps < STEPS_MAX && at >= FIRST && at + 4 <= len; steps++) {
		header = (uint32_t)config[at] | (uint32_t)config[at + 1] << 8 |
			 (uint32_t)config[at + 2] << 16 | (uint32_t)config[at + 3] << 24;
		if (header == 0 || header == UINT32_MAX)
			return;
		if ((header & 0xffff) == ID_SERIAL && at + SERIAL_AT < len)
			memset(config + at + SERIAL_AT, 0,
			       len - at - SERIAL_AT < SERIAL_LEN ? len - at - SERIAL_AT
								 : SERIAL_LEN);
		at = header >> 20 & 0xffc;
	}
}
