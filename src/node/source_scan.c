/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scanning: fixed-size reads cut into pieces at a separator. Memory is one read buffer and one
 * piece, whatever the file holds; the piece that a read ends in is carried to the next.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/elf.h"
#include "node/source_store.h"
#include "base/banned.h"

enum { READ_SIZE = 65536 };

struct scanner {
	const struct pp_scan *scan;
	struct pp_buf *kept; /* borrowed */
	size_t len;	     /* of the piece so far, at most PP_SCAN_PIECE - 1 */
	bool last;
	char piece[PP_SCAN_PIECE];
};

ssize_t pp_stream_read(struct pp_stream *in, void *buf, size_t size)
{
	ssize_t n;

	if (in->fd < 0) {
		n = (ssize_t)(in->len - in->pos < size ? in->len - in->pos : size);
		memcpy(buf, in->bytes + in->pos, (size_t)n);
		in->pos += (size_t)n;
		return n;
	}
	do
		n = read(in->fd, buf, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static void add(struct scanner *sc, const char *bytes, size_t len)
{
	size_t room = sizeof(sc->piece) - 1 - sc->len;

	len = len < room ? len : room;
	memcpy(sc->piece + sc->len, bytes, len);
	sc->len += len;
}

static int finish(struct scanner *sc)
{
	enum pp_scan_step step;

	sc->piece[sc->len] = '\0';
	step = sc->scan->filter(sc->scan->arg, sc->piece, sc->len);
	if (step != PP_SCAN_DROP) {
		pp_buf_add(sc->kept, sc->piece, sc->len);
		pp_buf_char(sc->kept, sc->scan->separator);
	}
	sc->last = step == PP_SCAN_LAST;
	sc->len = 0;
	return sc->kept->failed;
}

static int cut(struct scanner *sc, const char *bytes, size_t len)
{
	const char *p = bytes, *end;
	int r;

	while (p < bytes + len && !sc->last) {
		end = memchr(p, sc->scan->separator, (size_t)(bytes + len - p));
		if (!end) {
			add(sc, p, (size_t)(bytes + len - p));
			break;
		}
		add(sc, p, (size_t)(end - p));
		r = finish(sc);
		if (r)
			return r;
		p = end + 1;
	}
	return 0;
}

/* Moves to the section; @ret_len is what may be read from there. */
static void seek_section(struct pp_stream *in, const char *name, uint64_t *ret_len)
{
	uint64_t offset, size;

	if (in->fd >= 0 && !pp_elf_section(in->fd, name, &offset, &size) && offset <= INT64_MAX &&
	    lseek(in->fd, (off_t)offset, SEEK_SET) >= 0)
		*ret_len = size;
}

int pp_stream_scan(struct pp_stream *in, const struct pp_scan *scan, struct pp_buf *kept)
{
	struct scanner *PP_AUTO_FREE sc = malloc(sizeof(*sc));
	char *PP_AUTO_FREE buf = malloc(READ_SIZE);
	uint64_t left = UINT64_MAX, done = 0;
	ssize_t n;
	int r;

	if (!sc || !buf)
		return -ENOMEM;
	sc->scan = scan;
	sc->kept = kept;
	sc->len = 0;
	sc->last = false;
	if (scan->section)
		seek_section(in, scan->section, &left);
	while (left && !sc->last) {
		n = pp_stream_read(in, buf, left < READ_SIZE ? (size_t)left : READ_SIZE);
		if (n <= 0)
			return n < 0 ? (int)n : sc->len ? finish(sc) : 0;
		done += (uint64_t)n;
		left -= (uint64_t)n;
		if (done > scan->max)
			return -EFBIG;
		r = cut(sc, buf, (size_t)n);
		if (r)
			return r;
	}
	return !sc->last && sc->len ? finish(sc) : 0;
}
