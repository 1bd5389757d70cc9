/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to mem/: waiting for a ticket of mem/memory.h.
 */
#ifndef PP_MEM_COPY_H
#define PP_MEM_COPY_H

#include "mem/memory.h"

/* Sleeps until the ticket's copy is done; 0 at once for one without a copy. */
int pp_copy_wait(struct pp_memory *m, struct pp_copy *t, struct pp_error *err);
/* Says what the ticket's last call came to; returns its negative errno. */
int pp_copy_failed(const struct pp_memory *m, const struct pp_copy *t, struct pp_error *err);

#endif
