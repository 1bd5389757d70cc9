/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_hca: one RDMA device while it is being read. Private to collect_hca.c and hca_*.c.
 *
 * Directories are canonical paths, so that a recording has the shape of a real sysfs. What does
 * not apply to a device or port (RoCE facts of an InfiniBand port) is not set at all; what applies
 * and cannot be read is unknown.
 */
#ifndef PP_NODE_HCA_H
#define PP_NODE_HCA_H

#include <jansson.h>

#include "node/node.h"

enum { PP_NETDEV_NAME = 64 };

struct pp_hca {
	struct pp_node *node;
	struct pp_object *object;
	const char *name;	    /* mlx5_0 */
	char dir[PP_PATH_MAX];	    /* /sys/devices/.../infiniband/mlx5_0 */
	char function[PP_PATH_MAX]; /* directory of its PCI function, "" none */
	const json_t *verbs;	    /* its object in the answer "verbs-devices", NULL none */
	const char *verbs_why;	    /* why it is NULL */
	bool bond;		    /* a port's interface is a bond, or belongs to one */
	bool netdev_missing;	    /* an Ethernet port's interface is unknown: so is the bond */
};

/* Ports, with all their facts; objects "<hca>/<number>". */
void pp_hca_read_ports(struct pp_hca *h);

/* GID table; @ret_netdev becomes the interface of the first entry, "" when it names none. */
void pp_port_read_gids(struct pp_hca *h, struct pp_object *port, const char *dir, bool ethernet,
		       char ret_netdev[PP_NETDEV_NAME]);

/* Interface, its MTU and state; @netdev is what the GID table names, "" when it names none. */
void pp_port_read_netdev(struct pp_hca *h, struct pp_object *port, int64_t number, bool ethernet,
			 const char *netdev);

/* counters/ and hw_counters/. */
void pp_port_read_counters(struct pp_hca *h, struct pp_object *port, const char *dir,
			   bool ethernet);

/* Is @id a counter of ethtool's, which no file holds? */
bool pp_counter_is_ethtool(enum pp_fact_id id);

/* Name of the bond that an interface of the PCI function @function belongs to. -ENOENT. */
int pp_hca_bond_master(struct pp_node *n, const char *function, char ret[PP_NETDEV_NAME]);

#endif
