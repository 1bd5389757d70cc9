/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private names that do something; private.c exports them under every private version.
 */
#ifndef SOFT_ABI_PRIVATE_H
#define SOFT_ABI_PRIVATE_H

#include "soft/verbs_object.h"

/* pyverbs calls it. */
int soft_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			int *type);

#endif
