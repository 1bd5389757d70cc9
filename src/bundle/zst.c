/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/zst.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/fd.h"
#include "base/banned.h"

enum {
	LEVEL = 6,
	WINDOW_LOG_MAX = 23, /* 8 MiB: what levels up to 19 use */
	CHUNK = 64 << 10,
};

struct pp_zst_writer {
	ZSTD_CCtx *z;
	int fd;
	char out[CHUNK];
};

struct pp_zst_reader {
	ZSTD_DCtx *z;
	int fd;
	uint64_t given, max;
	bool started, inside; /* inside a frame */
	ZSTD_inBuffer in;
	char bytes[CHUNK];
};

static int out_of_memory(struct pp_error *err)
{
	return pp_error_set(err, -ENOMEM, "out of memory");
}

int pp_zst_writer_new(int fd, struct pp_zst_writer **ret, struct pp_error *err)
{
	struct pp_zst_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return out_of_memory(err);
	w->fd = fd;
	w->z = ZSTD_createCCtx();
	if (!w->z || ZSTD_isError(ZSTD_CCtx_setParameter(w->z, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->z, ZSTD_c_checksumFlag, 1))) {
		pp_zst_writer_free(w);
		return out_of_memory(err);
	}
	*ret = w;
	return 0;
}

static int compress(struct pp_zst_writer *w, const void *bytes, size_t len, ZSTD_EndDirective how,
		    struct pp_error *err)
{
	ZSTD_inBuffer in = {bytes, len, 0};
	char text[128];
	size_t left;
	int r;

	do {
		ZSTD_outBuffer out = {w->out, sizeof(w->out), 0};

		left = ZSTD_compressStream2(w->z, &out, &in, how);
		if (ZSTD_isError(left))
			return pp_error_set(err, -EIO, "zstd: %s", ZSTD_getErrorName(left));
		r = pp_fd_write(w->fd, w->out, out.pos);
		if (r)
			return pp_error_set(err, r, "write: %s",
					    pp_errno_text(r, text, sizeof(text)));
	} while (in.pos < in.size || (how == ZSTD_e_end && left));
	return 0;
}

static int sink_write(void *arg, const void *bytes, size_t len, struct pp_error *err)
{
	return compress(arg, bytes, len, ZSTD_e_continue, err);
}

struct pp_sink pp_zst_sink(struct pp_zst_writer *w)
{
	return (struct pp_sink){.write = sink_write, .arg = w};
}

int pp_zst_finish(struct pp_zst_writer *w, struct pp_error *err)
{
	return compress(w, NULL, 0, ZSTD_e_end, err);
}

struct pp_zst_writer *pp_zst_writer_free(struct pp_zst_writer *w)
{
	if (!w)
		return NULL;
	(void)ZSTD_freeCCtx(w->z);
	free(w);
	return NULL;
}

int pp_zst_reader_new(int fd, uint64_t max_bytes, struct pp_zst_reader **ret, struct pp_error *err)
{
	struct pp_zst_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return out_of_memory(err);
	r->fd = fd;
	r->max = max_bytes;
	r->z = ZSTD_createDCtx();
	if (!r->z ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(r->z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
		pp_zst_reader_free(r);
		return out_of_memory(err);
	}
	*ret = r;
	return 0;
}

static int refused(size_t code, struct pp_error *err)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
		return pp_error_set(err, -EFBIG,
				    "compressed with a window over %d MiB: refused (compress it "
				    "without --long or --ultra)",
				    1 << (WINDOW_LOG_MAX - 20));
	if (ZSTD_getErrorCode(code) == ZSTD_error_prefix_unknown)
		return pp_error_set(err, -EBADMSG, "not zstd data");
	return pp_error_set(err, -EBADMSG, "damaged: %s", ZSTD_getErrorName(code));
}

/* More compressed bytes; in.size 0 at the end of the file. */
static int refill(struct pp_zst_reader *r, struct pp_error *err)
{
	char text[128];
	ssize_t n;

	do
		n = read(r->fd, r->bytes, sizeof(r->bytes));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return pp_error_set(err, -errno, "read: %s",
				    pp_errno_text(errno, text, sizeof(text)));
	r->in = (ZSTD_inBuffer){r->bytes, (size_t)n, 0};
	return 0;
}

static int tap_read(void *arg, void *buf, size_t size, size_t *ret_len, struct pp_error *err)
{
	struct pp_zst_reader *r = arg;
	ZSTD_outBuffer out = {buf, size, 0};
	size_t hint;
	int e;

	while (!out.pos) {
		if (r->in.pos == r->in.size) {
			e = refill(r, err);
			if (e)
				return e;
			if (!r->in.size && !r->started)
				return pp_error_set(err, -EBADMSG, "an empty file");
			if (!r->in.size && r->inside)
				return pp_error_set(err, -EBADMSG,
						    "cut: the compressed data ends early");
			if (!r->in.size)
				break;
		}
		hint = ZSTD_decompressStream(r->z, &out, &r->in);
		if (ZSTD_isError(hint))
			return refused(hint, err);
		r->started = true;
		r->inside = hint != 0;
	}
	r->given += out.pos;
	if (r->given > r->max)
		return pp_error_set(err, -EFBIG,
				    "decompresses to more than %" PRIu64 " MiB: refused",
				    r->max >> 20);
	*ret_len = out.pos;
	return 0;
}

struct pp_tap pp_zst_tap(struct pp_zst_reader *r)
{
	return (struct pp_tap){.read = tap_read, .arg = r};
}

struct pp_zst_reader *pp_zst_reader_free(struct pp_zst_reader *r)
{
	if (!r)
		return NULL;
	(void)ZSTD_freeDCtx(r->z);
	free(r);
	return NULL;
}
