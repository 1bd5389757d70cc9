/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users call their programs, control groups and buffers: private to bundle/scrub*.c. A name
 * that is not on a list becomes a hash of it, equal ones equal ones; nothing of it is looked for
 * elsewhere, since anybody may name his process as a driver is called.
 */
#ifndef PP_BUNDLE_SCRUB_PROGRAM_H
#define PP_BUNDLE_SCRUB_PROGRAM_H

#include "base/buf.h"
#include "bundle/scrub_map.h"

/* A process's name ("comm"). Both return how many names were replaced. */
size_t pp_scrub_program(const struct pp_scrub_map *m, const char *name, size_t len,
			struct pp_buf *out);
/* A path of a control group or a program, word by word: "/user.slice/a.scope". */
size_t pp_scrub_parts(const struct pp_scrub_map *m, const char *path, size_t len,
		      struct pp_buf *out);
/*
 * The text of bufinfo (trace/buffer.h has its grammar): names of buffers go, and every line whose
 * shape the kernel does not write.
 */
size_t pp_scrub_bufinfo(const struct pp_scrub_map *m, const char *text, size_t len,
			struct pp_buf *out);

#endif
