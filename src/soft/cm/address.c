/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/cm/address.h"

#include <netinet/in.h>
#include <string.h>

#include "base/banned.h"

static const struct sockaddr_in *v4(const struct sockaddr *a)
{
	return (const struct sockaddr_in *)(const void *)a;
}

static const struct sockaddr_in6 *v6(const struct sockaddr *a)
{
	return (const struct sockaddr_in6 *)(const void *)a;
}

socklen_t soft_cm_address_length(const struct sockaddr *a)
{
	if (!a)
		return 0;
	return a->sa_family == AF_INET	  ? sizeof(struct sockaddr_in)
	       : a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : 0;
}

bool soft_cm_address_any(const struct sockaddr *a)
{
	return a->sa_family == AF_INET	  ? v4(a)->sin_addr.s_addr == htonl(INADDR_ANY)
	       : a->sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6(a)->sin6_addr)
					  : true;
}

bool soft_cm_address_is_loopback(const struct sockaddr *a)
{
	return a->sa_family == AF_INET
		       ? ntohl(v4(a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
		       : a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(a)->sin6_addr);
}

uint16_t soft_cm_address_port(const struct sockaddr *a)
{
	return a->sa_family == AF_INET	  ? v4(a)->sin_port
	       : a->sa_family == AF_INET6 ? v6(a)->sin6_port
					  : 0;
}

void soft_cm_address_set_port(struct sockaddr_storage *a, uint16_t port)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = port;
	else if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = port;
}

bool soft_cm_address_same(const struct sockaddr *a, const struct sockaddr *b)
{
	struct soft_gid ga = soft_cm_address_gid(a), gb = soft_cm_address_gid(b);

	return soft_gid_equal(&ga, &gb) && soft_cm_address_port(a) == soft_cm_address_port(b);
}

struct soft_gid soft_cm_address_gid(const struct sockaddr *a)
{
	struct soft_gid gid = {0};

	if (a->sa_family == AF_INET) {
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(gid.raw + 12, &v4(a)->sin_addr, 4);
	} else if (a->sa_family == AF_INET6) {
		memcpy(gid.raw, &v6(a)->sin6_addr, sizeof(gid.raw));
	}
	return gid;
}

void soft_cm_address_plain(struct sockaddr_storage *a)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four = {.sin_family = AF_INET};

	memcpy(&six, a, sizeof(six));
	if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	four.sin_port = six.sin6_port;
	memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, 4);
	memset(a, 0, sizeof(*a));
	memcpy(a, &four, sizeof(four));
}

void soft_cm_address_loopback(struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_addr = in6addr_loopback;
}
