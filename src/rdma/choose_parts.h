/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding what a user named; for choose.c alone.
 */
#ifndef PP_RDMA_CHOOSE_PARTS_H
#define PP_RDMA_CHOOSE_PARTS_H

#include "rdma/choose.h"

/* Adds to a text what fits. */
void pp_choose_append(char *text, size_t size, const char *fmt, ...) PP_PRINTF(3, 4);

/* *ret or, for a device that only libibverbs knows, *ret_unseen. -ENODEV, -EINVAL. */
int pp_choose_device(const struct pp_node *n, const struct pp_choose_options *o,
		     const struct pp_object **ret, const char **ret_unseen, struct pp_error *err);
int pp_choose_gpu(const struct pp_node *n, const char *name, const struct pp_object **ret,
		  struct pp_error *err);
const struct pp_object *pp_choose_by_name(const struct pp_node *n, const char *name);
const struct pp_object *pp_choose_pair(const struct pp_node *n, const struct pp_object *gpu,
				       const struct pp_object *hca);
/* NULL: not known. */
const char *const *pp_choose_listed(const struct pp_node *n, const struct pp_choose_options *o);
/* Has the node RDMA devices of software alone, or none? */
bool pp_choose_only_software(const struct pp_node *n);

#endif
