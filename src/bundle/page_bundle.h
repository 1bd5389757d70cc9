/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle as one self-contained page (bundle/sheet.h): the gates with their verdicts, the
 * machine's picture, what was measured, and behind each claim the text that it was read from.
 *
 * The verdicts are those that the bundle has recorded; what stands behind them is read again from
 * its own evidence. Every text is a stranger's: escaped, bounded, inert.
 */
#ifndef PP_BUNDLE_PAGE_BUNDLE_H
#define PP_BUNDLE_PAGE_BUNDLE_H

#include <jansson.h>

#include "bundle/bundle.h"
#include "judge/application.h"
#include "judge/finding.h"
#include "node/node.h"

struct pp_bench;
struct pp_gate_library;
struct pp_margins;
struct pp_transfer;

enum { PP_PAGE_MACHINES = 16, PP_PAGE_EVIDENCE = 64 };

/* One node as its recording has it. */
struct pp_page_machine {
	const char *id;		    /* "" the bundle's own */
	const struct pp_node *node; /* NULL: @why */
	const char *why;
};

struct pp_page_records {
	const char *node;
	const json_t *document; /* peerpath.evidence/1 */
};

/* All borrowed; NULL: the bundle has none. */
struct pp_page_sight {
	const struct pp_manifest *manifest;
	const json_t *result; /* peerpath.prove/1 */
	struct pp_page_machine machine[PP_PAGE_MACHINES];
	size_t n_machines, more_machines;
	const struct pp_findings *findings; /* of the first machine, by rules of today */
	const struct pp_bench *bench;
	const struct pp_transfer *transfer; /* with @bench */
	const struct pp_margins *margins;
	const struct pp_gate_library *library;
	bool library_simulated;
	const json_t *job; /* the document that @library was made of */
	const struct pp_trial *trial;
	const struct pp_trial *const *before;
	size_t n_before;
	const struct pp_comparison *comparison; /* with @before */
	struct pp_page_records records[PP_PAGE_EVIDENCE];
	size_t n_records;
	const struct pp_entry *raw; /* what was read of the first machine */
	size_t n_raw;
};

/* malloc'ed. -ENOMEM, -EFBIG. */
int pp_page_bundle(const struct pp_page_sight *s, char **ret);

/* Parts of it, one file each. */

/* page_facts.c: findings; facts by what they were read from, with its text; answers of drivers. */
void pp_page_findings(struct pp_buf *out, const struct pp_page_sight *s);
void pp_page_facts(struct pp_buf *out, const struct pp_page_sight *s);
/* page_records.c: what the kernel showed of memory; the job of gate 3. */
void pp_page_records(struct pp_buf *out, const struct pp_page_sight *s);
void pp_page_library(struct pp_buf *out, const struct pp_page_sight *s);
/* page_trial.c: the runs of gate 4. */
void pp_page_trial(struct pp_buf *out, const struct pp_page_sight *s);

#endif
