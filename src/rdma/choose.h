/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device and port this node uses for traffic, and where its thread belongs.
 *
 *   the user's device (name, BDF, virtual/NAME), with the gpu's pair looked up beside it
 *   else the rail of the gpu that was named
 *   else the first port in state ACTIVE, hardware before software
 *
 * Pure: facts of a node, and the names that libibverbs lists. A device that libibverbs lists and
 * the kernel does not show is the software device without a made /sys: virtual/NAME, port 1.
 */
#ifndef PP_RDMA_CHOOSE_H
#define PP_RDMA_CHOOSE_H

#include "node/node.h"

enum { PP_CHOICE_NAME = 64, PP_CHOICE_ID = 96 };

struct pp_choose_options {
	const char *device; /* mlx5_0, 0000:3b:00.0, virtual/soft0; NULL: not told */
	const char *gpu;    /* BDF or UUID; NULL: none */
	unsigned int port;  /* 0: the first ACTIVE one */
	/* As libibverbs lists them, ends with NULL; NULL: not asked, then the fact of that. */
	const char *const *listed;
};

struct pp_choice {
	const struct pp_object *hca;  /* borrowed, as all objects; NULL: the kernel shows none */
	const struct pp_object *port; /* NULL with it */
	const struct pp_object *gpu;  /* NULL: none was named */
	const struct pp_object *pair; /* of the two; NULL: not known */
	char device[PP_CHOICE_NAME];  /* as libibverbs knows it */
	char id[PP_CHOICE_ID];	      /* BDF, or virtual/NAME */
	unsigned int number;	      /* of the port */
	int numa;		      /* -1 unknown, or none */
	const char *cpus;	      /* "0-31,64-95"; NULL: do not pin */
	const char *netdev;	      /* NULL: unknown, or InfiniBand without IPoIB */
	bool simulated;
	char why[384]; /* of the choice, one line */
};

/*
 * -ENODEV (no such device, gpu or port, or none at all: @err lists what there is), -ENETDOWN (no
 * ACTIVE port), -EINVAL (no BDF, or one that several devices share).
 */
int pp_choose(const struct pp_node *n, const struct pp_choose_options *options,
	      struct pp_choice *ret, struct pp_error *err);

/*
 * Every gpu with its rail, in order of address; without gpus every device with an ACTIVE port.
 * @options: its port and listed count. *ret_n may be 0.
 */
int pp_choose_rails(const struct pp_node *n, const struct pp_choose_options *options,
		    struct pp_choice *ret, unsigned int most, unsigned int *ret_n,
		    struct pp_error *err);

#endif
