/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of kernel structures from BTF: /sys/kernel/btf/vmlinux and, on top of it, one file a
 * module. They become fetch arguments of a probe (Documentation/trace/kprobetrace.rst), so that no
 * offset is written down here. A module without BTF (built by DKMS, mostly) has no layouts:
 * -ENOENT.
 */
#ifndef PP_TRACE_BTF_H
#define PP_TRACE_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct pp_btf;	    /* all that was opened */
struct pp_btf_file; /* one of them */

/* The kernel's own. -ENOENT where there is none; one line in @err. */
int pp_btf_open(struct pp_btf **ret, struct pp_error *err);
struct pp_btf *pp_btf_free(struct pp_btf *b); /* returns NULL */

/* Of a module; the kernel's own for "vmlinux". Opened once. NULL: it has none. */
struct pp_btf_file *pp_btf_of(struct pp_btf *b, const char *module);

/*
 * The fetch argument for @path ("attach->dmabuf->exp_name", "res.id") from the structure @type that
 * begins @start bytes behind what @base fetches: "+8(+16($arg1)):string". Its type is the member's;
 * pointers to char and arrays of it are strings, other pointers x64. -ENOENT: no such type or
 * member; -ENOSPC.
 */
int pp_btf_fetch(struct pp_btf_file *btf, const char *type, long start, const char *path,
		 const char *base, char *ret, size_t size);

/* Bytes from the beginning of @type to the member (no pointers on the way). -ENOENT. */
int pp_btf_offset(struct pp_btf_file *btf, const char *type, const char *path, long *ret);

/* Which argument of the function has this name: 1, 2, ... -ENOENT. */
int pp_btf_argument(struct pp_btf_file *btf, const char *function, const char *name);

/* Does this module, or the kernel below it, have the function? */
bool pp_btf_has(struct pp_btf_file *btf, const char *function);

/* Value of an enumerator. -ENOENT. */
int pp_btf_enumerator(struct pp_btf_file *btf, const char *type, const char *name, int64_t *ret);

/*
 * A driver's region: the structure of this module that holds a struct ib_mr and a pointer to a
 * struct ib_umem (mlx5_ib_mr: ibmr and umem; irdma_mr: ibmr and region). -ENOENT.
 */
struct pp_btf_region {
	char type[64], mr[64], umem[64];
};
int pp_btf_region(struct pp_btf_file *module, struct pp_btf_region *ret);

#endif
