/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing one definition. Private to trace/kprobe*.c.
 */
#ifndef PP_TRACE_KPROBE_PARTS_H
#define PP_TRACE_KPROBE_PARTS_H

#include "trace/kprobe.h"

/* What a probe fetches; a table ends with no name. */
struct pp_kprobe_field {
	const char *name;  /* in the event's text */
	const char *param; /* the function's argument, by its name */
	const char *type;  /* the structure that it points to; NULL: the argument itself */
	const char
		*inner;	  /* it points to this member of @type (container_of); NULL: to its start */
	const char *path; /* the member that is fetched */
};

/* Of an entry of the RDMA core's lists that is a region's. */
extern const struct pp_kprobe_field pp_kprobe_entry[];

struct pp_kprobe_writer {
	const struct pp_tracefs *tracefs;
	struct pp_btf *btf; /* NULL: none */
	struct pp_kprobe *probe;
	const char *function, *module; /* of the function; "vmlinux" for the kernel's own */
	bool full;		       /* the definition did not fit */
};

/* Begins a probe behind the last one of @k, which counts it when it is done; NULL: no room. */
struct pp_kprobe *pp_kprobe_add(struct pp_kprobes *k, struct pp_kprobe_writer *w, char suffix,
				bool returns, const char *function, const char *module);
void pp_kprobe_write(struct pp_kprobe_writer *w, const char *fmt, ...) PP_PRINTF(2, 3);
/* Those that BTF can place. */
void pp_kprobe_fields(struct pp_kprobe_writer *w, const struct pp_kprobe_field *fields);
/* The probed function's argument of this name; NULL: BTF does not know it. */
const char *pp_kprobe_named(const struct pp_kprobe_writer *w, const char *name);
/* Drivers that are there now. */
void pp_kprobe_drivers_find(struct pp_btf *btf, struct pp_kprobe_drivers *ret);
/* Which driver owns the region. */
void pp_kprobe_owner(struct pp_kprobe_writer *w);
/*
 * What the memory of a region is, as @driver's structure says it: its kind alone, or with @whole
 * the buffer too, whose pointers are followed also where there are none (slow). false: BTF does not
 * know it.
 */
bool pp_kprobe_umem(struct pp_kprobe_writer *w, const char *driver, bool whole);
/* Only regions: the kernel keeps queue pairs and others in the same lists. */
void pp_kprobe_filter(struct pp_kprobe *p, struct pp_btf *btf);

#endif
