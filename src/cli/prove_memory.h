/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 2 of `prove`: runs `bench`, judges it, compares it with an earlier one, and gives what
 * belongs into the bundle.
 */
#ifndef PP_CLI_PROVE_MEMORY_H
#define PP_CLI_PROVE_MEMORY_H

#include "bundle/bundle.h"
#include "cli/bench_child.h"
#include "cli/proof.h"
#include "cli/prove_library.h"
#include "cli/prove_application.h"
#include "judge/repeat.h"
#include "judge/transfer.h"

/*
 * result.json, bench.json, what it is compared with, nccl.json, nodes.errors, those of gate 4, and
 * of each node a capture and evidence of its memory
 */
enum {
	PP_PROVE_NODES = 1024,
	PP_PROVE_FILES =
		5 + PP_PROVE_APPLICATION_FILES + PP_PROVE_LIBRARY_FILES + 2 * PP_PROVE_NODES
};

/* A node whose capture the bundle should hold and does not; in the arena. */
struct pp_prove_lost {
	const char *node, *why;
};

struct pp_prove_memory {
	struct pp_bench_child child;
	struct pp_known_set *known;  /* that it borrows from */
	struct pp_transfer transfer; /* where it ran */
	struct pp_bench *before;     /* --after-reboot; NULL */
	struct pp_repeat repeat;     /* where @before is and it ran */
	/* For the bundle; the first place is the caller's, for result.json. */
	struct pp_bundle_file file[PP_PROVE_FILES];
	size_t n_files;
	struct pp_prove_lost lost[2 * PP_PROVE_NODES];
	size_t n_lost;
	struct pp_arena arena, captures;
};

/* Reads the bundle of --after-reboot, before anything runs. 0 or an exit code. */
int pp_prove_memory_open(const struct pp_args *args, struct pp_prove_memory *m);
/*
 * Runs and judges; where there was no run, m->child.why says why. @keep: the bundle is wanted. 0 or
 * an exit code.
 */
int pp_prove_memory_run(struct pp_session *s, const struct pp_margins *margins, bool keep,
			struct pp_prove_memory *m);
/*
 * What a bundle has kept of a run, and of the one that it was compared with; what belongs into
 * another bundle is borrowed from it. Nothing when it has none. 0 or an exit code.
 */
int pp_prove_memory_take(const struct pp_args *args, const struct pp_bundle *replayed,
			 struct pp_prove_memory *m);
/* m->child.bench is there: what it says of this node. 0 or an exit code. */
int pp_prove_memory_judge(struct pp_session *s, const struct pp_margins *margins,
			  struct pp_prove_memory *m);
/* Behind the gates: member "memory" in JSON. */
void pp_prove_memory_emit(struct pp_out *o, const struct pp_margins *margins,
			  const struct pp_prove_memory *m);
void pp_prove_memory_done(struct pp_prove_memory *m);

#endif
