/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of trace_pipe, as the kernel prints a probe's event:
 *
 *     ib_write_bw-312     [000]   41.233412: a2e: (ib_umem_get+0x0/0x3c0 [ib_uverbs]) addr=0x7f..
 * len=0x20000
 *
 * The name of a thread has 16 columns, right aligned, and may hold anything; it is taken by its
 * width. A tracepoint's line has no place in brackets and words of its own. Strings come in
 * quotation marks that are not escaped: one within is no string of the kernel's, and the line
 * malformed.
 */
#ifndef PP_TRACE_EVENT_LINE_H
#define PP_TRACE_EVENT_LINE_H

#include "trace/kprobe.h"

/* What a line gave, before entries and returns are put together. */
struct pp_event_line {
	const struct pp_kprobe *probe;
	struct pp_event event; /* what it fetched; result is the raw one */
	bool has_return;
	uint64_t returned;
	char owner[64];	       /* the driver that owns a region, "" not fetched */
	struct pp_event inner; /* the memory of mlx5's inner region ("ddumem", "ddexp", ...) */
};

enum pp_line_kind {
	PP_LINE_EVENT,
	PP_LINE_LOST,  /* "CPU:1 [LOST 12 EVENTS]": *ret_lost */
	PP_LINE_OTHER, /* empty, or another's event */
	PP_LINE_BAD,
};

enum pp_line_kind pp_event_line_parse(const struct pp_kprobes *k, const char *line, size_t len,
				      struct pp_event_line *ret, uint64_t *ret_lost);

#endif
