/* SPDX-License-Identifier: Apache-2.0 */
/* What look needs beside the facts: addresses of interfaces, and libibverbs' own list. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/agent_look.h"
#include "node/ask_verbs.h"
#include "base/banned.h"

/* 0 is best; -1: no address to use. */
static int rank(const struct sockaddr *a)
{
	const struct sockaddr_in6 *six;

	if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return -1;
	if (a->sa_family == AF_INET)
		return 0;
	six = (const struct sockaddr_in6 *)(const void *)a;
	return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 2 : 1;
}

int pp_look_address(const char *netdev, char ret[PP_LOOK_ADDRESS])
{
	struct ifaddrs *list;
	int best = 3, its;

	if (getifaddrs(&list))
		return -errno;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		its = strcmp(i->ifa_name, netdev) == 0 ? rank(i->ifa_addr) : -1;
		if (its < 0 || its >= best)
			continue;
		if (!getnameinfo(i->ifa_addr,
				 i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
								   : sizeof(struct sockaddr_in6),
				 ret, PP_LOOK_ADDRESS, NULL, 0, NI_NUMERICHOST))
			best = its;
	}
	freeifaddrs(list);
	return best < 3 ? 0 : -ENOENT;
}

static bool is_software(void)
{
	struct pp_verbs v;
	struct pp_error err;

	return !pp_verbs_load(&v, &err) && pp_verbs_are_software(&v);
}

bool pp_look_listed(const struct pp_look *l, struct pp_answer *answer,
		    const char *ret[PP_LOOK_LISTED + 1])
{
	const json_t *device;
	const char *name;
	size_t n = 0, i;

	/* asking may load modules: only where the answer cannot be the kernel's */
	if (l->node->facts.count[PP_HCA] || !is_software() ||
	    pp_ask_verbs_list(l->node->src, answer))
		return false;
	json_array_foreach(json_object_get(answer->data, "devices"), i, device)
	{
		name = json_string_value(device);
		if (name && n < PP_LOOK_LISTED)
			ret[n++] = name;
	}
	ret[n] = NULL;
	return n > 0;
}
