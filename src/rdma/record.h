/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the bytes of a node's own bundle travel: made in a child of the node's process, sent in
 * parts, at most PP_PARTY_RECORD of them taken.
 */
#ifndef PP_RDMA_RECORD_H
#define PP_RDMA_RECORD_H

#include "rdma/party.h"

/* In the child; @arg: the struct pp_party_service. Exit status. */
int pp_record_serve(struct pp_channel *c, const void *arg);
/* The coordinator's end; free(*ret). As pp_party_record(). */
int pp_record_receive(struct pp_channel *c, bool (*stopped)(void), char **ret, size_t *ret_len,
		      struct pp_error *err);

#endif
