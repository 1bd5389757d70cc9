/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the kernel by netlink for addresses, because only netlink tells their state (tentative,
 * deprecated, temporary), and by ioctl for what belongs to the interface.
 */
#include "soft/link/host.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { REPLY_BYTES = 32768, REPLIES_MAX = 4096 };

static int ask(int fd, unsigned char family)
{
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg addr;
	} request = {
		.head = {.nlmsg_len = sizeof(request),
			 .nlmsg_type = RTM_GETADDR,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			 .nlmsg_seq = family},
		.addr = {.ifa_family = family},
	};

	return send(fd, &request, sizeof(request), 0) < 0 ? -errno : 0;
}

static bool interface_read(int fd, struct soft_host_address *a)
{
	struct ifreq r = {.ifr_ifindex = (int)a->ifindex};

	if (ioctl(fd, SIOCGIFNAME, &r) < 0)
		return false;
	memcpy(a->netdev, r.ifr_name, sizeof(a->netdev));
	a->netdev[sizeof(a->netdev) - 1] = '\0';
	if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return false;
	a->loopback = r.ifr_flags & IFF_LOOPBACK;
	a->up = (r.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
	if (ioctl(fd, SIOCGIFMTU, &r) < 0 || r.ifr_mtu < 0)
		return false;
	a->netdev_mtu = (unsigned int)r.ifr_mtu;
	if (ioctl(fd, SIOCGIFHWADDR, &r) == 0 && r.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		memcpy(a->mac, r.ifr_hwaddr.sa_data, sizeof(a->mac));
	return true;
}

/* A peer cannot count on it, or it is about to go. */
static bool passing(unsigned char family, uint32_t flags)
{
	uint32_t states = IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED;

	/* The same bit is IFA_F_SECONDARY of IPv4, which is as good as a first address. */
	if (family == AF_INET6)
		states |= IFA_F_TEMPORARY;
	return flags & states;
}

/* Finds the address of the message; false: none that a peer could use. */
static bool address_read(struct nlmsghdr *h, struct soft_host_address *ret)
{
	struct ifaddrmsg *m = NLMSG_DATA(h);
	const void *local = NULL, *address = NULL;
	uint32_t flags = 0;
	size_t want;
	int left;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return false;
	flags = m->ifa_flags;
	want = m->ifa_family == AF_INET ? 4 : 16;
	left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*m)));
	for (struct rtattr *at = IFA_RTA(m); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if (at->rta_type == IFA_LOCAL && RTA_PAYLOAD(at) == want)
			local = RTA_DATA(at);
		else if (at->rta_type == IFA_ADDRESS && RTA_PAYLOAD(at) == want)
			address = RTA_DATA(at);
		else if (at->rta_type == IFA_FLAGS && RTA_PAYLOAD(at) == sizeof(flags))
			memcpy(&flags, RTA_DATA(at), sizeof(flags));
	}
	/* On a point-to-point interface IFA_ADDRESS is the other end. */
	address = local ? local : address;
	if (!address || passing(m->ifa_family, flags) || m->ifa_scope == RT_SCOPE_LINK)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->ifindex = m->ifa_index;
	if (want == 4)
		ret->gid.raw[10] = ret->gid.raw[11] = 0xff;
	memcpy(ret->gid.raw + 16 - want, address, want);
	return true;
}

/* Keeps the list in order: by interface, IPv4 before IPv6, else as they came. */
static void insert(struct soft_host_address *list, unsigned int n,
		   const struct soft_host_address *a)
{
	while (n > 0 && list[n - 1].ifindex > a->ifindex) {
		list[n] = list[n - 1];
		n--;
	}
	list[n] = *a;
}

/* The message at *at of @len bytes, and moves *at behind it; NULL: no whole one is left. */
static struct nlmsghdr *next_message(char *reply, size_t len, size_t *at)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(void *)(reply + *at);

	if (*at >= len || len - *at < sizeof(*h) || h->nlmsg_len < sizeof(*h) ||
	    h->nlmsg_len > len - *at)
		return NULL;
	*at += NLMSG_ALIGN(h->nlmsg_len);
	return h;
}

/* 1: the dump is complete, 0: more follows. */
static int take(int fd, char *reply, size_t len, struct soft_host_address *ret, unsigned int max,
		unsigned int *n)
{
	struct nlmsghdr *h;
	size_t at = 0;

	while ((h = next_message(reply, len, &at))) {
		struct soft_host_address a;

		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR) {
			struct nlmsgerr *e = NLMSG_DATA(h);

			return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || !e->error ? -EPROTO
										    : e->error;
		}
		if (h->nlmsg_type == RTM_NEWADDR && *n < max && address_read(h, &a) &&
		    interface_read(fd, &a))
			insert(ret, (*n)++, &a);
	}
	return 0;
}

static int dump(int netlink, int ioctls, unsigned char family, struct soft_host_address *ret,
		unsigned int max, unsigned int *n)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	int rc = ask(netlink, family);

	for (unsigned int i = 0; rc == 0 && i < REPLIES_MAX; i++) {
		ssize_t len = recv(netlink, reply, sizeof(reply), 0);

		if (len < 0 && errno == EINTR)
			continue;
		rc = len < 0 ? -errno : take(ioctls, reply, (size_t)len, ret, max, n);
	}
	return rc < 0 ? rc : 0;
}

int soft_host_addresses(struct soft_host_address *ret, unsigned int max)
{
	PP_AUTO_CLOSE int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	PP_AUTO_CLOSE int ioctls = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timeval patience = {.tv_sec = 2};
	unsigned int n = 0;
	int rc;

	if (ioctls < 0)
		ioctls = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (netlink < 0 || ioctls < 0)
		return -errno;
	if (setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	rc = dump(netlink, ioctls, AF_INET, ret, max, &n);
	if (rc == 0)
		rc = dump(netlink, ioctls, AF_INET6, ret, max, &n);
	return rc < 0 ? rc : (int)n;
}

unsigned int soft_host_path_mtu(unsigned int netdev_mtu)
{
	/*
	 * iboe_get_mtu() of the kernel's include/rdma/ib_addr.h, by which mlx5 and others choose:
	 * what an IPv6 header 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28 and ICRC 4 leave.
	 */
	const unsigned int headers = 40 + 8 + 12 + 4 + 28 + 4;

	for (unsigned int mtu = 4096; mtu >= 256; mtu /= 2)
		if (netdev_mtu >= mtu + headers)
			return mtu;
	return 0;
}
