/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma_getaddrinfo(): getaddrinfo(3) in the words of queue pairs and port spaces.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* An address of a subnet manager's world, which RoCE has no use for. */
enum { FAMILY_IB = 27 };

static void ask(const struct rdma_addrinfo *hints, struct addrinfo *ret)
{
	bool passive = hints->ai_flags & RAI_PASSIVE;

	*ret = (struct addrinfo){.ai_family = hints->ai_family};
	if (passive)
		ret->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ret->ai_flags |= AI_NUMERICHOST;
	if (hints->ai_qp_type == IBV_QPT_UD)
		ret->ai_socktype = SOCK_DGRAM;
	else if (hints->ai_qp_type)
		ret->ai_socktype = SOCK_STREAM;
	if (hints->ai_port_space == RDMA_PS_TCP)
		ret->ai_protocol = IPPROTO_TCP;
	else if (hints->ai_port_space == RDMA_PS_UDP || hints->ai_port_space == RDMA_PS_IPOIB)
		ret->ai_protocol = IPPROTO_UDP;
}

static bool copy(const struct sockaddr *from, socklen_t len, struct sockaddr **ret,
		 socklen_t *ret_len)
{
	*ret = malloc(len);
	if (!*ret)
		return false;
	memcpy(*ret, from, len);
	*ret_len = len;
	return true;
}

static bool copy_name(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return !from || *ret;
}

/* 0 or what getaddrinfo() answers. */
static int translate(const struct addrinfo *ai, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo *rai)
{
	bool datagram = ai->ai_socktype == SOCK_DGRAM || ai->ai_protocol == IPPROTO_UDP, done;

	rai->ai_family = ai->ai_family;
	rai->ai_qp_type = hints->ai_qp_type ? hints->ai_qp_type
			  : datagram	    ? IBV_QPT_UD
					    : IBV_QPT_RC;
	rai->ai_port_space = hints->ai_port_space ? hints->ai_port_space
			     : datagram		  ? RDMA_PS_UDP
						  : RDMA_PS_TCP;
	if (hints->ai_flags & RAI_PASSIVE) {
		rai->ai_flags = RAI_PASSIVE;
		done = copy(ai->ai_addr, ai->ai_addrlen, &rai->ai_src_addr, &rai->ai_src_len) &&
		       copy_name(ai->ai_canonname, &rai->ai_src_canonname);
	} else {
		done = copy(ai->ai_addr, ai->ai_addrlen, &rai->ai_dst_addr, &rai->ai_dst_len) &&
		       copy_name(ai->ai_canonname, &rai->ai_dst_canonname);
	}
	return done ? 0 : EAI_MEMORY;
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo *rai)
{
	struct addrinfo want, *found;
	int r;

	ask(hints, &want);
	r = getaddrinfo(node, service, &want, &found);
	if (r)
		return r;
	r = translate(found, hints, rai);
	freeaddrinfo(found);
	return r;
}

/* Nothing to look up: the hints are the answer. */
static int repeat(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	return !hints->ai_dst_len || copy(hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr,
					  &rai->ai_dst_len)
		       ? 0
		       : EAI_MEMORY;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	struct rdma_addrinfo *rai;
	int r;

	if (!node && !service && !hints)
		return soft_cm_fail(EINVAL);
	if (!hints)
		hints = &none;
	if (hints->ai_flags & RAI_SA)
		return soft_cm_fail(EOPNOTSUPP);
	if (hints->ai_family == FAMILY_IB)
		return EAI_FAMILY;
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return soft_cm_fail(ENOMEM);
	r = node || service ? look_up(node, service, hints, rai) : repeat(hints, rai);
	if (!r && !rai->ai_src_len && hints->ai_src_len &&
	    !copy(hints->ai_src_addr, hints->ai_src_len, &rai->ai_src_addr, &rai->ai_src_len))
		r = EAI_MEMORY;
	if (r) {
		rdma_freeaddrinfo(rai);
		return r;
	}
	*res = rai;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
