/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of struct pp_cm share; for them alone.
 */
#ifndef PP_RDMA_CM_PARTS_H
#define PP_RDMA_CM_PARTS_H

#include "rdma/cm.h"
#include "rdma/cm_library.h"

struct pp_cm {
	struct pp_cm_library lib;
	struct pp_endpoint *e; /* borrowed */
	struct pp_cm_options options;
	struct sockaddr_storage at; /* options.address and port */
	struct pp_cm_channel *channel;
	struct pp_cm_id *listener;	      /* NULL: this end connects */
	struct pp_cm_id *id[PP_ENDPOINT_QPS]; /* one a queue pair */
	bool established[PP_ENDPOINT_QPS];
};

/*
 * In the private data of a request and of its answer: packets have one size in both directions,
 * which is the smaller end's.
 */
struct pp_cm_greeting {
	uint64_t nonce;
	uint32_t qp, mtu; /* bytes */
};
enum { PP_CM_GREETING = 24 };
void pp_cm_greet(uint8_t ret[PP_CM_GREETING], const struct pp_cm_greeting *g);
int pp_cm_greeting_read(const void *bytes, size_t len, struct pp_cm_greeting *ret);

int pp_cm_new(struct pp_endpoint *e, const struct pp_cm_options *options, struct pp_cm **ret,
	      struct pp_error *err);
/* The next event before the deadline; pp_cm_library's ack_event() it. -ETIMEDOUT, -EINTR. */
int pp_cm_next(struct pp_cm *c, const char *doing, struct pp_cm_event **ret, struct pp_error *err);
int pp_cm_fails(const struct pp_cm *c, const char *call, struct pp_error *err);
/* An event that ends the attempt: errno and line. */
int pp_cm_refused(const struct pp_cm *c, const struct pp_cm_event *event, struct pp_error *err);
/* Is the id's device and port the endpoint's? -ENODEV. */
int pp_cm_same_port(const struct pp_cm *c, const struct pp_cm_id *id, struct pp_error *err);
/* Brings queue pair @qp to RTS with the attributes that were agreed on; @mtu: the peer's. */
int pp_cm_to_rts(struct pp_cm *c, struct pp_cm_id *id, unsigned int qp, uint32_t mtu,
		 struct pp_error *err);
struct pp_cm_parameters pp_cm_parameters(const struct pp_cm *c, unsigned int qp);

#endif
