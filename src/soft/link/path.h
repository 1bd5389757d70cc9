/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_path: the way to a remote end, made from an address vector.
 */
#ifndef SOFT_LINK_PATH_H
#define SOFT_LINK_PATH_H

#include "soft/wire/gid.h"
#include "soft/wire/icrc.h"

struct soft_path {
	struct soft_icrc_flow flow; /* both ends and the source port, which gives entropy to ECMP */
	uint8_t traffic_class;	    /* DSCP and ECN: the TOS byte of IPv4 */
	uint8_t hop_limit;	    /* TTL */
	uint8_t sender;	     /* the link's: which of its sending sockets has the source port */
	uint32_t flow_label; /* IPv6: kept, not sent; the kernel makes one of each flow */
};

#endif
