/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libibverbs says, in three questions, so that a call that blocks costs only what comes
 * after it: the library itself, the list of devices, each device opened and queried. Opening and
 * querying are reads. The questions load kernel modules when ib_core is not loaded (RDMA netlink
 * is opened): the caller asks the last two only when it is.
 */
#ifndef PP_NODE_ASK_VERBS_H
#define PP_NODE_ASK_VERBS_H

#include "node/ask.h"

/* "verbs": {"path", "real", "reg_dmabuf_mr"}. -ENOMEM only, as all of these. */
int pp_ask_verbs_library(struct pp_source *s, struct pp_answer *ret);

/* "verbs-list": {"devices": ["mlx5_0", ...]} */
int pp_ask_verbs_list(struct pp_source *s, struct pp_answer *ret);

/*
 * "verbs-devices": {"devices": [{"name", "open_errno", "vendor_part_id", "max_mr_size", "max_mr",
 * "fw_ver", "ports": [{"port", "active_mtu", "state", "max_msg_bytes"}]}]}; what could not be
 * queried is absent.
 */
int pp_ask_verbs_devices(struct pp_source *s, struct pp_answer *ret);

/* The object of @device in an answer of the last; NULL when absent. */
const json_t *pp_verbs_device(const struct pp_answer *a, const char *device);
/* Bytes of the active MTU of a port of it; -ENOENT. */
int pp_verbs_active_mtu(const json_t *device, int64_t port, int64_t *ret);

#endif
