/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of this machine (of this network namespace), for the default devices.
 */
#ifndef SOFT_LINK_HOST_H
#define SOFT_LINK_HOST_H

#include <stdbool.h>

#include "soft/wire/gid.h"

struct soft_host_address {
	char netdev[16]; /* name of the interface */
	unsigned int ifindex, netdev_mtu;
	bool loopback, up;
	uint8_t mac[6]; /* zero: none */
	struct soft_gid gid;
};

/*
 * Addresses that a peer could reach: IPv4 and IPv6, without link-local and without temporary
 * states; loopback included and marked. In the kernel's order, IPv4 first within an interface.
 * Writes at most @max, returns how many, or -errno.
 */
int soft_host_addresses(struct soft_host_address *ret, unsigned int max);

/* RoCE's path MTU for a netdev: the largest of 256..4096 that fits with its headers; 0: none. */
unsigned int soft_host_path_mtu(unsigned int netdev_mtu);

#endif
