/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of devices: checked against the machine's, and the devices that these make by default.
 */
#include "soft/config/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

const char *soft_config_gid_text(const struct soft_gid *gid, char *text, size_t size)
{
	bool v4 = soft_gid_is_ipv4(gid);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, gid->raw + (v4 ? 12 : 0), text, (socklen_t)size))
		(void)snprintf(text, size, "?");
	return text;
}

static const struct soft_host_address *find(const struct soft_host_address *hosts,
					    unsigned int num_hosts, const struct soft_gid *gid)
{
	for (unsigned int i = 0; i < num_hosts; i++)
		if (soft_gid_equal(&hosts[i].gid, gid))
			return &hosts[i];
	return NULL;
}

static bool add_gid(struct soft_config_device *d, const struct soft_host_address *h)
{
	if (d->num_gids == SOFT_CONFIG_GIDS_MAX)
		return false;
	d->gids[d->num_gids++] = (struct soft_config_gid){h->gid, h->ifindex};
	return true;
}

/* IPv4 in front, each family in its order. */
static void sort_gids(struct soft_config_device *d)
{
	struct soft_config_gid sorted[SOFT_CONFIG_GIDS_MAX];
	unsigned int n = 0;

	for (int v4 = 1; v4 >= 0; v4--)
		for (unsigned int i = 0; i < d->num_gids; i++)
			if (soft_gid_is_ipv4(&d->gids[i].gid) == v4)
				sorted[n++] = d->gids[i];
	memcpy(d->gids, sorted, n * sizeof(sorted[0]));
}

static void take_netdev(struct soft_config_device *d, const struct soft_host_address *h)
{
	(void)snprintf(d->netdev, sizeof(d->netdev), "%s", h->netdev);
	memcpy(d->mac, h->mac, sizeof(d->mac));
}

/* The path MTU that all its netdevs carry. */
static int complete_mtu(struct soft_config_device *d, const struct soft_host_address *hosts,
			unsigned int num_hosts, struct pp_error *err)
{
	unsigned int fits = 4096;
	const char *by = "?";

	for (unsigned int i = 0; i < d->num_gids; i++) {
		const struct soft_host_address *h = find(hosts, num_hosts, &d->gids[i].gid);
		unsigned int one = h ? soft_host_path_mtu(h->netdev_mtu) : 0;

		if (one < fits) {
			fits = one;
			by = h ? h->netdev : "?";
		}
	}
	if (!fits)
		return pp_error_set(err, -EINVAL, "device %s: no packet fits the MTU of %s",
				    d->name, by);
	if (d->mtu > fits)
		return pp_error_set(err, -EINVAL,
				    "device %s: mtu=%u does not fit %s, which carries %u", d->name,
				    d->mtu, by, fits);
	if (!d->mtu)
		d->mtu = fits;
	return 0;
}

int soft_config_complete(struct soft_config_device *d, const struct soft_host_address *hosts,
			 unsigned int num_hosts, struct pp_error *err)
{
	const struct soft_host_address *h;
	char text[64];

	for (unsigned int i = 0; i < d->num_gids; i++) {
		h = find(hosts, num_hosts, &d->gids[i].gid);
		if (!h)
			return pp_error_set(
				err, -EINVAL, "device %s: this machine has no address %s", d->name,
				soft_config_gid_text(&d->gids[i].gid, text, sizeof(text)));
		d->gids[i].ifindex = h->ifindex;
	}
	if (!d->num_gids && !d->netdev[0])
		return pp_error_set(err, -EINVAL,
				    "device %s: neither address= nor netdev=", d->name);
	for (unsigned int i = 0; i < num_hosts && !d->num_gids; i++)
		for (unsigned int j = i; j < num_hosts && !strcmp(hosts[i].netdev, d->netdev); j++)
			if (!strcmp(hosts[j].netdev, d->netdev) && !add_gid(d, &hosts[j]))
				break;
	if (!d->num_gids)
		return pp_error_set(err, -EINVAL,
				    "device %s: there is no netdev %s, or no address of it that a "
				    "peer can reach",
				    d->name, d->netdev);
	sort_gids(d);
	h = find(hosts, num_hosts, &d->gids[0].gid);
	if (h)
		take_netdev(d, h);
	return complete_mtu(d, hosts, num_hosts, err);
}

static struct soft_config_device *add(struct soft_config *c, const struct soft_config_device *model)
{
	if (c->num_devices == SOFT_CONFIG_DEVICES_MAX)
		return NULL;
	c->devices[c->num_devices] = *model;
	return &c->devices[c->num_devices++];
}

/* hosts[first] and, of its netdev, the IPv6 addresses when it is the netdev's first. */
static int add_one(struct soft_config *c, const struct soft_config_device *model,
		   const struct soft_host_address *hosts, unsigned int num_hosts,
		   unsigned int first, struct pp_error *err)
{
	struct soft_config_device *d = add(c, model);

	if (!d)
		return 0; /* more than anybody uses */
	if (hosts[first].loopback)
		(void)snprintf(d->name, sizeof(d->name), "soft_lo");
	else
		(void)snprintf(d->name, sizeof(d->name), "soft%u", c->num_devices - 1);
	(void)add_gid(d, &hosts[first]);
	for (unsigned int i = 0; i < num_hosts; i++) {
		if (strcmp(hosts[i].netdev, hosts[first].netdev) || i == first)
			continue;
		if (i < first)
			break; /* an earlier device has them */
		if (!soft_gid_is_ipv4(&hosts[i].gid))
			(void)add_gid(d, &hosts[i]);
	}
	return soft_config_complete(d, hosts, num_hosts, err);
}

/* Does hosts[i] begin a device? All IPv4 do, IPv6 only where the netdev has nothing before it. */
static bool begins(const struct soft_host_address *hosts, unsigned int i)
{
	if (soft_gid_is_ipv4(&hosts[i].gid))
		return true;
	for (unsigned int j = 0; j < i; j++)
		if (!strcmp(hosts[j].netdev, hosts[i].netdev))
			return false;
	return true;
}

int soft_config_add_default(struct soft_config *c, const struct soft_config_device *model,
			    const struct soft_host_address *hosts, unsigned int num_hosts,
			    struct pp_error *err)
{
	int r = 0;

	for (int loopback = 0; loopback <= 1; loopback++)
		for (unsigned int i = 0; i < num_hosts && !r; i++)
			if (hosts[i].loopback == loopback && hosts[i].up && begins(hosts, i) &&
			    soft_host_path_mtu(hosts[i].netdev_mtu) &&
			    !(loopback && c->num_devices &&
			      !strcmp(c->devices[c->num_devices - 1].name, "soft_lo")))
				r = add_one(c, model, hosts, num_hosts, i, err);
	return r;
}
