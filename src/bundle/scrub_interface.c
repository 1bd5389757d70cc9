/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of network interfaces that hold a MAC address, as systemd makes them when nothing else is
 * known of a card: enx78e7d1ea46da, wlx..., ibx... The address in them becomes the same one as
 * elsewhere, so the name still belongs to its card.
 */
#include <stdio.h>
#include <string.h>

#include "bundle/scrub_text.h"
#include "base/banned.h"

enum { MAC_DIGITS = 12, KIND_MAX = 3 };

/* Length of "enx", "wlx" and the like at @at; 0 for another word. */
static size_t kind_length(const struct pp_scrub_text *s, const char *at)
{
	for (size_t n = 0; n <= KIND_MAX && at + n < s->end && at[n] >= 'a' && at[n] <= 'z'; n++)
		if (n >= 2 && at[n] == 'x')
			return n + 1;
	return 0;
}

size_t pp_scrub_try_interface(struct pp_scrub_text *s, const char *at)
{
	size_t kind = kind_length(s, at), len = kind + MAC_DIGITS;
	uint8_t mac[6] = {0}, before[6];

	if (!kind || (size_t)(s->end - at) < len ||
	    (at + len < s->end && pp_scrub_is_word(at[len])))
		return 0;
	for (size_t i = 0; i < MAC_DIGITS; i++) {
		if (pp_scrub_digit(at[kind + i]) < 0)
			return 0;
		mac[i / 2] = (uint8_t)(mac[i / 2] << 4 | pp_scrub_digit(at[kind + i]));
	}
	memcpy(before, mac, sizeof(before));
	pp_scrub_mac(s->map, mac);
	if (!memcmp(before, mac, sizeof(before)))
		return 0;
	pp_buf_add(s->out, at, kind);
	pp_buf_printf(s->out, "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		      mac[5]);
	s->replaced++;
	return len;
}
