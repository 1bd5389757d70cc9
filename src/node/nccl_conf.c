/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nccl_conf.h"

#include <string.h>

#include "base/banned.h"

static void copy(char to[PP_NCCL_WORD], const char *from, size_t len)
{
	if (len >= PP_NCCL_WORD)
		len = PP_NCCL_WORD - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

int pp_nccl_conf_parse(const char *text, size_t len, pp_nccl_conf_handler *handler, void *arg)
{
	char name[PP_NCCL_WORD], value[PP_NCCL_WORD];
	const char *line = text, *end = text + len, *line_end, *equals;
	int r = 0;

	for (; line < end && !r; line = line_end + (line_end < end)) {
		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end)
			line_end = end;
		if (line[0] == '#')
			continue;
		equals = memchr(line, '=', strnlen(line, (size_t)(line_end - line)));
		if (!equals)
			continue;
		copy(name, line, (size_t)(equals - line));
		copy(value, equals + 1, (size_t)(line_end - equals - 1));
		r = handler(arg, name, value);
	}
	return r;
}
