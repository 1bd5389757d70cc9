/* SPDX-License-Identifier: Apache-2.0 */
#include "node/smi_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { NUMBER_DIGITS = 6 };

bool pp_smi_starts(const char *text, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - text) >= len && !memcmp(text, word, len);
}

const char *pp_smi_skip_blanks(const char *text, const char *end)
{
	while (text < end && isblank((unsigned char)*text))
		text++;
	return text;
}

/* Of a kernel name of an RDMA device. */
static bool is_name_char(char c)
{
	return c && (isalnum((unsigned char)c) || strchr("_.-", c));
}

bool pp_smi_number(const char **text, const char *end, unsigned int max, unsigned int *ret)
{
	const char *p = *text;
	unsigned int v = 0;

	for (; p < end && p - *text < NUMBER_DIGITS && isdigit((unsigned char)*p); p++) {
		v = v * 10 + (unsigned int)(*p - '0');
		if (v > max)
			return false;
	}
	if (p == *text)
		return false;
	*text = p;
	*ret = v;
	return true;
}

/* "mlx5_0", "mlx5_bond_0": their form parts them even when glued to what follows. */
static const char *mlx_end(const char *text, const char *end)
{
	unsigned int n;

	text += strlen("mlx");
	if (!pp_smi_number(&text, end, 99, &n) || text == end || *text++ != '_')
		return NULL;
	if (pp_smi_starts(text, end, "bond_"))
		text += strlen("bond_");
	return pp_smi_number(&text, end, 99999, &n) ? text : NULL;
}

const char *pp_smi_column_end(const char *text, const char *end, unsigned int *ret_n)
{
	const char *p = pp_smi_starts(text, end, "mlx") ? mlx_end(text, end) : NULL;
	bool digit = false;

	*ret_n = 0;
	if (p)
		return p;
	if (pp_smi_starts(text, end, "GPU") || pp_smi_starts(text, end, "NIC")) {
		p = text + 3;
		return pp_smi_number(&p, end, 99999, ret_n) ? p : NULL;
	}
	if (!islower((unsigned char)*text))
		return NULL;
	for (p = text; p < end && is_name_char(*p); p++)
		digit |= isdigit((unsigned char)*p) != 0;
	return digit ? p : NULL;
}

bool pp_smi_is_name(const char *text, const char *end)
{
	bool digit = false;

	if (text == end || end - text >= PP_SMI_NAME_BYTES || !islower((unsigned char)*text))
		return false;
	for (; text < end; text++) {
		if (!is_name_char(*text))
			return false;
		digit |= isdigit((unsigned char)*text) != 0;
	}
	return digit;
}

/* Length of the colour escape at @text, whose first byte may be lost or replaced; 0: none. */
static size_t escape_length(const char *text, const char *end)
{
	const char *p = text;

	if (*p == '\x1b')
		p++;
	else if (pp_smi_starts(p, end, "\xef\xbf\xbd"))
		p += 3;
	if (p == end || *p++ != '[')
		return 0;
	while (p < end && (isdigit((unsigned char)*p) || *p == ';'))
		p++;
	return p < end && *p == 'm' ? (size_t)(p + 1 - text) : 0;
}

char *pp_smi_clean(const char *text, size_t len, size_t *ret_len)
{
	const char *end = text + len;
	char *copy = malloc(len + 1), *to = copy;
	size_t escape;

	while (copy && text < end) {
		escape = escape_length(text, end);
		text += escape;
		if (escape)
			continue;
		if (*text != '\r')
			*to++ = *text == '\n' || *text == '\t' || !iscntrl((unsigned char)*text)
					? *text
					: ' ';
		text++;
	}
	if (copy)
		*to = '\0';
	*ret_len = copy ? (size_t)(to - copy) : 0;
	return copy;
}
