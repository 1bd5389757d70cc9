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
	const char *parent;	 /* name of its device in sysfs where that is no PCI function */
	const char *uverbs;	 /* "uverbs0"; "" unknown */
};

/* A region of the software device, as its process tells it. Simulated, and nothing else. */
struct pp_trace_software {
	const char *hca, *program;
	pid_t pid;
	uint32_t lkey;
	uint64_t address, length;
	bool dmabuf, gpu;
};

struct pp_trace_input {
	const struct pp_resources *resources;
	const struct pp_processes *processes;
	const struct pp_buffers *buffers;
	const struct pp_peermem *peermem;
	const struct pp_events *events;
	const struct pp_trace_hca *hca;
	size_t n_hcas;
	const struct pp_trace_software *software;
	size_t n_software;
	enum pp_tristate efa_logged; /* "efa: Acquired peer memory using P2P" in the kernel log */
	const char *why_efa;	     /* it is not PP_YES; NULL not asked */
	pid_t only; /* rows of this process alone are kept, once all are judged; 0 all */
};

/* One observation that speaks for (or against) a registration of a region. */
struct pp_sighting {
	enum pp_surface by;
	enum pp_registration says;
	bool sufficient; /* alone, by the table of docs/internals/trace.md */
	bool gpu;	 /* what it saw is GPU memory: NVIDIA's exporter, a peer client */
	const char *raw; /* the line, or "ib_umem.is_dmabuf=1 exp_name=nv_dmabuf ..." */
};

enum { PP_SIGHTINGS = 8 };

struct pp_region {
	const struct pp_resource
		*resource;		  /* NULL: seen by a probe only, or the software device's */
	const struct pp_process *process; /* NULL: unknown, see why_process */
	const struct pp_trace_hca *of;	  /* NULL: nothing is known of it but the name */
	const char *hca, *bdf;		  /* "" unknown, none */
	uint32_t mrn, lkey, rkey;
	bool has_mrn, has_keys;
	uint64_t length;  /* 0 unknown */
	uint64_t address; /* 0 unknown */
	pid_t pid;	  /* 0 unknown */
	pid_t tid;	  /* that registered it; 0 unknown */
	const char *comm; /* of its process, else of that thread; "" unknown */
	const char *why_process;
	pp_ns added, removed; /* when a probe saw it begin and end; 0 it did not */
	bool gone;	      /* of the past: seen by a probe, no more there */
	const char *exporter; /* of a dma-buf; NULL */
	uint64_t buffer_inode, buffer_size;
	const char *importer; /* device that is attached; NULL */
	bool simulated;
	struct pp_sighting sighting[PP_SIGHTINGS];
	unsigned int n_sightings;
	const char *called; /* what the program asked of its library for it; NULL not seen */
	/* Of verdict.c: */
	bool known; /* else `unknown`: registration says nothing */
	enum pp_registration registration;
	enum pp_claim state; /* of the claim that it is registered so */
	bool gpu_memory;     /* exporter is NVIDIA's, or a peer client claimed it */
	/* Of what was called: the kernel proves that it was done, or another thing. */
	enum pp_claim called_state;
	const char *why;      /* one line */
	unsigned int missing; /* bit a surface that would decide or raise it */
};

/* Adds a sighting; the last place is kept for one that is sufficient. */
void pp_region_saw(struct pp_region *r, const struct pp_sighting *s);

/* Words of a process's and a node's verdict over its regions. */
enum pp_mix { PP_MIX_NONE, PP_MIX_ONE, PP_MIX_MIXED, PP_MIX_UNKNOWN };

struct pp_trace_process {
	const struct pp_process *process; /* NULL: owner unknown */
	pid_t pid;
	const char *comm;
	unsigned int count[PP_REGISTERED_EFA_P2P + 1], unknown; /* regions by registration */
	unsigned int unproven;					/* of those counted */
	unsigned int gone;					/* of all */
	uint64_t bytes[PP_REGISTERED_EFA_P2P + 1];
	enum pp_mix mix;	     /* of GPU memory's registrations */
	enum pp_registration gpu_by; /* PP_MIX_ONE */
	bool host_staged; /* PP_MIX_NONE, a GPU is in use, and every region is host memory */
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
	size_t kernel;	/* regions of kernel modules, which are no rows */
	size_t unowned; /* rows without a known owner, filtered ones too */
	/* Of buffers to hcas, and regions of peer clients; DevX has some that are no rows. -1:
	 * unknown
	 */
	int64_t attachments, peers;
	struct pp_surface_report surface[PP_SURFACES];
};

enum { PP_TRACE_ROWS = 1 << 18 }; /* more are cut */

/* -ENOMEM only. The input must outlive the table. */
int pp_trace_join(const struct pp_trace_input *in, struct pp_trace_table *ret);
void pp_trace_table_done(struct pp_trace_table *t);

#endif
