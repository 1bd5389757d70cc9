/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that was seen, joined: one row a memory region, one a process. Pure: no file, no clock.
 *
 *   resources, processes, buffers, peermem, events ──► table (table.c) ──► verdicts (verdict.c)
 */
#ifndef PP_TRACE_TABLE_H
#define PP_TRACE_TABLE_H

#include "base/arena.h"
#include "base/words.h"
#include "trace/buffer.h"
#include "trace/event.h"
#include "trace/peermem.h"
#include "trace/process.h"
#include "trace/resource.h"

/* Claim states of DESIGN: what the evidence makes of "this region is registered by ...". */
enum pp_claim { PP_PROVEN, PP_UNPROVEN, PP_REFUTED };
const char *pp_claim_name(enum pp_claim c);

/* What is known of hcas from elsewhere: names to PCI functions. */
struct pp_trace_hca {
	const char *name;	 /* "mlx5_0" */
	const char *bdf;	 /* "0000:3b:00.0"; "" for one without */
	const char *driver;	 /* "mlx5_core", "rdma_rxe"; "" unknown */
	const char *data_direct; /* BDF of its data-direct function; "" none */
};

struct pp_trace_input {
	const struct pp_resources *resources;
	const struct pp_processes *processes;
	const struct pp_buffers *buffers;
	const struct pp_peermem *peermem;
	const struct pp_events *events;
	const struct pp_trace_hca *hca;
	size_t n_hcas;
	pid_t only; /* of this process alone; 0 all */
};

/* One observation that speaks for (or against) a registration of a region. */
struct pp_sighting {
	enum pp_surface by;
	enum pp_registration says;
	bool sufficient; /* alone, by the table of docs/internals/trace.md */
	const char *raw; /* the line, or "ib_umem.is_dmabuf=1 exp_name=nv_dmabuf ..." */
};

enum { PP_SIGHTINGS = 8 };

struct pp_region {
	const struct pp_resource
		*resource;		  /* NULL: seen by a probe only, or the software device's */
	const struct pp_process *process; /* NULL: unknown, see why_process */
	const char *hca, *bdf;
	uint32_t mrn, lkey, rkey;
	bool has_mrn, has_keys;
	uint64_t length;  /* 0 unknown */
	uint64_t address; /* 0 unknown */
	pid_t pid;	  /* 0 unknown */
	const char *why_process;
	const char *exporter; /* of a dma-buf; NULL */
	uint64_t buffer_inode, buffer_size;
	const char *importer; /* device that is attached; NULL */
	bool simulated;
	struct pp_sighting sighting[PP_SIGHTINGS];
	unsigned int n_sightings;
	/* Of verdict.c: */
	bool known; /* else `unknown`: registration says nothing */
	enum pp_registration registration;
	enum pp_claim state;  /* of the claim that it is registered so */
	bool gpu_memory;      /* exporter is NVIDIA's, or a peer client claimed it */
	const char *why;      /* one line */
	unsigned int missing; /* bit a surface that would decide or raise it */
};

/* Words of a process's and a node's verdict over its regions. */
enum pp_mix { PP_MIX_NONE, PP_MIX_ONE, PP_MIX_MIXED, PP_MIX_UNKNOWN };

struct pp_trace_process {
	const struct pp_process *process; /* NULL: owner unknown */
	pid_t pid;
	unsigned int count[PP_REGISTERED_EFA_P2P + 1], unknown; /* regions by registration */
	uint64_t bytes[PP_REGISTERED_EFA_P2P + 1];
	enum pp_mix mix;	     /* of GPU memory's registrations */
	enum pp_registration gpu_by; /* PP_MIX_ONE */
	enum pp_claim state;
	const char *why;
	unsigned int missing;
	bool simulated;
};

struct pp_trace_table {
	struct pp_arena *arena;	  /* owns all text and rows */
	struct pp_region *region; /* by pid, hca, mrn */
	size_t n;
	struct pp_trace_process *process; /* by pid */
	size_t n_processes;
	struct pp_surface_report surface[PP_SURFACES];
};

/* -ENOMEM only. The input must outlive the table. */
int pp_trace_join(const struct pp_trace_input *in, struct pp_trace_table *ret);
void pp_trace_table_done(struct pp_trace_table *t);

#endif
