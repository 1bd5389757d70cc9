/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/fdinfo/N of a dma-buf: "key:\tvalue" lines. The name comes last and is what its owner
 * wrote, line breaks too: of each key the first line counts.
 */
#include <errno.h>
#include <string.h>

#include "trace/process.h"
#include "base/parse.h"
#include "base/banned.h"

enum field { INODE, SIZE, COUNT, EXPORTER, FIELDS };

static const char *const keys[FIELDS] = {
	[INODE] = "ino:", [SIZE] = "size:", [COUNT] = "count:", [EXPORTER] = "exp_name:"};

/* The value of one line without its blanks; false when it does not fit. */
static bool value(const char *line, size_t len, char *buf, size_t size)
{
	if (len >= size)
		return false;
	memcpy(buf, line, len);
	buf[len] = '\0';
	memmove(buf, pp_trim(buf), strlen(pp_trim(buf)) + 1);
	return true;
}

static int take(struct pp_process_buffer *b, enum field f, const char *text)
{
	switch (f) {
	case INODE:
		return pp_parse_u64(text, 0, UINT64_MAX, &b->inode);
	case SIZE:
		return pp_parse_u64(text, 0, UINT64_MAX, &b->size);
	case COUNT:
		return pp_parse_u64(text, 0, INT64_MAX, &b->count);
	case EXPORTER:
		if (!*text || strlen(text) >= sizeof(b->exporter))
			return -EBADMSG;
		memcpy(b->exporter, text, strlen(text) + 1);
		return 0;
	case FIELDS:
		break;
	}
	return -EBADMSG;
}

int pp_fdinfo_parse(const char *text, size_t len, struct pp_process_buffer *ret)
{
	struct pp_process_buffer b = *ret;
	const char *end = text + len, *stop;
	bool seen[FIELDS] = {0};
	char word[64];

	for (const char *line = text; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			stop = end;
		for (unsigned int f = 0; f < FIELDS; f++) {
			size_t n = strlen(keys[f]);

			if (seen[f] || (size_t)(stop - line) < n || memcmp(line, keys[f], n) != 0)
				continue;
			seen[f] = true;
			if (!value(line + n, (size_t)(stop - line) - n, word, sizeof(word)) ||
			    take(&b, (enum field)f, word))
				return -EBADMSG;
		}
	}
	if (!seen[SIZE] || !seen[EXPORTER])
		return -EBADMSG;
	b.has_info = true;
	*ret = b;
	return 0;
}
