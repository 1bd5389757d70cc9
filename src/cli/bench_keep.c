/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_keep.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/session.h"
#include "base/banned.h"

/* In place of a bundle that is not there, for prove to put into its own; NULL: none any more. */
static void keep_why(const struct pp_args *args, const char *id, const char *why)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(4096);
	struct pp_error err = {0};
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s.why", pp_args_get(args, "keep"), id);
	if (!why) {
		(void)unlink(path);
		return;
	}
	pp_buf_str(&text, why);
	(void)pp_output_write(path, &text, /* force= */ true, &err);
}

static int keep_record(const struct pp_args *args, struct pp_party *party, unsigned int i)
{
	const char *id = pp_party_node(party, i)->id;
	PP_AUTO_BUF struct pp_buf content = PP_BUF((size_t)64 << 20);
	PP_AUTO_FREE char *bytes = NULL;
	struct pp_error err = {0};
	char path[PATH_MAX];
	size_t len = 0;
	unsigned int lost;
	int r;

	/* Who is gone is not called again: a host that does not answer would take its time. */
	if (pp_party_lost(party, &lost, err.text, sizeof(err.text)) && lost == i)
		r = -ECONNRESET;
	else
		r = pp_party_record(party, i, &bytes, &len, &err);
	(void)snprintf(path, sizeof(path), "%s/%s.tar.zst", pp_args_get(args, "keep"), id);
	pp_buf_add(&content, bytes, len);
	if (!r)
		r = pp_output_write(path, &content, pp_args_has(args, "force"), &err);
	if (r != -EEXIST)
		keep_why(args, id, r ? err.text : NULL);
	return r && !pp_interrupted() ? pp_complain(args, PP_EXIT_INTERNAL,
						    "no bundle of node %s: %s", id, err.text)
				      : 0;
}

int pp_bench_keep(const struct pp_args *args, struct pp_party *party)
{
	int code = 0, one;

	if (!pp_args_has(args, "keep"))
		return 0;
	for (unsigned int i = 0; i < pp_party_size(party) && !pp_interrupted(); i++) {
		one = keep_record(args, party, i);
		code = code ? code : one;
	}
	return code;
}
