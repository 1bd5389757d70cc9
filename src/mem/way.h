/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way of registering; private to mem/. Each way is one file with one table; registration.c
 * decides which are tried, and undoes what a way did before it failed.
 */
#ifndef PP_MEM_WAY_H
#define PP_MEM_WAY_H

#include "mem/cuda.h"
#include "mem/registration.h"

/* One pp_register() in flight. All pointers are borrowed. */
struct pp_registering {
	const struct pp_verbs *verbs;
	struct ibv_pd *pd;
	struct pp_memory *memory;
	const struct pp_registration_options *options;
	int access; /* with what the options add */
	bool software;
	struct pp_registered *result;
	enum pp_registration how; /* being tried */
	struct pp_error *err;
	pp_ns start; /* of the attempt in flight */
};

struct pp_way {
	/*
	 * Can it be tried at all? Once, before any segment. -EOPNOTSUPP with nothing in @err: not
	 * here, which is no failure of an automatic choice.
	 */
	int (*ready)(struct pp_registering *g);
	/* Registers segment @i: 0 with @ret_key and @ret_mr, or -errno with a line in @g->err. */
	int (*segment)(struct pp_registering *g, unsigned int i, struct pp_key *ret_key,
		       struct ibv_mr **ret_mr);
	/* Bytes of BAR1 that segment @i takes. */
	uint64_t (*window)(const struct pp_memory_segment *s);
};

extern const struct pp_way pp_way_host, pp_way_dmabuf, pp_way_peermem, pp_way_data_direct;

/*
 * Notes a call about to be made. NULL when the list is full: the other two then only count. errno
 * is cleared: several verbs leave it alone when they fail in the library.
 */
struct pp_attempt *pp_attempt_begin(struct pp_registering *g, const char *call, const char *fmt,
				    ...) PP_PRINTF(3, 4);
/* What it came to: an errno, positive, or a CUresult. @a may be NULL. */
void pp_attempt_end(struct pp_registering *g, struct pp_attempt *a, int error);
void pp_attempt_end_cuda(struct pp_registering *g, struct pp_attempt *a, int code);

/* errno of a verb that gave @mr; 0 when it did. */
int pp_verb_errno(const struct ibv_mr *mr);

/* Fills @g->err: call, errno, what it most probably means here and what to do. Returns -@error. */
int pp_way_refused(struct pp_registering *g, const char *call, int error, uint64_t bytes);
int pp_way_refused_cuda(struct pp_registering *g, const char *call, int code, uint64_t bytes);

/* Registers by a descriptor, however it is done in the end; for dmabuf and data-direct. */
typedef struct ibv_mr *pp_descriptor_verb(struct pp_registering *g, uint64_t offset, size_t len,
					  uint64_t iova, int fd);
int pp_way_by_descriptor(struct pp_registering *g, unsigned int i, const char *call,
			 pp_descriptor_verb *verb, bool whole_pages, struct pp_key *ret_key,
			 struct ibv_mr **ret_mr);
uint64_t pp_way_whole_allocation(const struct pp_memory_segment *s);

#endif
