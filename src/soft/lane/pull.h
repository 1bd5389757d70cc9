/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_pull: payload fetched from the memory of the process that sent it, by one system call
 * and one copy.
 *
 * The same call reads the sender's token behind the bytes: as long as it is the one that the record
 * came with, the process is the one that wrote the record (not another of its number, nor what it
 * executed since), and the bytes are still what it wanted to send.
 *
 * Bytes on the sender's shelf (copy/shelf.h) need not be fetched at all where they are for a device
 * that copies them from there.
 */
#ifndef SOFT_LANE_PULL_H
#define SOFT_LANE_PULL_H

#include <sys/types.h>

#include "soft/copy/source.h"
#include "soft/lane/record.h"

struct soft_pull {
	struct soft_source source;
	pid_t pid;
	const struct soft_record_read *record; /* borrowed */
	int error;			       /* of the first fetch that failed */
	uint64_t pulls, bytes;
	struct soft_shelf_view *view; /* borrowed; NULL: none */
	uint64_t lent, lent_bytes, mapped, mapped_bytes;
	uint64_t direct, direct_bytes; /* of what is lent */
	int loan_error;		       /* why none of it will ever be */
	bool lost;		       /* some was not lent now */
};

/* Payload of @record, of a lane from @pid, who shows @view or (NULL) none; usable while @record is.
 */
void soft_pull_init(struct soft_pull *pull, pid_t pid, struct soft_shelf_view *view,
		    const struct soft_record_read *record);

/* Can the word be read there, and is it that? 0 or the errno, positive. */
int soft_pull_try(pid_t pid, uint64_t token_at, uint64_t token);

#endif
