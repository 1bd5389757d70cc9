/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection line: "Channel CC/K : A[x] -> B[y] [send] via NET/<net>/<dev>(p)/GDRDMA/Shared".
 *
 * It is printed when a connection is set up, before memory is registered: what it says was
 * intended for that end and direction. The name of a network may hold blanks and slashes, so
 * everything behind "via" is read from the right.
 */
#ifndef PP_NCCL_CHANNEL_H
#define PP_NCCL_CHANNEL_H

#include "nccl/match.h"
#include "nccl/version.h"

enum pp_nccl_transport {
	PP_NCCL_VIA_NET,
	PP_NCCL_VIA_COLLNET,
	PP_NCCL_VIA_P2P,
	PP_NCCL_VIA_MNNVL, /* NVLink between hosts */
	PP_NCCL_VIA_SHM,
};

enum pp_nccl_direction { PP_NCCL_SEND, PP_NCCL_RECEIVE, PP_NCCL_BOTH };

struct pp_nccl_channel {
	enum pp_nccl_transport transport;
	enum pp_nccl_direction direction; /* BOTH: the line names none (P2P, shared memory) */
	uint32_t channel;
	int connection;		     /* 0 ring and tree, 1 send/recv, -1 not printed (old) */
	uint32_t from, to;	     /* ranks; equal for COLLNET */
	struct pp_nccl_span way;     /* what stands behind "via" */
	struct pp_nccl_span network; /* of NET and COLLNET; else the words behind "via" */
	int device;		     /* index in the network's list, -1 none */
	int proxy;		     /* rank of the PXN proxy, -1 none */
	bool gdr, pci, shared;
	int oldest, newest; /* narrowed by the form */
};

/* False when it is no connection line (the topology lists begin with "Channel" too). */
bool pp_nccl_channel_read(struct pp_nccl_span message, struct pp_nccl_channel *ret);

/* The rank whose process prints it. */
uint32_t pp_nccl_channel_owner(const struct pp_nccl_channel *c);
const char *pp_nccl_transport_name(enum pp_nccl_transport t);

#endif
