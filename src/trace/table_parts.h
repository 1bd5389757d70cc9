/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the join share. Private to table*.c.
 *
 *   table.c         rows of netlink's regions and of the software device; order, processes
 *   table_index.c   rows by number or key
 *   table_owner.c   which process a row belongs to
 *   table_event.c   what probes saw, given to rows; rows that only they saw
 *   table_thread.c  events of a thread -> registrations
 *   table_library.c calls of the library that are no registration of the kernel's
 *   table_attach.c  attachments of buffers to hcas
 *   table_count.c   what follows from numbers: attachments, references, VmPin
 */
#ifndef PP_TRACE_TABLE_PARTS_H
#define PP_TRACE_TABLE_PARTS_H

#include "trace/table.h"

struct pp_join_thread {
	uint32_t tid;
	const struct pp_process *process;
};

struct pp_join_entry {
	uint32_t key;
	const char *hca;
	size_t row;
};

struct pp_join_index {
	struct pp_join_entry *entry; /* by key, hca */
	size_t n;
};

struct pp_join {
	const struct pp_trace_input *in;
	struct pp_trace_table *t;
	size_t cap;		       /* rows that there is room for */
	struct pp_join_thread *thread; /* by tid */
	size_t n_threads;
	struct pp_join_index by_mrn, by_lkey;
	const struct pp_trace_hca *holder_of; /* whose holder was looked for last */
	const struct pp_process *holder;
	bool holder_asked;
	bool same_pids; /* the events' process ids are as ours */
};

/* One registration as its thread's events tell it; events are borrowed, NULL: there was none. */
struct pp_episode {
	const struct pp_event *library; /* what the program called */
	const struct pp_event *umem;	/* the last that succeeded: DMABUF, HOST, PEER */
	const struct pp_event *attach, *p2p, *peer; /* inside it; peer: ib_peer_umem_get() */
	const struct pp_event *added;
	bool doubt; /* an event without a result */
};

int pp_join_threads(struct pp_join *j);
/* Owner of row @r by netlink and /proc alone; else why it is not known. */
void pp_join_own(struct pp_join *j, struct pp_region *r);
/* The same for what has a process id. */
void pp_join_own_pid(struct pp_join *j, struct pp_region *r, pid_t pid);

/* Of the rows that there are now; those of the past are left out. -ENOMEM. */
int pp_join_index(struct pp_join *j);
/*
 * The row of (@mrn, @hca), or of the key: @hca "" matches any, if there is one only. NULL: none, or
 * several.
 */
struct pp_region *pp_join_by_mrn(const struct pp_join *j, const char *hca, uint32_t mrn);
struct pp_region *pp_join_by_lkey(const struct pp_join *j, const char *hca, uint32_t lkey);
/* A new row; NULL when there is no room. */
struct pp_region *pp_join_row(struct pp_join *j, const char *hca);
const struct pp_trace_hca *pp_join_hca(const struct pp_trace_input *in, const char *name);

int pp_join_events(struct pp_join *j);
/* Of each ADDED one, in no order. */
struct pp_episodes {
	struct pp_episode *item;      /* malloc'ed */
	const struct pp_event **call; /* malloc'ed: of the library, and of none of them */
	size_t n, n_calls;
};
/* -ENOMEM. */
int pp_episodes_find(const struct pp_events *events, struct pp_episodes *ret);
void pp_episodes_done(struct pp_episodes *e);

/* Calls that succeeded, given to the rows that have their keys; the others get rows of their own.
 */
void pp_join_calls(struct pp_join *j, const struct pp_episodes *e);

/* Does @device (of an attachment) belong to @h? @ret_direct: it is its data-direct function. */
bool pp_join_importer(const struct pp_trace_hca *h, const char *device, bool *ret_direct);
/* No peer client can be there, as far as is read. */
bool pp_join_no_peers(const struct pp_trace_input *in);

/* One attachment of a buffer to an hca. */
struct pp_attachment {
	const struct pp_trace_hca *of;
	const struct pp_buffer *buffer;
	const struct pp_process *holder; /* alone has a descriptor of it; NULL none, or several */
	const char *device;
	bool direct;
};

/* By hca, then holder; malloc'ed. -ENOMEM. */
int pp_attachments_find(const struct pp_trace_input *in, struct pp_attachment **ret, size_t *ret_n);

int pp_join_count(struct pp_join *j);

#endif
