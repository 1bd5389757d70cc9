/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_endpoint: one end of a pair under test on one port: an opened device, a protection
 * domain, one completion queue, and queue pairs (RC) that go to INIT, RTR, RTS.
 *
 * InfiniBand (LID, or GRH across subnets) and RoCE alike. Only in an agent process: every call
 * goes into a provider. Not thread-safe.
 */
#ifndef PP_RDMA_ENDPOINT_H
#define PP_RDMA_ENDPOINT_H

#include <jansson.h>

#include "base/json.h"
#include "node/verbs.h"

enum { PP_ENDPOINT_QPS = 64, PP_ENDPOINT_DEPTH = 4096 };

struct pp_endpoint_options {
	const char *device; /* as libibverbs knows it */
	uint8_t port;	    /* from 1; 0: 1 */
	/* -1: chosen as gid_table.h says. One that is given makes InfiniBand use a GRH. */
	int gid_index;
	unsigned int qps;		   /* 0: 1 */
	unsigned int depth;		   /* send and receive requests of each; 0: 128 */
	unsigned int mtu;		   /* bytes; 0: the port's active one */
	int traffic_class, sl, pkey_index; /* 0 unless told */
	unsigned int timeout, retries;	   /* 0: 14 (67 ms), 7 */
};

/* What a peer must know to connect one queue pair. */
struct pp_address {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t gid[16];
	unsigned int mtu;	/* bytes */
	unsigned int rd_atomic; /* READs it can take at once */
	bool ethernet;
};

struct pp_endpoint {
	const struct pp_verbs *verbs; /* borrowed */
	/* As they came to be; the device's name is the library's. */
	struct pp_endpoint_options options;
	struct ibv_context *context;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	char gid_type[16]; /* "RoCE v2", "RoCE v1", "IB" */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[PP_ENDPOINT_QPS];
	uint32_t psn[PP_ENDPOINT_QPS];
	unsigned int max_inline;
	unsigned int receives;	/* receive requests of each queue pair: twice the depth */
	unsigned int rd_atomic; /* READs at once of a queue pair, the least since it was opened */
	bool grh;		/* on InfiniBand too: the GID's index was given */
};

/*
 * @err names device, call, errno and what to do (no such device: which there are; port down; GID
 * index empty; MTU larger than the port's). @options' texts are borrowed.
 */
int pp_endpoint_open(const struct pp_verbs *v, const struct pp_endpoint_options *options,
		     struct pp_endpoint *ret, struct pp_error *err);
void pp_endpoint_close(struct pp_endpoint *e);

void pp_endpoint_address(const struct pp_endpoint *e, unsigned int qp, struct pp_address *ret);
/* Brings queue pair @qp to RTS. -EPROTO: link layers differ; MTU: the smaller one is taken. */
int pp_endpoint_connect(struct pp_endpoint *e, unsigned int qp, const struct pp_address *peer,
			struct pp_error *err);
/*
 * Back to RESET and INIT, what is outstanding thrown away, of the completion queue too: after a
 * run that failed. All queue pairs of both ends are reset before one is connected again; addresses
 * have to be exchanged anew, since packet numbers change.
 */
int pp_endpoint_reset(struct pp_endpoint *e, unsigned int qp, struct pp_error *err);

/*
 * What the device said by itself since the last call ("port error", "QP fatal"), one after the
 * other; "" when nothing. Never waits. Returns @text.
 */
const char *pp_endpoint_events(struct pp_endpoint *e, char *text, size_t size);

void pp_address_write(struct pp_json *j, const char *key, const struct pp_address *a);
int pp_address_parse(const json_t *object, struct pp_address *ret, struct pp_error *err);

#endif
