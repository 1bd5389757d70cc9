/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of struct pp_endpoint share; for them alone.
 */
#ifndef PP_RDMA_ENDPOINT_PARTS_H
#define PP_RDMA_ENDPOINT_PARTS_H

#include "rdma/endpoint.h"

/*
 * One line for a verb that failed with @code (an errno, either sign; 0: the library set none):
 * device, call, name of the error, and what is known to help. Returns the negative errno.
 */
int pp_endpoint_fails(const char *device, const char *call, int code, struct pp_error *err);

/* Makes all queue pairs and brings them to INIT; what was made is in @e also after an error. */
int pp_endpoint_make_qps(struct pp_endpoint *e, struct pp_error *err);
/* Packet numbers of a queue pair start somewhere else each time. */
uint32_t pp_endpoint_random_psn(void);
int pp_endpoint_modify(const struct pp_endpoint *e, unsigned int qp, struct ibv_qp_attr *attr,
		       int mask, const char *state, struct pp_error *err);

enum ibv_mtu pp_endpoint_mtu(unsigned int bytes); /* 0: no MTU of InfiniBand's */

#endif
