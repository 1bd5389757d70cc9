/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the probes, as one JSON array in the answer "trace-events" (so that a recording replays
 * them) and as structures here. Times are of the kernel's trace clock "mono": comparable with
 * pp_clock_monotonic().
 *
 * How they are read together: all events of one registration are of one thread, between the events
 * `register` of the library (if it is watched) or the first of its kernel functions, and `added`.
 *   dmabuf       ib_umem_dmabuf_get*() returned; an attempt with descriptor -1 and -EBADF is a
 *                library's question whether the call exists, not a registration
 *   attach       dma_buf_dynamic_attach() returned: exporter, size, inode, device
 *   host         ib_umem_get() (newer: ib_umem_get_va()) returned
 *   peer         ib_umem_get_peer() / ib_peer_umem_get() returned
 *   p2p          nvidia_p2p_get_pages*() returned
 *   added        rdma_restrack_add() of a region: it exists now, with this lkey and kernel address;
 *                where it says has_umem, what its memory is needs none of the events before, but
 *                that the attach of a DMA-BUF names the buffer
 *   removed      the region is gone
 *   region       B: one entry of our own dump, fill_res_mr_entry()
 *   register     uprobe: the program called ibv_reg_mr, _iova, _iova2, _reg_dmabuf_mr, mlx5dv_...
 */
#ifndef PP_TRACE_EVENT_H
#define PP_TRACE_EVENT_H

#include <sys/types.h>

#include "base/clock.h"
#include "node/ask.h"
#include "trace/surface.h"

enum pp_event_kind {
	PP_EVENT_DMABUF,
	PP_EVENT_ATTACH,
	PP_EVENT_HOST,
	PP_EVENT_PEER,
	PP_EVENT_P2P,
	PP_EVENT_ADDED,
	PP_EVENT_REMOVED,
	PP_EVENT_REGION,
	PP_EVENT_REGISTER,
	PP_EVENT_KINDS
};

/* Three-valued: a layout without the member leaves it unknown. */
enum pp_tristate { PP_UNSAID, PP_NO, PP_YES };

struct pp_event {
	enum pp_event_kind kind;
	enum pp_surface by; /* LIVE_PROBE, SELF_PROBE, TRACEPOINTS, LIBRARY */
	pp_ns at;
	pid_t tid, pid; /* pid 0: not said. Both as the machine's first PID namespace counts */
	char comm[16];
	char symbol[48]; /* function that was probed */
	int64_t result;	 /* 0 or a negative errno; of REGISTER the same of errno where known */
	bool has_result;
	uint64_t object; /* kernel address of the region (restrack entry), joins ADDED, REGION; 0
			    none */
	uint32_t mrn, lkey;
	bool has_mrn, has_lkey;
	uint64_t address, length, inode, size; /* size: of the buffer; length: of the region */
	int64_t fd;			       /* descriptor given; -1 too; INT64_MIN not said */
	char exporter[32], device[48];	       /* of the attachment */
	char hca[64];			       /* ibdev name of a REGION, ADDED; "" unknown */
	enum pp_tristate is_dmabuf, is_peer, is_odp, has_umem, mapped;
	enum pp_tristate data_direct; /* its memory is that of mlx5's inner region */
};

struct pp_events {
	struct pp_event *item; /* by time */
	size_t n;
	uint64_t lost; /* events that the ring buffer or a return probe missed */
	struct pp_surface_report
		report[PP_SURFACES]; /* of the four surfaces of probes, BTF, SYMBOLS */
};

enum { PP_EVENTS_MAX = 1 << 20 };

void pp_event_write(struct pp_json *j, const struct pp_event *e);
/* "trace-events" of a recording, or what the prober wrote. -ENOMEM only. */
int pp_events_read(const struct pp_answer *a, struct pp_events *ret);
void pp_events_done(struct pp_events *e);

#endif
