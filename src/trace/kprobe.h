/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_kprobes: which probes a tracer wants and what each fetches, as definitions for tracefs.
 * Tables say which functions and which members; BTF says where those are. What this kernel does not
 * have is left out.
 *
 * A registration hits as few as can be: where BTF shows the regions of all drivers, two (the region
 * is added, with its memory's kind; it is removed), and one more for a DMA-BUF.
 */
#ifndef PP_TRACE_KPROBE_H
#define PP_TRACE_KPROBE_H

#include "trace/btf.h"
#include "trace/event.h"
#include "trace/tracefs.h"

enum { PP_KPROBES = 96, PP_KPROBE_TEXT = 3072, PP_KPROBE_DRIVERS = 32 };

struct pp_kprobe {
	char event[24];	    /* its name in the group: "a3e", "b1"; a tracepoint's own name */
	const char *point;  /* of a tracepoint that the kernel has; NULL: a probe of ours */
	char suffix;	    /* of the instance that listens: 'a' or 'b' */
	bool user, returns; /* in a program's library; at a function's return */
	enum pp_event_kind kind;
	enum pp_surface by;
	char symbol[48];
	char module[64];	   /* the driver whose structure it reads; "" none */
	char filter[48];	   /* "" none */
	char text[PP_KPROBE_TEXT]; /* the definition */
};

/* Modules that use the RDMA core. */
struct pp_kprobe_drivers {
	char name[PP_KPROBE_DRIVERS][64]; /* whose region structure BTF shows */
	unsigned int n;
	bool whole; /* each user of the core has BTF: there is no other driver */
	bool efa;   /* whose driver takes a GPU's memory without a umem */
};

struct pp_kprobes {
	struct pp_kprobe item[PP_KPROBES];
	unsigned int n;
	bool by_umem;			  /* A reads the region's memory where it is added */
	struct pp_kprobe_drivers drivers; /* by_umem: those that are read */
};

/* A. -ENOENT when this kernel has none of the functions: no RDMA core is loaded. @btf may be NULL.
 */
int pp_kprobes_live(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err);
/*
 * A function of A that the kernel has and that is not probed, or a driver whose regions it does not
 * read: its module was loaded meanwhile, so registrations may have passed unseen. NULL: all are
 * watched. @btf as A had it.
 */
const char *pp_kprobes_unwatched(const struct pp_kprobes *k, struct pp_btf *btf);
/*
 * The kernel's own event of an attach, where it has dma_buf:*: A needs no probe there then.
 * -ENOENT: it has none. Before A.
 */
int pp_kprobes_points(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_error *err);
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
