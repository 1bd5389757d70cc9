/* SPDX-License-Identifier: Apache-2.0 */
/* What look needs beside the facts: addresses of interfaces, libibverbs' own list, reasons. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/agent_look.h"
#include "node/ask_verbs.h"
#include "base/banned.h"

enum { LISTED = 64, PORT_ACTIVE = 4 }; /* IBV_PORT_ACTIVE */

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

static bool wanted(const struct pp_look *l, const char *name)
{
	return name && (!l->asked->device || !strcmp(l->asked->device, name));
}

/* Its first active port, or the one that was asked for. 0: none. */
static int64_t listed_port(const struct pp_look *l, const json_t *device)
{
	const json_t *port;
	int64_t number, state;
	size_t i;

	json_array_foreach(json_object_get(device, "ports"), i, port)
	{
		if (pp_answer_i64(port, "port", &number) || pp_answer_i64(port, "state", &state) ||
		    number < 1 || number > 255)
			continue;
		if (l->asked->port ? number == l->asked->port : state == PORT_ACTIVE)
			return number;
	}
	return 0;
}

static bool is_software(void)
{
	struct pp_verbs v;
	struct pp_error err;

	return !pp_verbs_load(&v, &err) && pp_verbs_are_software(&v);
}

static const struct pp_object *gpu_for(const struct pp_look *l, unsigned int i)
{
	const struct pp_object *g = NULL;
	unsigned int n = l->node->facts.count[PP_GPU];

	for (i = n ? i % n + 1 : 0; i; i--)
		g = pp_object_next(&l->node->facts, PP_GPU, g);
	return g;
}

static void write_listed(const struct pp_look *l, const json_t *device, int64_t port,
			 unsigned int i, struct pp_json *out)
{
	const char *name = pp_answer_str(device, "name");
	const struct pp_object *gpu = gpu_for(l, i);
	char id[PP_AGENT_TEXT];

	(void)snprintf(id, sizeof(id), "virtual/%s", name);
	pp_json_object(out, NULL);
	pp_json_str(out, "device", name);
	pp_json_str(out, "hca", id);
	pp_json_bool(out, "simulated", is_software());
	pp_json_i64(out, "numa", -1);
	pp_json_i64(out, "pci_mbytes", -1);
	pp_json_i64(out, "port", port);
	pp_json_i64(out, "port_mbps", -1);
	if (gpu) {
		pp_json_str(out, "gpu", gpu->id);
		pp_json_str(out, "gpu_uuid", pp_fact_str_or(gpu, PP_F_GPU_UUID, NULL));
		pp_json_str(out, "gpu_name", pp_fact_str_or(gpu, PP_F_GPU_NAME, NULL));
	}
	pp_json_end_object(out);
}

unsigned int pp_look_listed(const struct pp_look *l, struct pp_json *out)
{
	struct pp_answer a;
	const json_t *device;
	unsigned int n = 0;
	int64_t port;
	size_t i;

	/* where the kernel has RDMA devices the facts have them; asking may load modules */
	if (!is_software() || pp_ask_verbs_devices(l->node->src, &a))
		return 0;
	json_array_foreach(json_object_get(a.data, "devices"), i, device)
	{
		port = listed_port(l, device);
		if (n == LISTED || !port || !wanted(l, pp_answer_str(device, "name")))
			continue;
		if (n && !l->asked->all_rails)
			break;
		write_listed(l, device, port, n++, out);
	}
	pp_answer_done(&a);
	return n;
}

void pp_look_nothing(const struct pp_look *l, struct pp_json *out)
{
	const struct pp_object *h = NULL;
	char text[400];
	size_t len = 0;

	if (!l->node->facts.count[PP_HCA]) {
		pp_json_str(out, "none", "no RDMA device");
		return;
	}
	while ((h = pp_object_next(&l->node->facts, PP_HCA, h)) && len < sizeof(text) / 2)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.40s (%.24s)",
					len ? ", " : "", h->id,
					pp_fact_str_or(h, PP_F_HCA_NAME, "no RDMA device"));
	if (l->asked->device || l->asked->port) {
		char why[512];

		(void)snprintf(why, sizeof(why), "no hca '%.60s' with such a port; there is: %s",
			       l->asked->device ? l->asked->device : "", text);
		pp_json_str(out, "none", why);
		return;
	}
	pp_json_str(out, "none", "no hca has an ACTIVE port");
}
