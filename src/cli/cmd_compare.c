/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath compare: a workload before a change beside itself after it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/page_comparison.h"
#include "cli/compare_input.h"
#include "cli/compare_text.h"
#include "cli/output.h"
#include "cli/session.h"
#include "base/banned.h"

static int load(const struct pp_args *args, struct pp_trials side[2])
{
	static const char *const more[2] = {"before", "after"};
	struct pp_error err = {0};
	int r = 0;

	for (int i = 0; !r && i < 2; i++) {
		r = pp_trials_add(&side[i], pp_args_operand(args, (size_t)i), &err);
		for (size_t k = 0; !r && k < pp_args_count(args, more[i]); k++)
			r = pp_trials_add(&side[i], pp_args_nth(args, more[i], k), &err);
	}
	return r ? pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
			       err.text)
		 : 0;
}

static int write_page(const struct pp_args *args, const struct pp_comparison *c,
		      const struct pp_trials side[2])
{
	PP_AUTO_BUF struct pp_buf content = PP_BUF((size_t)64 << 20);
	PP_AUTO_FREE char *page = NULL;
	const char *file = pp_args_get(args, "html");
	struct pp_error err = {0};
	int e;

	if (!file)
		return 0;
	e = pp_page_comparison(c, side[0].trial, side[0].n, side[1].trial, side[1].n, &page);
	if (!e) {
		pp_buf_str(&content, page);
		e = pp_output_write(file, &content, pp_args_has(args, "force"), &err);
	}
	return e ? pp_complain(args, e == -EEXIST ? PP_EXIT_USAGE : PP_EXIT_INTERNAL,
			       "--html %s: %s", file, err.text[0] ? err.text : strerror(-e))
		 : 0;
}

static int compare(const struct pp_args *args, struct pp_session *s, const struct pp_trials side[2])
{
	struct pp_comparison c;
	int code;

	if (pp_comparison_make(side[0].trial, side[0].n, side[1].trial, side[1].n, &c))
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	pp_out_document(s->out, "peerpath.comparison/1");
	if (pp_out_is_json(s->out))
		pp_comparison_write(pp_out_json(s->out), &c);
	else
		pp_compare_text(s->out, &c, "Verdict");
	code = write_page(args, &c, side);
	code = code ? code : pp_exit_of(args, c.verdict);
	pp_comparison_done(&c);
	return code;
}

int pp_cmd_compare(const struct pp_args *args)
{
	struct pp_trials *side = calloc(2, sizeof(*side));
	struct pp_session s;
	int code = pp_session_open_output(args, &s);

	if (!side)
		code = pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	code = code ? code : load(args, side);
	code = code ? code : compare(args, &s, side);
	code = pp_session_close(&s, code);
	for (int i = 0; side && i < 2; i++)
		pp_trials_done(&side[i]);
	free(side);
	return code;
}
