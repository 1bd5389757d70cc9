/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_kprobes: which probes a tracer wants and what each fetches, as definitions for tracefs.
 * Tables say which functions and which members; BTF says where those are. What this kernel does not
 * have is left out.
 */
#ifndef PP_TRACE_KPROBE_H
#define PP_TRACE_KPROBE_H

#include "trace/btf.h"
#include "trace/event.h"
#include "trace/tracefs.h"

enum { PP_KPROBES = 96, PP_KPROBE_TEXT = 2048 };

struct pp_kprobe {
	char event[24];	    /* its name in the group: "a3e", "b1" */
	char suffix;	    /* of the instance that listens: 'a' or 'b' */
	bool user, returns; /* in a program's library; at a function's return */
	enum pp_event_kind kind;
	enum pp_surface by;
	char symbol[48];
	char module[64];	   /* B: the driver whose structure it reads; "" none */
	char filter[48];	   /* "" none */
	char text[PP_KPROBE_TEXT]; /* the definition */
};

struct pp_kprobes {
	struct pp_kprobe item[PP_KPROBES];
	unsigned int n;
};

/* A. -ENOENT when this kernel has none of the functions: no RDMA core is loaded. @btf may be NULL.
 */
int pp_kprobes_live(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err);
/*
 * A function of A that the kernel has and that is not probed: its module was loaded meanwhile, so
 * registrations may have passed unseen. NULL: all are watched.
 */
const char *pp_kprobes_unwatched(const struct pp_kprobes *k);
/* B. -ENOENT as above; needs @btf. */
int pp_kprobes_self(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err);
/* The library's: @path of a libibverbs. -ENOENT: it has none of the calls. */
int pp_kprobes_library(struct pp_kprobes *k, const struct pp_tracefs *t, const char *path,
		       struct pp_error *err);

/* By the event's name; NULL. */
const struct pp_kprobe *pp_kprobe_find(const struct pp_kprobes *k, const char *event, size_t len);

/* The n-th argument of a function at its entry ("$arg2", "%si"); NULL on an unknown architecture.
 */
const char *pp_kprobe_argument(const struct pp_tracefs *t, bool user, int n);

#endif
