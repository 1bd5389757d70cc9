/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the verdict share. Private to verdict*.c.
 *
 *   verdict.c          one region: which witness suffices, and what must hold besides
 *   verdict_process.c  a process over its regions, and the node
 *   verdict_write.c    evidence records
 */
#ifndef PP_TRACE_VERDICT_PARTS_H
#define PP_TRACE_VERDICT_PARTS_H

#include "trace/verdict.h"

struct pp_judging {
	const struct pp_trace_input *in;
	struct pp_trace_table *t;
	const struct pp_buffer **by_inode; /* those that have one */
	size_t n_inodes;
	int unlisted; /* something is registered that is no row: 1 yes, 0 no, -1 not known */
};

/* Of the rows of one process that live. */
struct pp_run {
	size_t first, end;
	uint64_t bytes, peer_bytes; /* all; those that a witness says a peer client has */
};

static inline bool pp_surface_whole(const struct pp_trace_table *t, enum pp_surface s)
{
	return t->surface[s].state == PP_SURFACE_READ;
}

void pp_region_judge(const struct pp_judging *g, const struct pp_run *run, struct pp_region *r);
/* @p's rows are [@run->first, @run->end). */
void pp_process_judge(const struct pp_judging *g, const struct pp_run *run,
		      struct pp_trace_process *p);
/* Attachments and references against the judged rows. */
int pp_unlisted(const struct pp_trace_table *t);

#endif
