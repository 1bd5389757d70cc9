/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_cm: the connections of an endpoint's queue pairs that librdmacm made (-R), in place of
 * addresses exchanged by the control channel: one connection a queue pair.
 *
 * The queue pairs are the endpoint's own; librdmacm finds the path, agrees on packet numbers and
 * tells the attributes. A request carries the run's nonce and its queue pair's index, so that
 * nothing of another run is accepted. Only in an agent process. Not thread-safe.
 */
#ifndef PP_RDMA_CM_H
#define PP_RDMA_CM_H

#include "base/clock.h"
#include "rdma/endpoint.h"

enum { PP_CM_ADDRESS = 64 };

struct pp_cm_options {
	const char *address; /* listen: of this end's port; connect: the peer's; numeric, no port */
	uint16_t port;	     /* listen: 0 any */
	uint64_t nonce;	     /* both ends have the same */
	pp_ns deadline;	     /* monotonic */
	bool (*stopped)(void); /* NULL never */
};

struct pp_cm;

/*
 * An address of the endpoint's port to listen at: of RoCE its GID, IPv4 or routable IPv6; of
 * InfiniBand that of its IPoIB interface, @ipoib ("" or NULL: it has none). -EADDRNOTAVAIL.
 */
int pp_cm_address(const struct pp_endpoint *e, const char *ipoib, char ret[PP_CM_ADDRESS],
		  struct pp_error *err);

/*
 * Listens and returns; pp_cm_accept() then takes one connection for each queue pair. Endpoints
 * are open and not connected.
 */
int pp_cm_listen(struct pp_endpoint *e, const struct pp_cm_options *options, struct pp_cm **ret,
		 uint16_t *ret_port, struct pp_error *err);
/*
 * Queue pairs are in RTS when it returns. -ETIMEDOUT, -EINTR, -ENODEV (the address is another
 * device's). Requests of another run are rejected and do not end it.
 */
int pp_cm_accept(struct pp_cm *c, struct pp_error *err);
/* -ECONNREFUSED: nobody listens; -EACCES: another run; -EHOSTUNREACH; -ENODEV; -ETIMEDOUT. */
int pp_cm_connect(struct pp_endpoint *e, const struct pp_cm_options *options, struct pp_cm **ret,
		  struct pp_error *err);
/* Disconnects; before the endpoint is closed, or to connect again after a reset. Returns NULL. */
struct pp_cm *pp_cm_free(struct pp_cm *c);

#endif
