/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this process open the device nodes of RDMA and of the GPUs? access(2) on each, nothing is
 * opened: permission bits and mounts show, a device cgroup's refusal does not.
 */
#ifndef PP_NODE_DEVICE_ACCESS_H
#define PP_NODE_DEVICE_ACCESS_H

#include "node/ask.h"

/*
 * "devices": {"infiniband_errno", "nodes": {"/dev/infiniband/uverbs0": errno, ...}}; errno 0 =
 * readable and writable. -ENOMEM only.
 */
int pp_ask_device_access(struct pp_source *s, struct pp_answer *ret);

/*
 * errno of access() on /dev/infiniband/<uverbs>, 0 when this process may open it, ENOENT when
 * this process has no such node; negative when the answer does not say.
 */
int pp_device_access_uverbs(const struct pp_answer *a, const char *uverbs);

#endif
