/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_watch_ports: the RDMA ports of a node, kept between looks. Which there are is listed
 * anew each time; where they are is found out once.
 */
#ifndef PP_DAEMON_PORTS_H
#define PP_DAEMON_PORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "node/source.h"

enum { PP_WATCH_PORTS = 1024 };

struct pp_watch_port {
	char hca[64];	 /* mlx5_0 */
	char object[96]; /* "0000:17:00.0 port 1"; by its name where it has no PCI function */
	char netdev[64]; /* of an Ethernet port; "" none, or unknown */
	bool ethernet;
	bool pci;  /* it has a PCI function */
	bool gone; /* was there once */
	char *dir; /* owned: /sys/devices/.../infiniband/mlx5_0/ports/1 */
};

struct pp_watch_ports {
	struct pp_watch_port *port; /* owned */
	size_t n;
	struct pp_names devices; /* names of hcas at the last reading */
	bool listed;
	unsigned int generation; /* another one when the list is another */
	bool none;		 /* it is known that there is no device */
	char why[256];		 /* why there is no list, or nothing in it; "" */
};

/* -ENOMEM only. */
int pp_watch_ports_read(struct pp_source *s, struct pp_watch_ports *p);
void pp_watch_ports_done(struct pp_watch_ports *p);

#endif
