/* SPDX-License-Identifier: Apache-2.0 */
#include "node/port_text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

/* Far above any link; bounds what a made file may claim. */
static const int64_t MAX_GBPS = 100000;

int pp_port_state_parse(const char *text, char *ret, size_t size)
{
	size_t digits = strspn(text, "0123456789"), len;

	if (!digits || strncmp(text + digits, ": ", 2) != 0)
		return -EINVAL;
	text += digits + 2;
	len = strlen(text);
	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("_ <>", text[i]))
			return -EINVAL;
	if (len >= size)
		return -EFBIG;
	memcpy(ret, text, len + 1);
	return 0;
}

int pp_port_rate_parse(const char *text, int64_t *ret_mbps)
{
	size_t whole = strspn(text, "0123456789");
	const char *rest = text + whole;
	char digits[16];
	int64_t gbps, tenths = 0;

	if (!whole)
		return -EINVAL;
	if (whole >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, text, whole);
	digits[whole] = '\0';
	if (rest[0] == '.' && isdigit((unsigned char)rest[1])) {
		tenths = rest[1] - '0';
		rest += 2;
	}
	if (strncmp(rest, " Gb/sec", 7) != 0 || (rest[7] && rest[7] != ' '))
		return -EINVAL;
	if (pp_parse_i64(digits, 0, MAX_GBPS, &gbps))
		return -ERANGE;
	*ret_mbps = gbps * 1000 + tenths * 100;
	return 0;
}
