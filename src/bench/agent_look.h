/* SPDX-License-Identifier: Apache-2.0 */
/* Private to bench/agent_look*.c. */
#ifndef PP_BENCH_AGENT_LOOK_H
#define PP_BENCH_AGENT_LOOK_H

#include "bench/agent_state.h"
#include "node/node.h"
#include "rdma/choose.h"
#include "rdma/users.h"

enum { PP_LOOK_ADDRESS = 96, PP_LOOK_LISTED = 64 };

struct pp_look {
	const struct pp_look_command *asked;
	struct pp_node *node;
	const struct pp_answer *users;
	const char *const *listed; /* by libibverbs, when the kernel shows nothing; NULL */
};

/* An address of an interface, IPv4 before IPv6, "fe80::1%eth0" at worst. -ENOENT. */
int pp_look_address(const char *netdev, char ret[PP_LOOK_ADDRESS]);

/*
 * Names of devices that only libibverbs lists: the software device without a made /sys. They lie in
 * @answer; false where the kernel shows devices itself, or the library is another.
 */
bool pp_look_listed(const struct pp_look *l, struct pp_answer *answer,
		    const char *ret[PP_LOOK_LISTED + 1]);

#endif
