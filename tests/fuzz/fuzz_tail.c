/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that is written in pieces and truncated now and then, as the input says; and what a
 * restart recalls. A line that was written in one go into a file that was not touched is heard.
 */
#include "fuzz.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/tail.h"

struct heard {
	size_t lines;
	bool marker;
};

static const char MARKER[] = "\nthe line that must be heard\n";

static int each(void *ctx, const struct pp_tail_line *line, uint64_t skipped)
{
	struct heard *h = ctx;

	(void)skipped;
	assert(line->len && line->len <= PP_TAIL_LINE && line->text[line->len] == '\0');
	h->lines++;
	h->marker |= line->len == sizeof(MARKER) - 3 && !memcmp(line->text, MARKER + 1, line->len);
	return 0;
}

static void listen_to(struct pp_tails *t, const char *const *globs, const char *recalled,
		      struct heard *h)
{
	*h = (struct heard){0};
	assert(!pp_tails_read(t, globs, recalled, each, h));
}

/* First byte of each piece: 0 truncate, 1 start anew with what was kept, else bytes to append. */
static void play(int fd, struct pp_tails *t, const char *const *globs, const uint8_t *data,
		 size_t size)
{
	struct heard h;

	for (size_t at = 0; at < size;) {
		size_t n = data[at++];

		if (n == 0) {
			(void)!ftruncate(fd, 0);
		} else if (n == 1) {
			struct pp_buf PP_AUTO_BUF kept = PP_BUF(1 << 16);

			pp_tails_write(t, &kept);
			pp_tails_done(t);
			listen_to(t, globs, pp_buf_text(&kept), &h);
			continue;
		} else {
			n = n < size - at ? n : size - at;
			(void)!write(fd, data + at, n);
			at += n;
		}
		listen_to(t, globs, NULL, &h);
	}
	listen_to(t, globs, NULL, &h);
	(void)!write(fd, MARKER, sizeof(MARKER) - 1);
	listen_to(t, globs, NULL, &h);
	assert(h.marker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pp_tails t;
	char path[64], *text = pp_fuzz_text(data, size);
	const char *const globs[] = {path, NULL};
	int fd = memfd_create("log", MFD_CLOEXEC);
	struct heard h;

	if (!text || fd < 0) {
		free(text);
		return 0;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)fcntl(fd, F_SETFL, O_APPEND);
	listen_to(&t, globs, text, &h); /* anything may be recalled */
	pp_tails_done(&t);
	listen_to(&t, globs, NULL, &h);
	play(fd, &t, globs, data, size < 4096 ? size : 4096);
	pp_tails_done(&t);
	(void)close(fd);
	free(text);
	return 0;
}
