/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of sockets, and the GIDs that they are to a device. Pure.
 */
#ifndef SOFT_CM_ADDRESS_H
#define SOFT_CM_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "soft/wire/gid.h"

/* Bytes of it; 0: neither IPv4 nor IPv6, or NULL. */
socklen_t soft_cm_address_length(const struct sockaddr *a);
/* No address but "any": 0.0.0.0, ::. */
bool soft_cm_address_any(const struct sockaddr *a);
bool soft_cm_address_is_loopback(const struct sockaddr *a);
uint16_t soft_cm_address_port(const struct sockaddr *a); /* big-endian; 0: not an IP address */
void soft_cm_address_set_port(struct sockaddr_storage *a, uint16_t port);
bool soft_cm_address_same(const struct sockaddr *a, const struct sockaddr *b); /* and port */
struct soft_gid soft_cm_address_gid(const struct sockaddr *a);
/* IPv4 in IPv6's clothes, as a socket of both families reports it, becomes IPv4. */
void soft_cm_address_plain(struct sockaddr_storage *a);
/* What "any" means to a client: the loopback address. */
void soft_cm_address_loopback(struct sockaddr_storage *a);

#endif
