/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/ethtool.h"
#include "node/gid.h"
#include "node/hca_driver.h"
#include "node/port_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), word[64], again[PP_GID_TEXT];
	struct pp_gid gid, back;
	int64_t mbps = -1;

	if (!pp_port_state_parse(text, word, sizeof(word)))
		assert(*word && strlen(word) < sizeof(word) && !strpbrk(word, "\x1b\n\t"));
	if (!pp_port_rate_parse(text, &mbps))
		assert(mbps >= 0);
	if (!pp_gid_parse(text, &gid)) {
		assert(!pp_gid_parse(pp_gid_format(&gid, again), &back));
		assert(!memcmp(&gid, &back, sizeof(gid)));
		assert(!pp_gid_is_zero(&gid) || !pp_gid_is_ipv4(&gid));
	}
	(void)pp_ethtool_wanted(text);
	if (*text)
		(void)pp_hca_driver_dmabuf(pp_hca_driver_find("mlx5_core"), text);
	free(text);
	return 0;
}
