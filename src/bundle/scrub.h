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

#include "base/arena.h"
#include "base/error.h"
#include "bundle/bundle.h"
#include "node/record.h"

struct pp_scrub_counts {
	size_t replaced; /* occurrences */
	size_t dropped;	 /* files that are neither text nor PCI config space: now unreadable */
};

/* @in is borrowed. -ENOMEM, -EFBIG. */
int pp_scrub_record(struct pp_record *in, struct pp_record **ret,
		    struct pp_scrub_counts *ret_counts, struct pp_error *err);

/*
 * The same for several records and files that go together: all are learned from first, so that one
 * thing has one substitute in all of them. Records first, then files, in both rounds.
 */
struct pp_scrubber;

int pp_scrubber_new(struct pp_scrubber **ret, struct pp_error *err);
struct pp_scrubber *pp_scrubber_free(struct pp_scrubber *s); /* returns NULL */
int pp_scrubber_learn(struct pp_scrubber *s, struct pp_record *in, struct pp_error *err);
int pp_scrubber_learn_file(struct pp_scrubber *s, const struct pp_bundle_file *f,
			   struct pp_error *err);
/* After all has been learned: words that stand in paths of evidence keep to their own places. */
void pp_scrubber_spare(struct pp_scrubber *s, struct pp_record *in);
int pp_scrubber_record(struct pp_scrubber *s, struct pp_record *in, struct pp_record **ret,
		       struct pp_error *err);
/*
 * JSON by its members' names, any other text as text; path and content into @arena. -ENODATA: it is
 * neither, and is not kept.
 */
int pp_scrubber_file(struct pp_scrubber *s, const struct pp_bundle_file *f, struct pp_arena *arena,
		     struct pp_bundle_file *ret, struct pp_error *err);
/* Of what was replaced so far. */
struct pp_scrub_counts pp_scrubber_counts(const struct pp_scrubber *s);

#endif
