/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd streams over file descriptors, as a sink and a tap of bundle/ustar.h. Written with a
 * content checksum; read with a bound on the window and on the bytes that come out, so that a
 * small file cannot fill the memory.
 */
#ifndef PP_BUNDLE_ZST_H
#define PP_BUNDLE_ZST_H

#include "bundle/ustar.h"

struct pp_zst_writer; /* opaque */
struct pp_zst_reader; /* opaque */

/* @fd is borrowed by both. -ENOMEM. */
int pp_zst_writer_new(int fd, struct pp_zst_writer **ret, struct pp_error *err);
struct pp_sink pp_zst_sink(struct pp_zst_writer *w);
/* Ends the frame. */
int pp_zst_finish(struct pp_zst_writer *w, struct pp_error *err);
struct pp_zst_writer *pp_zst_writer_free(struct pp_zst_writer *w); /* returns NULL */

/* @max_bytes bounds what comes out. */
int pp_zst_reader_new(int fd, uint64_t max_bytes, struct pp_zst_reader **ret, struct pp_error *err);
/* Its read gives -EBADMSG (damaged, cut, not zstd), -EFBIG (too much comes out, window too large),
 * or what read(2) gave. */
struct pp_tap pp_zst_tap(struct pp_zst_reader *r);
struct pp_zst_reader *pp_zst_reader_free(struct pp_zst_reader *r); /* returns NULL */

#endif
