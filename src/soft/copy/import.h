/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_import: an allocation that a sender of this host has shown (copy/export.h), mapped in
 * this process by a GPU's own context, from which that GPU copies what the sender lends. It belongs
 * to the sender's view (copy/shelf.h), and is let go when he withdraws it, or when the view goes
 * with the last copy: a sender that dies leaves its memory to whoever has it mapped.
 *
 * What the sender says is not believed: offsets are checked against what was mapped. Under the
 * engine's lock; it is the GPU's thread that maps.
 */
#ifndef SOFT_COPY_IMPORT_H
#define SOFT_COPY_IMPORT_H

#include "soft/copy/export.h"
#include "soft/copy/mover.h"
#include "soft/copy/source.h"

struct soft_shelf_view;

/* For who asked: 0: it is mapped; -errno: it is not; SOFT_IMPORT_GONE: it is no more. */
enum { SOFT_IMPORT_GONE = 1 };
typedef void soft_import_answer(void *arg, uint32_t number, int what);

struct soft_mapping {
	struct soft_allocation of; /* takes its descriptor */
	uint64_t at;		   /* where it is mapped for the copier */
};

enum soft_import_state { SOFT_IMPORT_ASKED, SOFT_IMPORT_HELD, SOFT_IMPORT_LEAVES };

struct soft_import {
	struct soft_copy ask; /* first */
	struct soft_mapping mapping;
	struct soft_shelf_view *view;
	struct soft_copier *copier;
	uint32_t number;
	enum soft_import_state state;
	bool own;	/* this process's: it is where it is */
	bool allocated; /* and another context of this process owns it (cuda_device.h) */
	bool withdrawn;
	unsigned int users; /* copies under way */
};

/* Maps what another process shows as @number; takes mapping->of.fd. @own: it is ours, and
 * mapping->at is where. -EEXIST, -ENOMEM: nothing comes of it; else it is answered, perhaps at
 * once. */
int soft_import_begin(struct soft_shelf_view *view, struct soft_copier *copier, uint32_t number,
		      const struct soft_mapping *mapping, bool own);
/* Its owner takes it back: answered with SOFT_IMPORT_GONE, at once if there is none. */
void soft_import_withdraw(struct soft_shelf_view *view, uint32_t number);
/* The last user of the view has gone: asks for the release of what it has. */
void soft_imports_release(struct soft_shelf_view *view);

/*
 * @len bytes from @skip on of what @direct names, for a copy by @copier (NULL: to host memory, by
 * the import's own). 0; -ESTALE: taken back; -EXDEV: another GPU has it mapped; -ENOENT: it was
 * never mapped here, or is shorter.
 */
int soft_import_lend(struct soft_shelf_view *view, const struct soft_direct *direct, uint32_t skip,
		     uint32_t len, const struct soft_copier *copier, struct soft_loan *ret);
/* A copy from it begins, and is over; the view is held as well. */
void soft_import_get(struct soft_import *import);
void soft_import_put(struct soft_import *import);

#endif
