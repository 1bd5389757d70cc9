/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of events: each puts one kind of line into the job.
 */
#ifndef PP_NCCL_GATHER_H
#define PP_NCCL_GATHER_H

#include "nccl/job.h"

struct pp_nccl_said {
	struct pp_nccl_job *job;
	const struct pp_nccl_line *line;
	const struct pp_nccl_event *event;
	uint32_t process; /* PP_NCCL_NONE for lines without prefix, or when the table is full */
};

void pp_nccl_gather_member(struct pp_nccl_said *s);  /* INIT_*, COMM_* */
void pp_nccl_gather_channel(struct pp_nccl_said *s); /* CHANNEL, COLLNET */
void pp_nccl_gather_torn(struct pp_nccl_said *s);
void pp_nccl_gather_rings(struct pp_nccl_said *s); /* RINGS_GDR */
void pp_nccl_gather_width(struct pp_nccl_said *s);
void pp_nccl_gather_protocol(struct pp_nccl_said *s);
void pp_nccl_gather_device(struct pp_nccl_said *s); /* networks, NICs, GPUs, settings */
void pp_nccl_gather_error(struct pp_nccl_said *s);
void pp_nccl_gather_bench(struct pp_nccl_said *s);
void pp_nccl_gather_version(struct pp_nccl_said *s);

/* The member whose connection it is, PP_NCCL_NONE when no line named one. */
uint32_t pp_nccl_gather_owner(struct pp_nccl_said *s, const struct pp_nccl_channel *c,
			      bool *ret_ambiguous);
/* Narrows the range of versions by what printed the line. */
void pp_nccl_gather_range(struct pp_nccl_job *job, int oldest, int newest);

#endif
