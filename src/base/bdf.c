/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bdf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

/* Hex field of @text up to @len characters. */
static int field(const char *text, size_t len, size_t max_len, uint64_t max, uint64_t *ret)
{
	char digits[16];

	if (!len || len > max_len || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (strspn(digits, "0123456789abcdefABCDEF") != len)
		return -EINVAL;
	return pp_parse_hex(digits, max, ret) ? -EINVAL : 0;
}

static int parse(const char *text, bool need_domain, struct pp_bdf *ret)
{
	const char *dot = strchr(text, '.'), *last, *first;
	uint64_t domain = 0, bus, device, function;

	if (!dot || dot == text)
		return -EINVAL;
	last = memrchr(text, ':', (size_t)(dot - text));
	if (!last)
		return -EINVAL;
	first = memrchr(text, ':', (size_t)(last - text));
	if (!first && need_domain)
		return -EINVAL;
	if (first && field(text, (size_t)(first - text), 8, UINT32_MAX, &domain))
		return -EINVAL;
	if (first && need_domain && first - text < 4)
		return -EINVAL;
	first = first ? first + 1 : text;
	if (field(first, (size_t)(last - first), 2, 0xff, &bus) ||
	    field(last + 1, (size_t)(dot - last - 1), 2, 0x1f, &device) ||
	    field(dot + 1, strlen(dot + 1), 1, 7, &function))
		return -EINVAL;
	*ret = (struct pp_bdf){(uint32_t)domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
	return 0;
}

int pp_bdf_parse(const char *text, struct pp_bdf *ret)
{
	return parse(text, false, ret);
}

int pp_bdf_parse_kernel(const char *text, struct pp_bdf *ret)
{
	return parse(text, true, ret);
}

const char *pp_bdf_format(const struct pp_bdf *bdf, char text[PP_BDF_TEXT])
{
	(void)snprintf(text, PP_BDF_TEXT, "%04x:%02x:%02x.%x", bdf->domain, bdf->bus, bdf->device,
		       bdf->function);
	return text;
}

int pp_bdf_compare(const struct pp_bdf *a, const struct pp_bdf *b)
{
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->bus != b->bus)
		return a->bus < b->bus ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (int)a->function - (int)b->function;
}
