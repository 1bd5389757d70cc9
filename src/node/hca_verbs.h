/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libibverbs says of one RDMA device: does it list it, and did opening it work.
 */
#ifndef PP_NODE_HCA_VERBS_H
#define PP_NODE_HCA_VERBS_H

#include "node/ask.h"
#include "node/hca.h"

/* Does ibv_get_device_list() name the device? 1, 0, -1 when it did not answer. */
int pp_hca_listed(const struct pp_node *n, const char *name);

/* Sets hca.uverbs_access. @access: the answer "devices"; @uverbs: name of its node. */
void pp_hca_set_access(struct pp_hca *h, const struct pp_answer *access, const char *uverbs);

#endif
