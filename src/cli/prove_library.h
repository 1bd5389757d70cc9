/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3 of `prove`: a job that was watched (--nccl), the one of a bundle that is replayed, or, in
 * a simulation on a node with a GPU, one that is run here on the software device.
 */
#ifndef PP_CLI_PROVE_LIBRARY_H
#define PP_CLI_PROVE_LIBRARY_H

#include "cli/place.h"
#include "cli/session.h"

struct pp_bundle;
struct pp_bundle_file;
struct pp_gate_library;
struct pp_nccl_runs;
struct pp_prove_logs;

/* In a bundle: nccl.json, nccl/logs.json and logs. */
enum { PP_PROVE_LIBRARY_FILES = 2 + 1024 };

struct pp_prove_library {
	char *document; /* owned; of nccl run; NULL none */
	size_t len;
	struct pp_nccl_runs *runs;    /* owned; of the document */
	struct pp_gate_library *gate; /* owned; NULL: there was no job, @why says why */
	char why[400];
	struct pp_place logs;	    /* of the job that runs here, by arm; none: "" */
	struct pp_prove_logs *kept; /* owned: those for the bundle, or of it; NULL none */
};

/* Reads --nccl, or what @replayed (NULL) holds, and judges it. 0 or an exit code. */
int pp_prove_library_open(const struct pp_args *args, const struct pp_bundle *replayed,
			  struct pp_prove_library *l);
/* Is this node one of the job's? 0 or an exit code after one line. */
int pp_prove_library_check(const struct pp_session *s, const struct pp_prove_library *l);
/* Can one be run here: a simulation needs a GPU. */
bool pp_prove_library_can(const struct pp_node *n);
/* Reads and judges a document; takes @text, also on failure: then there is no gate. */
int pp_prove_library_take(struct pp_prove_library *l, char *text, size_t len, struct pp_error *err);
/* Before one runs here: a place for its logs. 0 or an exit code. */
int pp_prove_library_keep(const struct pp_args *args, struct pp_prove_library *l);
/* Runs one on the software device, and judges it. 0 or an exit code. */
int pp_prove_library_simulate(const struct pp_args *args, const struct pp_node *n,
			      struct pp_prove_library *l);
/* After the job: its logs, for the bundle. @token: the run's. 0 or an exit code. */
int pp_prove_library_logs(const struct pp_args *args, const char *token,
			  struct pp_prove_library *l);
/* What of it belongs into the bundle: appended to @file. */
void pp_prove_library_files(const struct pp_prove_library *l, struct pp_bundle_file *file,
			    size_t *n);
/* Did a simulated job do all that it must? */
bool pp_prove_library_passed(const struct pp_prove_library *l);
/* Behind the gates: member "library" in JSON. Nothing where no job was asked for. */
void pp_prove_library_emit(struct pp_out *o, const struct pp_prove_library *l);
void pp_prove_library_done(struct pp_prove_library *l);

#endif
