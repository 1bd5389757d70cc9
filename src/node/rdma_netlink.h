/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA netlink (NETLINK_RDMA, client NLDEV): what the RDMA core says of itself. Opening the
 * socket loads ib_core when it is not loaded: the caller asks only when it is.
 */
#ifndef PP_NODE_RDMA_NETLINK_H
#define PP_NODE_RDMA_NETLINK_H

#include "node/ask.h"

/* "rdma-netlink": {"netns_mode": "shared" | "exclusive"}. -ENOMEM only. */
int pp_ask_rdma_netlink(struct pp_source *s, struct pp_answer *ret);

#endif
