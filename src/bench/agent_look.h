/* SPDX-License-Identifier: Apache-2.0 */
/* Private to bench/agent_look*.c. */
#ifndef PP_BENCH_AGENT_LOOK_H
#define PP_BENCH_AGENT_LOOK_H

#include "bench/agent_state.h"
#include "node/node.h"
#include "rdma/users.h"

enum { PP_LOOK_ADDRESS = 96 };

struct pp_look {
	const struct pp_look_command *asked;
	struct pp_node *node;
	const struct pp_answer *users;
};

/* An address of an interface, IPv4 before IPv6, "fe80::1%eth0" at worst. -ENOENT. */
int pp_look_address(const char *netdev, char ret[PP_LOOK_ADDRESS]);

/* Ends for devices that only libibverbs lists; returns how many were written. */
unsigned int pp_look_listed(const struct pp_look *l, struct pp_json *out);

/* "none": why there is no end. */
void pp_look_nothing(const struct pp_look *l, struct pp_json *out);

#endif
