/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has an RDMA device open: a look at every process's descriptors for /dev/infiniband/uverbsN.
 */
#ifndef PP_RDMA_USERS_H
#define PP_RDMA_USERS_H

#include "node/ask.h"

/*
 * Asks "uverbs-users": data {"users": [{"pid", "uverbs"}], "cut", "processes", "unreadable",
 * "host_pid_namespace"}; cut: the list is full. -ENOMEM only.
 */
int pp_users_ask(struct pp_source *s, struct pp_answer *ret);

/* First process that holds @uverbs ("uverbs0"), 0 when none was seen. */
int64_t pp_users_pid(const struct pp_answer *a, const char *uverbs);

/* Could every process be looked at? If not, why: text for people in @why. */
bool pp_users_whole(const struct pp_answer *a, char *why, size_t size);

#endif
