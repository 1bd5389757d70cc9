/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 0's process (or the only one) coordinates and prints; processes of other
 * ranks, by a launcher, serve it and print nothing.
 */
#include "cli/nccl_perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/interrupt.h"
#include "cli/nccl_perf_options.h"
#include "cli/nccl_perf_text.h"
#include "cli/output.h"
#include "cli/session.h"
#include "nccl/perf_rank.h"
#include "base/banned.h"

enum { DOCUMENT_MOST = 64 << 20 };

static void say(const char *text)
{
	(void)fprintf(stderr, "%s\n", text);
}

static struct pp_party_options party_of(const struct pp_nccl_perf_options *r)
{
	return (struct pp_party_options){.local = r->launched ? 1 : r->local,
					 .launch = r->launched ? &r->launch : NULL,
					 .token = r->launched ? r->token : NULL,
					 .service = {.agent = pp_perf_rank_serve},
					 .stopped = pp_interrupted,
					 .say = say};
}

static int exit_of_error(int error)
{
	switch (error) {
	case -EINTR:
		return PP_EXIT_INTERRUPTED;
	case -EINVAL:
	case -EOPNOTSUPP:
		return PP_EXIT_USAGE;
	case -ENOMEM:
		return PP_EXIT_INTERNAL;
	default:
		return PP_EXIT_UNKNOWN;
	}
}

static int exit_of(const struct pp_perf *p)
{
	if (p->interrupted)
		return PP_EXIT_INTERRUPTED;
	return p->verdict == PP_PASS   ? PP_EXIT_PASS
	       : p->verdict == PP_FAIL ? PP_EXIT_BAD
				       : PP_EXIT_UNKNOWN;
}

static int write_document(const struct pp_nccl_perf_options *r, const struct pp_perf *p,
			  const char *file)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(DOCUMENT_MOST);
	struct pp_json j = PP_JSON(&text, true);
	struct pp_error err = {0};
	int e;

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.nccl_perf/1");
	pp_perf_write(&j, p);
	pp_json_end_object(&j);
	pp_buf_str(&text, "\n");
	e = text.failed ? text.failed
			: pp_output_write(file, &text, pp_args_has(r->args, "force"), &err);
	return e ? pp_complain(r->args, PP_EXIT_INTERNAL, "--output-file: %s",
			       err.text[0] ? err.text : strerror(-e))
		 : 0;
}

static int print_document(const struct pp_nccl_perf_options *r, const struct pp_perf *p, int code)
{
	struct pp_session s;
	int e = pp_session_open_output(r->args, &s);

	if (!e) {
		pp_out_document(s.out, "peerpath.nccl_perf/1");
		pp_perf_write(pp_out_json(s.out), p);
		s.answered = true;
	}
	return pp_session_close(&s, e ? e : code);
}

static int report(const struct pp_nccl_perf_options *r, struct pp_perf *p)
{
	const char *file = pp_args_get(r->args, "output-file");
	int code = exit_of(p), e;

	p->launched_by = r->launched ? r->launch.by : NULL;
	if (pp_args_has(r->args, "json"))
		code = print_document(r, p, code);
	else
		pp_perf_text_notes(p);
	if (p->ended)
		(void)pp_complain(r->args, code, "%s", p->ended);
	e = file ? write_document(r, p, file) : 0;
	if (!e && ferror(stdout))
		e = pp_complain(r->args, PP_EXIT_INTERNAL, "standard output cannot be written");
	return e ? e : code;
}

static int coordinate(struct pp_nccl_perf_options *r)
{
	static const struct pp_perf_watch text = {.begin = pp_perf_text_begin,
						  .row = pp_perf_text_row,
						  .end = pp_perf_text_end,
						  .log = pp_perf_text_log};
	const struct pp_party_options o = party_of(r);
	bool json = pp_args_has(r->args, "json");
	struct pp_party *party = NULL;
	struct pp_perf *p = NULL;
	struct pp_error err = {0};
	int code, e = pp_party_gather(&o, &party, &err);

	if (!e)
		e = pp_perf_run(party, &r->options, json ? NULL : &text, &p, &err);
	pp_party_free(party);
	if (e)
		return pp_complain(r->args, exit_of_error(e), "%s", err.text);
	code = report(r, p);
	pp_perf_free(p);
	return code;
}

static int serve(struct pp_nccl_perf_options *r)
{
	const struct pp_party_options o = party_of(r);
	struct pp_error err = {0};
	int e = pp_party_serve_rank(&o, &err);

	return e ? pp_complain(r->args, exit_of_error(e), "%s", err.text) : 0;
}

int pp_nccl_perf(const struct pp_args *args)
{
	struct pp_nccl_perf_options *PP_AUTO_FREE r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	code = pp_nccl_perf_options_read(args, r);
	if (code)
		return code;
	return r->launched && r->launch.rank ? serve(r) : coordinate(r);
}
