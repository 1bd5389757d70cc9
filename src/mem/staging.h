/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_staging: filling and checking a GPU's memory through two page-locked buffers, one
 * copied while the other is worked on. Private to mem/.
 */
#ifndef PP_MEM_STAGING_H
#define PP_MEM_STAGING_H

#include "mem/memory.h"

struct pp_staging;

int pp_staging_new(struct pp_memory *m, struct pp_staging **ret, struct pp_error *err);
struct pp_staging *pp_staging_free(struct pp_memory *m, struct pp_staging *s); /* returns NULL */

/* As pp_memory_fill() and pp_memory_check(), ranges checked. */
int pp_staging_fill(struct pp_memory *m, struct pp_staging *s, uint64_t offset, uint64_t len,
		    uint64_t seed, struct pp_error *err);
int pp_staging_check(struct pp_memory *m, struct pp_staging *s, uint64_t offset, uint64_t len,
		     uint64_t seed, uint64_t from, struct pp_memory_checked *ret,
		     struct pp_error *err);

#endif
