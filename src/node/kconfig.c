/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inflating stops at the bound, whatever the compressed bytes promise; its memory is the bound.
 */
#include "node/kconfig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* input is only read */
#include <zlib.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/banned.h"

static const char PREFIX[] = "CONFIG_";
static const char NOT_SET[] = " is not set";

/* The value when this line speaks of the symbol, else '\0'. */
static char value_in(const char *line, size_t len, const char *name, size_t name_len)
{
	bool comment = len > 2 && line[0] == '#' && line[1] == ' ';
	size_t head = strlen(PREFIX) + name_len;

	line += comment ? 2 : 0;
	len -= comment ? 2 : 0;
	if (len <= head || memcmp(line, PREFIX, strlen(PREFIX)) != 0 ||
	    memcmp(line + strlen(PREFIX), name, name_len) != 0)
		return '\0';
	line += head;
	len -= head;
	if (comment)
		return len == strlen(NOT_SET) && !memcmp(line, NOT_SET, len) ? 'n' : '\0';
	if (line[0] != '=')
		return '\0';
	return len == 2 && strchr("ymn", line[1]) ? line[1] : '=';
}

char pp_kconfig_value(const char *text, const char *name, bool whole)
{
	size_t name_len = strlen(name);
	const char *end;
	char value;

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		value = value_in(line, (size_t)(end - line), name, name_len);
		if (value)
			return value;
	}
	return whole ? 'n' : '\0';
}

bool pp_kconfig_whole(const char *text)
{
	return pp_kconfig_value(text, "RUNTIME_TESTING_MENU", false) != '\0';
}

static int inflate_into(z_stream *z, size_t max, struct pp_buf *out)
{
	unsigned char part[16384];
	int r;

	do {
		z->next_out = part;
		z->avail_out = sizeof(part);
		r = inflate(z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END)
			return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
		pp_buf_add(out, part, sizeof(part) - z->avail_out);
		if (out->failed || out->len > max)
			return out->failed ? out->failed : -EFBIG;
		/* No progress: the input is cut. */
		if (r == Z_OK && !z->avail_in && z->avail_out)
			return -EBADMSG;
	} while (r != Z_STREAM_END);
	return 0;
}

int pp_kconfig_inflate(const void *gz, size_t len, size_t max, char **ret)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(max + 16384 + 1);
	z_stream z = {.next_in = gz, .avail_in = (unsigned int)len};
	int r;

	if (len > PP_KCONFIG_MAX)
		return -EFBIG;
	/* 16: only a gzip header is taken. */
	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return -ENOMEM;
	r = inflate_into(&z, max, &out);
	(void)inflateEnd(&z);
	if (r)
		return r;
	if (!pp_is_text(pp_buf_text(&out), out.len))
		return -EBADMSG;
	pp_buf_add(&out, "", 0);
	if (out.failed)
		return out.failed;
	*ret = pp_take(out.data);
	return 0;
}
