/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 4 of `prove`: a command run as a canary file declares, set beside what was before a change
 * where that is given, and both into the bundle.
 */
#ifndef PP_CLI_PROVE_APPLICATION_H
#define PP_CLI_PROVE_APPLICATION_H

#include "bundle/bundle.h"
#include "cli/canary.h"
#include "cli/compare_input.h"
#include "judge/application.h"

/* canary.json, and of each result of before one */
enum { PP_PROVE_APPLICATION_FILES = 1 + PP_COMPARISON_TRIALS };

struct pp_prove_application {
	bool asked;		    /* there is a command to run */
	struct pp_canarying canary; /* its trial is the gate's, also when replayed */
	struct pp_trials before;
	struct pp_comparison comparison;
	bool compared;
	struct pp_gate_application *gate; /* NULL: nothing was measured */
	char why[256];			  /* nothing was measured though asked for; "" none */
	char *document[PP_PROVE_APPLICATION_FILES];
	char name[PP_PROVE_APPLICATION_FILES][32];
};

/*
 * Reads --canary and --before, or what @replayed (NULL) holds, before anything runs. With
 * --simulate the command is one of the software device. 0 or an exit code; done() frees either way.
 */
int pp_prove_application_open(const struct pp_args *args, const struct pp_bundle *replayed,
			      struct pp_prove_application *a);
/* Runs it. @library: what was found of the job's path; NULL. 0 or an exit code. */
struct pp_prove_library;
int pp_prove_application_run(const struct pp_session *s, const struct pp_prove_library *library,
			     struct pp_prove_application *a);
/* Behind the gates: member "application" in JSON. Nothing where none was asked for. */
void pp_prove_application_emit(struct pp_out *o, const struct pp_prove_application *a);
/* What goes into the bundle, behind @n of @file that are there; there is room. 0 or -ENOMEM. */
int pp_prove_application_files(struct pp_prove_application *a, struct pp_bundle_file *file,
			       size_t *n);
void pp_prove_application_done(struct pp_prove_application *a);

#endif
