/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "bundle/bundle.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/library_child.h"
#include "cli/nccl_run_text.h"
#include "cli/prove_logs.h"
#include "judge/control.h"
#include "base/banned.h"

static const size_t DOCUMENT_MOST = (size_t)64 << 20;

static int new_logs(struct pp_prove_library *l)
{
	l->kept = malloc(sizeof(*l->kept));
	if (l->kept)
		pp_prove_logs_init(l->kept);
	return l->kept ? 0 : -ENOMEM;
}

static int judge_logs(struct pp_prove_library *l, const struct pp_bundle *b, struct pp_error *err)
{
	return new_logs(l) ? pp_error_set(err, -ENOMEM, "out of memory")
			   : pp_prove_logs_judge(l->kept, b, l->runs, err);
}

/* Takes @text. @logs: of a bundle that is replayed; NULL none. */
static int take(struct pp_prove_library *l, char *text, size_t len, const struct pp_bundle *logs,
		struct pp_error *err)
{
	int r;

	l->document = text;
	l->len = len;
	l->runs = calloc(1, sizeof(*l->runs));
	l->gate = calloc(1, sizeof(*l->gate));
	r = l->runs && l->gate ? pp_nccl_runs_read(text, len, l->runs, err)
			       : pp_error_set(err, -ENOMEM, "out of memory");
	if (!r && logs)
		r = judge_logs(l, logs, err);
	if (!r)
		r = pp_gate_library_judge((const struct pp_nccl_run *const *)l->runs->arm, l->gate,
					  err);
	if (r) {
		free(l->gate);
		l->gate = NULL;
	}
	return r;
}

int pp_prove_library_take(struct pp_prove_library *l, char *text, size_t len, struct pp_error *err)
{
	return take(l, text, len, /* logs= */ NULL, err);
}

static int open_file(const struct pp_args *args, const char *file, struct pp_prove_library *l)
{
	struct pp_buf text = PP_BUF(DOCUMENT_MOST);
	struct pp_error err = {0};
	int r = pp_input_read(file, &text, &err);

	if (r) {
		pp_buf_done(&text);
		return pp_complain(args, PP_EXIT_INPUT, "--nccl: %s", err.text);
	}
	pp_buf_char(&text, '\0');
	if (text.failed) {
		pp_buf_done(&text);
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	}
	r = pp_prove_library_take(l, text.data, text.len - 1, &err);
	return r ? pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
			       "--nccl: %s: %s", file, err.text)
		 : 0;
}

/* Of each arm that ran something must be there: else another job's directory was named. */
static int open_logs(const struct pp_args *args, struct pp_prove_library *l)
{
	const char *dir = pp_args_get(args, "nccl-logs");

	if (!dir)
		return 0;
	if (new_logs(l) ||
	    pp_prove_logs_take(l->kept, dir, l->runs, secure_getenv("PEERPATH_TOKEN")))
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		if (l->runs->arm[i] && l->kept->arm[i].word == PP_PROVE_LOGS_NONE)
			return pp_complain(args, PP_EXIT_INPUT,
					   "--nccl-logs: %s/%s has no logs: of which run is this?",
					   dir, pp_nccl_arm_name((enum pp_nccl_arm)i));
	return 0;
}

/* A bundle without a job has none: no error. */
static int open_bundle(const struct pp_args *args, const struct pp_bundle *bundle,
		       struct pp_prove_library *l)
{
	const struct pp_bundle_file *file = pp_bundle_file(bundle, "nccl.json");
	struct pp_error err = {0};
	char *text;
	int r = 0;

	if (file) {
		text = strndup(file->data, file->len);
		r = text ? take(l, text, strlen(text), bundle, &err)
			 : pp_error_set(&err, -ENOMEM, "out of memory");
	}
	return r ? pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
			       "%s: nccl.json: %s", pp_args_get(args, "replay"), err.text)
		 : 0;
}

int pp_prove_library_open(const struct pp_args *args, const struct pp_bundle *replayed,
			  struct pp_prove_library *l)
{
	const char *file = pp_args_get(args, "nccl");

	*l = (struct pp_prove_library){.why = ""};
	if (file) {
		int code = open_file(args, file, l);

		return code ? code : open_logs(args, l);
	}
	if (pp_args_has(args, "nccl-logs"))
		return pp_complain(args, PP_EXIT_USAGE, "--nccl-logs goes with --nccl");
	return replayed ? open_bundle(args, replayed, l) : 0;
}

static bool is_of(const struct pp_nccl_run *r, const char *host)
{
	size_t n = strcspn(host, ".");

	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (strcspn(r->node[i].host, ".") == n && !strncmp(r->node[i].host, host, n))
			return true;
	return false;
}

int pp_prove_library_check(const struct pp_session *s, const struct pp_prove_library *l)
{
	char host[256] = "";

	/* Of a recording no name need be the one that it had. */
	if (!l->gate || pp_source_mode(s->src) != PP_SOURCE_LIVE ||
	    gethostname(host, sizeof(host) - 1) || !*host ||
	    is_of(l->runs->arm[PP_NCCL_ARM_UNCHANGED], host))
		return 0;
	return pp_complain(s->args, PP_EXIT_INPUT,
			   "--nccl: the job did not run on this node (%s): it says nothing of it",
			   host);
}

bool pp_prove_library_can(const struct pp_node *n)
{
	return pp_fact_int_or(n->self, PP_F_N_GPUS, 0) > 0;
}

int pp_prove_library_keep(const struct pp_args *args, struct pp_prove_library *l)
{
	struct pp_error err = {0};

	return pp_place_make(PP_PLACE_LOGS, &l->logs, &err)
		       ? pp_complain(args, PP_EXIT_INTERNAL, "%s", err.text)
		       : 0;
}

int pp_prove_library_simulate(const struct pp_args *args, const struct pp_node *n,
			      struct pp_prove_library *l)
{
	const struct pp_library_job job = {
		.simulate = true,
		.two_gpus =
			!pp_args_has(args, "gpu") && pp_fact_int_or(n->self, PP_F_N_GPUS, 0) > 1,
		.busy_ok = pp_args_has(args, "busy-ok"),
		.gpu = pp_args_get(args, "gpu"),
		.sizes = pp_args_get(args, "size"),
		.logs = l->logs.path[0] ? l->logs.path : NULL,
	};
	struct pp_library_done done = {0};
	struct pp_error err = {0};
	int e = pp_library_child_run(&job, &done);

	if (e)
		return pp_complain(args, PP_EXIT_INTERNAL, "nccl run: %s", strerrordesc_np(-e));
	if (pp_interrupted() || done.status == PP_EXIT_INTERRUPTED) {
		free(done.document);
		return PP_EXIT_INTERRUPTED;
	}
	(void)snprintf(l->why, sizeof(l->why), "%s", done.why);
	if (!done.document)
		return 0;
	if (pp_prove_library_take(l, done.document, done.len, &err))
		(void)snprintf(l->why, sizeof(l->why), "nccl run: %.380s", err.text);
	else if (l->gate->passed)
		l->why[0] = '\0';
	return pp_prove_library_logs(args, /* token= */ NULL, l);
}

int pp_prove_library_logs(const struct pp_args *args, const char *token, struct pp_prove_library *l)
{
	if (!l->gate || !l->logs.path[0])
		return 0;
	return new_logs(l) || pp_prove_logs_take(l->kept, l->logs.path, l->runs, token)
		       ? pp_complain(args, PP_EXIT_INTERNAL, "out of memory")
		       : 0;
}

void pp_prove_library_files(const struct pp_prove_library *l, struct pp_bundle_file *file,
			    size_t *n)
{
	_Static_assert(PP_PROVE_LIBRARY_FILES == 2 + PP_PROVE_LOG_FILES, "room for them");
	if (l->gate)
		file[(*n)++] = (struct pp_bundle_file){"nccl.json", l->document, l->len};
	for (size_t i = 0; l->gate && l->kept && i < l->kept->n_files; i++)
		file[(*n)++] = l->kept->file[i];
}

bool pp_prove_library_passed(const struct pp_prove_library *l)
{
	return l->gate && l->gate->passed;
}

void pp_prove_library_emit(struct pp_out *o, const struct pp_prove_library *l)
{
	if (!l->gate && !*l->why)
		return;
	if (pp_out_is_json(o)) {
		pp_out_open(o, "library");
		if (l->gate)
			pp_gate_library_write(pp_out_json(o), "gate", l->gate);
		else
			pp_out_str(o, "not_observed", NULL, l->why);
		if (l->kept)
			pp_prove_logs_emit(o, l->kept);
		pp_out_close(o);
		return;
	}
	pp_out_heading(o, l->gate && l->gate->simulated ? "Gate 3, simulated" : "Gate 3");
	if (l->gate)
		pp_nccl_run_text(o, (const struct pp_nccl_run *const *)l->runs->arm, l->gate,
				 l->why);
	else
		pp_out_para(o, 0, "not observed: %s", l->why);
	if (l->kept)
		pp_prove_logs_emit(o, l->kept);
}

void pp_prove_library_done(struct pp_prove_library *l)
{
	if (l->runs)
		pp_nccl_runs_done(l->runs);
	free(l->runs);
	free(l->gate);
	free(l->document);
	if (l->kept)
		pp_prove_logs_done(l->kept);
	free(l->kept);
	pp_place_done(&l->logs);
	*l = (struct pp_prove_library){.why = ""};
}
