/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observer: an LD_AUDIT library that writes down which memory a program registers with an
 * RDMA device, how, and what came of it. It sees calls that go by symbols (linked, dlsym, dlvsym);
 * it is blind to DevX, to verbs that libmlx5 makes inline, and to static programs.
 *
 * It lives in a link namespace of its own, with a libc of its own: what it calls leaves the
 * program's errno alone, and the program's errno is read through the program's own libc. It never
 * changes an argument, a result or errno, holds no descriptor open, prints nothing, allocates
 * nothing, and costs nothing where no registration is made. Part of no layer: libc only.
 *
 *   audit.c   the dynamic linker's questions      call.c    the calls that are watched
 *   memory.c  whose memory an address is          base.c    the program's errno
 *   line.c    one record, one write(2)
 */
#ifndef PP_PLUGIN_OBSERVE_H
#define PP_PLUGIN_OBSERVE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One JSON record while it is made; what does not fit is cut whole, and the record says so. */
struct observe_line {
	char text[2048];
	size_t len;
	bool cut;
};

/* {"call": @call, "pid", "tid", "at_ns" */
void observe_line_start(struct observe_line *l, const char *call);
void observe_line_text(struct observe_line *l, const char *key, const char *value);
void observe_line_number(struct observe_line *l, const char *key, int64_t value);
void observe_line_hex(struct observe_line *l, const char *key, uint64_t value);
void observe_line_true(struct observe_line *l, const char *key);
/* Appends the record to this process's file; a failure loses the record, never more. */
void observe_line_write(struct observe_line *l);

/*
 * Takes the folder from PEERPATH_OBSERVE. False: it names none, and nothing is to be watched.
 * Files there: "<host>-<pid>.jsonl", mode 0600.
 */
bool observe_line_setup(void);

uint64_t observe_now(void); /* CLOCK_MONOTONIC, ns */

/*
 * Writes "memory": "host" (the processor reads it), "gpu" (a mapping of NVIDIA's device), "managed"
 * (one that both use), "reserved" (addresses without memory of the host: where CUDA is in use, its
 * device memory), "unknown" (not mapped); and the mapping's rights and file.
 */
void observe_memory_kind(struct observe_line *l, const void *address);
/* Exporter and size of a dma-buf descriptor, from fdinfo; the members are absent where it has none.
 */
void observe_memory_dmabuf(struct observe_line *l, int fd);

/* The program's libc was loaded. */
void observe_base_seen(struct link_map *map);
/* errno of the calling thread, in the program's libc; 0 where it cannot be read. */
int observe_base_errno(void);

/* What a binding of @symbol to @real is to be: a function that watches, or @real itself. */
uintptr_t observe_call_bind(const char *symbol, uintptr_t real);

#endif
