/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RDMA netlink lists (client NLDEV): regions, protection domains, contexts, queue pairs.
 *
 * Traps (Documentation: rdma-resource(8); behaviour: drivers/infiniband/core/restrack.c, 6.1 and
 * 6.12): the "pid" is the id of the thread that registered, as the reader's PID namespace counts;
 * it is absent when that thread has ended, and for processes outside the namespace. A region
 * without one still has an owner: its domain's thread, or the thread of the domain's context.
 * Drivers that set no length of a DMA-BUF region show 0.
 */
#ifndef PP_TRACE_RESOURCE_H
#define PP_TRACE_RESOURCE_H

#include <stdint.h>

#include "node/ask.h"
#include "trace/surface.h"

enum { PP_RESOURCES_MAX = 1 << 18 }; /* of one kind in all; more is cut */

struct pp_resource_device {
	uint32_t index; /* of netlink */
	char name[64];	/* "mlx5_0" */
};

enum pp_resource_kind { PP_RESOURCE_MR, PP_RESOURCE_PD, PP_RESOURCE_CTX, PP_RESOURCE_QP };

struct pp_resource {
	enum pp_resource_kind kind;
	uint16_t device; /* index into pp_resources.device */
	bool has_parent, has_length, has_keys;
	uint32_t id;	      /* MRN, PDN, CTXN, LQPN */
	uint32_t parent;      /* of a region or queue pair its PDN, of a domain its CTXN */
	uint32_t tid;	      /* 0: not said */
	uint32_t lkey, rkey;  /* has_keys */
	uint64_t length;      /* has_length; bytes */
	char kernel_user[32]; /* a kernel module's own object ("ib_core"); "" for a process's */
};

struct pp_resources {
	struct pp_resource_device *device;
	struct pp_resource *item; /* by device, kind, id */
	size_t n_devices, n;
	struct pp_surface_report resources, keys;
};

/*
 * One message of a dump: appends the members of one object (or of a table of them) to @j as
 * {"id", "parent", "tid", "lkey", ...}. For the helper, and for the fuzzer: @len bytes of hostile
 * attributes. -EBADMSG; *ret_count objects were written.
 */
int pp_resource_decode(enum pp_resource_kind kind, const void *message, size_t len,
		       struct pp_json *j, unsigned int *ret_count);

/* Asks "rdma-resources" (a helper with a deadline); only when an RDMA core is in sight. -ENOMEM. */
int pp_resources_ask(struct pp_source *s, struct pp_answer *ret);
/* -ENOMEM only: what is malformed is left out and the surface is `cut`. */
int pp_resources_read(const struct pp_answer *a, struct pp_resources *ret);
void pp_resources_done(struct pp_resources *r);

/* The object of @kind and @id on @device, or NULL. O(log n). */
const struct pp_resource *pp_resource_find(const struct pp_resources *r, uint16_t device,
					   enum pp_resource_kind kind, uint32_t id);
/* Thread behind a region: its own, its domain's, its context's; 0 none. @ret_by says which had it.
 */
uint32_t pp_resource_thread(const struct pp_resources *r, const struct pp_resource *mr,
			    enum pp_resource_kind *ret_by);

#endif
