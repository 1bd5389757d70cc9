/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a control channel's other end is: text to host and port, host to addresses of sockets.
 */
#ifndef PP_RDMA_LOCATION_H
#define PP_RDMA_LOCATION_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"

enum { PP_LOCATION_ADDRESSES = 8 };

struct pp_location {
	char host[256]; /* "": every address */
	uint16_t port;
};

struct pp_location_list {
	unsigned int n;
	struct sockaddr_storage at[PP_LOCATION_ADDRESSES];
	socklen_t size[PP_LOCATION_ADDRESSES];
};

/*
 * "HOST", "HOST:PORT", ":PORT", "[V6]", "[V6]:PORT", and an IPv6 address without brackets, which
 * has no port then. @port stands for one that is not given. -EINVAL.
 */
int pp_location_parse(const char *text, uint16_t port, struct pp_location *ret,
		      struct pp_error *err);

/*
 * At most PP_LOCATION_ADDRESSES, in the order in which to try them. A name server that does not
 * answer is waited for until @deadline: what is no number is looked up in a child. -EHOSTUNREACH
 * (no such name), -ETIMEDOUT, -EINTR.
 */
int pp_location_resolve(const struct pp_location *address, pp_ns deadline, bool (*stopped)(void),
			struct pp_location_list *ret, struct pp_error *err);

#endif
