/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scrubbing: a copy of a record in which what names a machine, its owner or its users is replaced,
 * consistently and in the same shape, by a key that is made for this copy and thrown away.
 *
 * Replaced: host and user names, home directories, serial numbers, MAC addresses, GUIDs and GIDs,
 * IP addresses, UUIDs (GPUs, disks, boot and machine ids), values of secret-looking names. The
 * kernel command line keeps what an allow-list names; so do names of processes, control groups
 * and DMA-BUF buffers.
 * Kept, being the evidence: PCI addresses, versions, firmware, board ids, names of devices.
 */
#ifndef PP_BUNDLE_SCRUB_H
#define PP_BUNDLE_SCRUB_H

#include "base/error.h"
#include "node/record.h"

struct pp_scrub_counts {
	size_t replaced; /* occurrences */
	size_t dropped;	 /* files that are neither text nor PCI config space: now unreadable */
};

/* @in is borrowed. -ENOMEM, -EFBIG. */
int pp_scrub_record(struct pp_record *in, struct pp_record **ret,
		    struct pp_scrub_counts *ret_counts, struct pp_error *err);

#endif
