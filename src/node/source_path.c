/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as a source takes them, joined; links and ".." never lead above "/". */
#include <errno.h>
#include <string.h>

#include "node/source.h"
#include "base/banned.h"

/* Appends one path component to buf[*len]; ".." removes one. */
static int push(char buf[PP_PATH_MAX], size_t *len, const char *part, size_t n)
{
	if (n == 0 || (n == 1 && part[0] == '.'))
		return 0;
	if (n == 2 && part[0] == '.' && part[1] == '.') {
		while (*len && buf[*len - 1] != '/')
			(*len)--;
		*len -= *len ? 1 : 0;
		return 0;
	}
	if (*len + 1 + n >= PP_PATH_MAX)
		return -ENAMETOOLONG;
	buf[(*len)++] = '/';
	memcpy(buf + *len, part, n);
	*len += n;
	return 0;
}

int pp_path_join(const char *dir, const char *rest, char buf[PP_PATH_MAX])
{
	const char *parts[] = {rest[0] == '/' ? "" : dir, rest};
	char out[PP_PATH_MAX];
	size_t len = 0, n;

	for (size_t i = 0; i < PP_ARRAY_LEN(parts); i++) {
		for (const char *p = parts[i]; *p; p += n + (p[n] == '/')) {
			n = strcspn(p, "/");
			if (push(out, &len, p, n))
				return -ENAMETOOLONG;
		}
	}
	if (!len)
		out[len++] = '/';
	memcpy(buf, out, len);
	buf[len] = '\0';
	return 0;
}
