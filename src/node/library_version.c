/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which version is a library file? By its name, else by what it says of itself in its strings.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/parse.h"
#include "node/library.h"
#include "base/banned.h"

enum { WORD = 64 };

static const size_t MAX_FILE = (size_t)512 << 20;

int pp_library_version_of_name(const char *path, char *buf, size_t size)
{
	const char *name = strrchr(path, '/'), *p;
	size_t len, dots = 0;

	name = name ? name + 1 : path;
	p = strstr(name, ".so.");
	if (!p)
		return -ENOENT;
	p += strlen(".so.");
	len = strspn(p, "0123456789.");
	for (size_t i = 0; i < len; i++)
		dots += p[i] == '.' && i && isdigit((unsigned char)p[i - 1]) &&
			isdigit((unsigned char)p[i + 1]);
	if (p[len] || !isdigit((unsigned char)*p) || dots < 2 || len >= size)
		return -ENOENT;
	memcpy(buf, p, len + 1);
	return 0;
}

struct search {
	const char *marker; /* NULL: a bare version */
	char found[WORD];
	bool differ;
};

/* Start of "N.N.N" that ends the piece, nothing printable before it; NULL. */
static const char *bare(const char *piece, size_t len)
{
	size_t at = len, dots = 0, printable = 0;

	while (at && (isdigit((unsigned char)piece[at - 1]) || piece[at - 1] == '.'))
		dots += piece[--at] == '.';
	/* A compiler may place other constants right before a string. */
	while (printable < 8 && printable < at && isprint((unsigned char)piece[at - 1 - printable]))
		printable++;
	if (dots != 2 || len - at < 5 || !isdigit((unsigned char)piece[at]) ||
	    !isdigit((unsigned char)piece[len - 1]) || strstr(piece + at, "..") ||
	    (printable && printable == at) || printable == 8)
		return NULL;
	return piece + at;
}

static enum pp_scan_step keep_version(void *arg, const char *piece, size_t len)
{
	struct search *s = arg;
	const char *at;
	char word[WORD];
	size_t n;

	if (s->marker) {
		at = memmem(piece, len, s->marker, strlen(s->marker));
		at = at ? at + strlen(s->marker) : NULL;
	} else {
		at = len < 5 ? NULL : bare(piece, len);
	}
	if (!at || !isdigit((unsigned char)*at))
		return PP_SCAN_DROP;
	n = strcspn(at, " \t\n");
	if (n >= sizeof(word) || !pp_is_text(at, n))
		return PP_SCAN_DROP;
	memcpy(word, at, n);
	word[n] = '\0';
	if (s->marker) {
		memcpy(s->found, word, n + 1);
		return PP_SCAN_LAST;
	}
	s->differ = s->differ || (s->found[0] && strcmp(s->found, word) != 0);
	memcpy(s->found, word, n + 1);
	return PP_SCAN_KEEP;
}

int pp_library_version_inside(struct pp_source *s, const char *path, const char *marker, char *buf,
			      size_t size)
{
	struct search search = {.marker = marker};
	const struct pp_scan scan = {.separator = '\0',
				     .max = MAX_FILE,
				     .section = ".rodata",
				     .filter = keep_version,
				     .arg = &search};
	int r = pp_source_scan(s, path, &scan);

	if (r)
		return r;
	if (search.differ)
		return -EEXIST;
	if (!search.found[0] || strlen(search.found) >= size)
		return -ENOENT;
	memcpy(buf, search.found, strlen(search.found) + 1);
	return 0;
}
