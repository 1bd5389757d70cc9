/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network interface of a port, and the bond it may belong to.
 *
 * The GID table names the interface that the RDMA core uses; without it the interface is the one
 * on the same PCI function whose dev_port is the port's number less one. Representors of a
 * function in switchdev mode share dev_port and are told by phys_port_name.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "node/hca.h"
#include "base/banned.h"

enum { VALUE_BYTES = 64 };

static int net_text(struct pp_node *n, const char *dir, const char *name, char text[VALUE_BYTES])
{
	char path[PP_PATH_MAX];

	if (pp_path_join(dir, name, path))
		return -ENAMETOOLONG;
	return pp_source_text(n->src, path, text, VALUE_BYTES);
}

/* "pf0vf3", "pf0sf88", "c1pf0vf3": an interface that stands for a VF or subfunction. */
static bool is_representor(struct pp_node *n, const char *dir)
{
	char text[VALUE_BYTES];

	return !net_text(n, dir, "phys_port_name", text) && strstr(text, "pf");
}

/* Interface of the function with this port's number. */
static int find(struct pp_hca *h, int64_t number, char ret[PP_NETDEV_NAME])
{
	char net[PP_PATH_MAX], dir[PP_PATH_MAX], text[VALUE_BYTES];
	struct pp_names names;
	int64_t dev_port;
	int r = *h->function ? pp_path_join(h->function, "net", net) : -ENOENT;

	if (!r)
		r = pp_source_list(h->node->src, net, &names);
	if (r)
		return r;
	r = -ENODEV;
	for (size_t i = 0; i < names.n && r; i++) {
		if (strlen(names.name[i]) >= PP_NETDEV_NAME ||
		    pp_path_join(net, names.name[i], dir) ||
		    net_text(h->node, dir, "dev_port", text) ||
		    pp_parse_i64(text, 0, INT32_MAX, &dev_port) || dev_port != number - 1 ||
		    is_representor(h->node, dir))
			continue;
		(void)snprintf(ret, PP_NETDEV_NAME, "%s", names.name[i]);
		r = 0;
	}
	pp_names_done(&names);
	return r;
}

/* Directory of an interface: on the function, else wherever its class link leads. */
static int locate(struct pp_hca *h, const char *netdev, char ret[PP_PATH_MAX])
{
	char path[PP_PATH_MAX];

	if (*h->function && !pp_path_join(h->function, "net", path) &&
	    !pp_path_join(path, netdev, ret) && pp_source_exists(h->node->src, ret))
		return 0;
	if (pp_path_join("/sys/class/net", netdev, path))
		return -ENAMETOOLONG;
	return pp_source_real(h->node->src, path, ret);
}

/* Name of the bond above the interface in @dir: its own when it is one. -ENOENT when none. */
static int bond_of(struct pp_node *n, const char *dir, char ret[PP_NETDEV_NAME])
{
	char path[PP_PATH_MAX], master[PP_PATH_MAX], mode[VALUE_BYTES];

	memcpy(master, dir, strlen(dir) + 1);
	for (int step = 0; step < 2; step++) {
		/* Read, not only looked for: a recording keeps what was read. */
		if (!net_text(n, master, "bonding/mode", mode)) {
			(void)snprintf(ret, PP_NETDEV_NAME, "%s", strrchr(master, '/') + 1);
			return 0;
		}
		if (pp_path_join(master, "master", path) || pp_source_real(n->src, path, master) ||
		    !strcmp(path, master))
			break;
	}
	return -ENOENT;
}

int pp_hca_bond_master(struct pp_node *n, const char *function, char ret[PP_NETDEV_NAME])
{
	char net[PP_PATH_MAX], dir[PP_PATH_MAX];
	struct pp_names names;
	int r = pp_path_join(function, "net", net);

	if (!r)
		r = pp_source_list(n->src, net, &names);
	if (r)
		return r;
	r = -ENOENT;
	for (size_t i = 0; i < names.n && r; i++)
		if (!pp_path_join(net, names.name[i], dir))
			r = bond_of(n, dir, ret);
	pp_names_done(&names);
	return r;
}

void pp_port_read_netdev(struct pp_hca *h, struct pp_object *port, int64_t number, bool ethernet,
			 const char *netdev)
{
	static const enum pp_fact_id ids[] = {PP_F_PORT_NETDEV, PP_F_PORT_MTU, PP_F_PORT_OPERSTATE};
	char found[PP_NETDEV_NAME] = "", dir[PP_PATH_MAX], bond[PP_NETDEV_NAME];
	int r = *netdev ? 0 : find(h, number, found);

	for (size_t i = 0; r && i < PP_ARRAY_LEN(ids); i++)
		pp_fact_unknown(&h->node->facts, port, ids[i], *h->function ? h->function : NULL,
				"no network interface of this port: %s",
				r == -ENODEV ? "none on its PCI function in this network namespace"
				: *h->function ? pp_source_why(r)
					       : "the GID table names none");
	if (r) {
		h->netdev_missing |= ethernet;
		return;
	}
	if (!*netdev)
		netdev = found;
	r = locate(h, netdev, dir);
	pp_fact_str(&h->node->facts, port, PP_F_PORT_NETDEV, netdev, r ? "gid_attrs/ndevs" : dir);
	if (r) {
		for (size_t i = 1; i < PP_ARRAY_LEN(ids); i++)
			pp_fact_unknown(&h->node->facts, port, ids[i], NULL,
					"/sys/class/net/%s: %s: not in this network namespace",
					netdev, pp_source_why(r));
		h->netdev_missing |= ethernet;
		return;
	}
	(void)pp_node_file_at(h->node, port, PP_F_PORT_MTU, dir, "mtu");
	(void)pp_node_file_at(h->node, port, PP_F_PORT_OPERSTATE, dir, "operstate");
	if (ethernet && !bond_of(h->node, dir, bond))
		h->bond = true;
}
