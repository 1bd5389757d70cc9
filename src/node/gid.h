/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_gid: a global identifier of an RDMA port: 16 bytes that look like an IPv6 address.
 */
#ifndef PP_NODE_GID_H
#define PP_NODE_GID_H

#include <stdbool.h>
#include <stdint.h>

struct pp_gid {
	uint8_t raw[16];
};

enum { PP_GID_TEXT = 46 }; /* bytes that hold any formatted GID */

/* "fe80:0000:0000:0000:0200:00ff:fe00:0100" as sysfs writes it, or any IPv6 notation. -EINVAL. */
int pp_gid_parse(const char *text, struct pp_gid *ret);
/* Shortest IPv6 notation, "::ffff:10.0.0.1" for a mapped IPv4 address; returns @text. */
const char *pp_gid_format(const struct pp_gid *gid, char text[PP_GID_TEXT]);

bool pp_gid_is_zero(const struct pp_gid *gid);
bool pp_gid_is_ipv4(const struct pp_gid *gid);	     /* ::ffff:0:0/96 */
bool pp_gid_is_link_local(const struct pp_gid *gid); /* fe80::/10 */

#endif
