/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer memory: nvidia_peermem's references (one a live region) and the counters of each client
 * under /sys/kernel/mm/memory_peers, which newer stacks no longer have: their absence says nothing.
 * All of it is of the whole machine, no process is named.
 */
#ifndef PP_TRACE_PEERMEM_H
#define PP_TRACE_PEERMEM_H

#include "node/source.h"
#include "trace/surface.h"

enum { PP_PEER_CLIENTS = 8 };

struct pp_peer_client {
	char name[32]; /* "nv_mem", "nv_mem_nc", "nvidia-fs", "amdkfd" */
	int64_t alloc_mrs, dealloc_mrs, reg_bytes, dereg_bytes, free_callbacks; /* -1 not shown */
};

struct pp_peermem {
	bool loaded;	 /* nvidia_peermem, or the older nv_peer_mem */
	char module[32]; /* its name, "" none */
	char version[32];
	int64_t references; /* -1 unknown */
	struct pp_peer_client client[PP_PEER_CLIENTS];
	unsigned int n;
	struct pp_surface_report report;
};

/* Reads by @s; what is absent is absent. Never fails. */
void pp_peermem_read(struct pp_source *s, struct pp_peermem *ret);
/* Live regions that the counters tell of; -1 when nothing tells. */
int64_t pp_peermem_live(const struct pp_peermem *p);

#endif
