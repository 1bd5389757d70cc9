/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath canary: an application as it is now, measured the way a file declares, for a comparison
 * with itself after a change.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/capture.h"
#include "cli/canary.h"
#include "cli/interrupt.h"
#include "base/banned.h"

static struct pp_capture_options target(const struct pp_args *args)
{
	return (struct pp_capture_options){.path = pp_args_get(args, "output"),
					   .force = pp_args_has(args, "force"),
					   .stopped = pp_interrupted};
}

/* Where the bundle can not be written is said before the runs. */
static int check_target(const struct pp_args *args)
{
	const struct pp_capture_options options = target(args);
	struct pp_error err = {0};
	int r = pp_args_has(args, "output") ? pp_capture_check(&options, &err) : 0;

	return r ? pp_complain(args, pp_exit_of_writing(r), "%s", err.text) : 0;
}

static void emit(const struct pp_trial *t, struct pp_out *o)
{
	pp_out_document(o, "peerpath.canary/1");
	pp_out_str(o, "version", NULL, PEERPATH_VERSION);
	if (pp_out_is_json(o))
		pp_trial_write(pp_out_json(o), t);
	else
		pp_canary_text(o, t);
}

static int write_bundle(struct pp_canarying *c)
{
	const struct pp_session *s = c->session;
	char *PP_AUTO_FREE text = pp_canary_document(&c->trial);
	struct pp_bundle_file file = {"canary.json", text, text ? strlen(text) : 0};
	struct pp_capture_options options = target(c->args);
	struct pp_captured captured;
	struct pp_error err = {0};
	int r;

	if (!pp_args_has(c->args, "output"))
		return 0;
	if (!text)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	options.files = &file;
	options.n_files = 1;
	pp_capture_names(s->src);
	r = pp_capture_write(s->node, s->record, &options, &captured, &err);
	if (r)
		return pp_complain(c->args, pp_exit_of_writing(r), "%s", err.text);
	pp_out_str(s->out, "bundle", "bundle", captured.path);
	return 0;
}

static int examine(struct pp_canarying *c, struct pp_session *s)
{
	int code = pp_session_open(c->args, true, s);

	c->session = s;
	code = code ? code : pp_canarying_begin(c);
	code = code ? code : pp_canary_evidence(c);
	code = code ? code : pp_canarying_run(c);
	if (!code) {
		emit(&c->trial, s->out);
		code = write_bundle(c);
		s->answered = true;
	}
	if (!code && !pp_trial_valid(&c->trial))
		code = PP_EXIT_UNKNOWN;
	return pp_session_close(s, code);
}

int pp_cmd_canary(const struct pp_args *args)
{
	struct pp_canarying *c = calloc(1, sizeof(*c));
	const char *file = pp_args_get(args, "file");
	struct pp_session s = {0};
	int code;

	if (!c)
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	if (!file)
		code = pp_complain(args, PP_EXIT_USAGE,
				   "--file names what is measured; man peerpath-canary has one");
	else
		code = pp_canarying_open(c, args, file, pp_args_get(args, "repeats"), NULL, 0);
	code = code ? code : check_target(args);
	code = code ? code : examine(c, &s);
	pp_canarying_done(c);
	free(c);
	return code;
}
