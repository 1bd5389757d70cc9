/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_node: everything that was found out about one machine.
 *
 * pp_node_collect() runs the collectors in the order of their table; each reads from the source
 * and adds objects and facts. Nothing here changes the machine. After collection a node is only
 * read.
 */
#ifndef PP_NODE_NODE_H
#define PP_NODE_NODE_H

#include "base/clock.h"
#include "node/fact.h"
#include "node/pci.h"
#include "node/source.h"

struct pp_node {
	struct pp_source *src; /* borrowed */
	struct pp_arena arena;
	struct pp_facts facts;
	struct pp_object *self; /* the PP_NODE object */
	struct pp_pci pci;
	/*
	 * NVLinks between GPUs: nvlinks[i * n_gpus + j], in the order of the GPU objects;
	 * -1 unknown. NULL without GPUs.
	 */
	int16_t *nvlinks;
	unsigned int n_gpus;
	/* When what the facts say was so (wall clock; 0 unknown); how long the collection took. */
	pp_ns started, took;
};

/* -ENOMEM, -EFBIG (machine description over the memory limit). */
int pp_node_collect(struct pp_source *src, struct pp_node **ret, struct pp_error *err);
struct pp_node *pp_node_free(struct pp_node *n); /* returns NULL */

/*
 * File to fact, the usual way: reads a short text file and sets the fact by its type. What cannot
 * be read or does not parse becomes unknown with the reason; -ENOENT too. Returns the error, 0.
 */
int pp_node_file(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, const char *path);
/* The same for dir/name. */
int pp_node_file_at(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, const char *dir,
		    const char *name);

/* Collectors, in the order they run; each in a file of its own (collect_<name>.c). */
typedef void pp_collector(struct pp_node *n);
pp_collector pp_collect_kernel;	  /* kernel, OS, lockdown, kernel log */
pp_collector pp_collect_pci;	  /* the PCI tree, links, ACS, IOMMU groups */
pp_collector pp_collect_modules;  /* nvidia, nvidia_peermem, gdrdrv, nvidia_fs */
pp_collector pp_collect_rdma;	  /* RDMA stack: libibverbs, providers, kernel side */
pp_collector pp_collect_hca;	  /* hcas, ports, GIDs, netdevs, counters */
pp_collector pp_collect_roce;	  /* trust, PFC, ECN, pause, discards per RoCE port */
pp_collector pp_collect_gpu;	  /* NVML, CUDA attributes */
pp_collector pp_collect_limits;	  /* memlock, capabilities, device nodes, container */
pp_collector pp_collect_software; /* CUDA, NCCL, UCX, libfabric, perftest, environment */
pp_collector pp_collect_paths;	  /* derived: links, pairs, rails */
pp_collector pp_collect_digests;  /* derived: software fingerprint, topology class */

/* The facts that make the software tuple, in its order; ends with PP_FACTS. */
extern const enum pp_fact_id pp_software_tuple[];

/* The first of its hcas that is a software device; NULL: all is hardware, as far as is known. */
const struct pp_object *pp_node_simulated(const struct pp_node *n);

/* All facts as an array of evidence records under @key. */
void pp_node_write_facts(struct pp_json *j, const char *key, const struct pp_node *n);

#endif
