/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of this node: what the collectors read, so that it can be examined elsewhere.
 */
#include <string.h>

#include "bundle/capture.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "node/node.h"
#include "trace/trace.h"
#include "base/banned.h"

enum { UNREADABLE_SHOWN = 20 };

/* What could not be read, so that nobody takes a lack of rights for a lack of hardware. */
static void unreadable(struct pp_session *s)
{
	static const struct pp_out_column columns[] = {{"error", "ERROR", false},
						       {"path", "NOT READ", true}};
	bool json = pp_out_is_json(s->out);
	const struct pp_entry *e;
	size_t n, shown = 0, all = 0;

	e = pp_record_entries(s->record, &n);
	for (size_t i = 0; i < n; i++)
		all += e[i].kind == PP_ENTRY_ERROR;
	if (!all && !json)
		return;
	if (!json)
		pp_out_raw(s->out, "\n");
	pp_out_table(s->out, "unreadable", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < n && (json || shown < UNREADABLE_SHOWN); i++) {
		if (e[i].kind != PP_ENTRY_ERROR)
			continue;
		pp_out_cell(s->out, pp_errno_name(e[i].error));
		pp_out_cell(s->out, e[i].path);
		shown++;
	}
	pp_out_table_end(s->out);
	if (shown < all)
		pp_out_para(s->out, 2, "  and %zu more: see raw.errors in the bundle", all - shown);
}

static void report(struct pp_session *s, const struct pp_captured *c, bool scrub)
{
	pp_out_document(s->out, "peerpath.capture/1");
	pp_out_str(s->out, "path", "written", c->path);
	pp_out_str(s->out, "id", "id", c->written.id);
	pp_out_str(s->out, "host", "host", c->host);
	pp_out_u64(s->out, "files", "files", c->written.files);
	pp_out_u64(s->out, "links", "links", c->written.links);
	pp_out_u64(s->out, "directories", "directories", c->written.directories);
	pp_out_u64(s->out, "bytes", "bytes", c->written.bytes);
	pp_out_bool(s->out, "complete", c->left_out ? "complete" : NULL, !c->left_out);
	pp_out_u64(s->out, "left_out", c->left_out ? "left out" : NULL, c->left_out);
	pp_out_bool(s->out, "scrubbed", "scrubbed", scrub);
	pp_out_u64(s->out, "replaced", scrub ? "values replaced" : NULL, c->scrubbed.replaced);
	pp_out_u64(s->out, "binary_dropped", scrub ? "binary files dropped" : NULL,
		   c->scrubbed.dropped);
	unreadable(s);
}

/* Who has registered what now, so that trace replays, too. No probe: a recording only reads. */
static int ask_trace(struct pp_session *s)
{
	const struct pp_trace_options options = {.pid = 0};
	struct pp_trace t;

	/* a made /sys: netlink would be asked of another machine's devices */
	if (pp_node_simulated(s->node))
		return 0;
	if (pp_trace_look(s->src, &options, &t))
		return pp_complain(s->args, PP_EXIT_INTERNAL, "out of memory");
	pp_trace_done(&t);
	return 0;
}

int pp_cmd_capture(const struct pp_args *args)
{
	struct pp_capture_options options = {.path = pp_args_get(args, "output"),
					     .scrub = pp_args_has(args, "scrub"),
					     .force = pp_args_has(args, "force"),
					     .stopped = pp_interrupted};
	struct pp_captured captured;
	struct pp_session s;
	struct pp_error err = {0};
	int code, r = pp_capture_check(&options, &err);

	if (r)
		return pp_complain(args, pp_exit_of_writing(r), "%s; -o names another place",
				   err.text);
	code = pp_session_open(args, true, &s);
	if (!code)
		code = ask_trace(&s);
	if (code)
		return pp_session_close(&s, code);
	pp_capture_names(s.src);
	r = pp_capture_write(s.node, s.record, &options, &captured, &err);
	if (r)
		return pp_session_close(&s,
					pp_complain(args, pp_exit_of_writing(r), "%s", err.text));
	report(&s, &captured, options.scrub);
	return pp_session_close(&s, PP_EXIT_PASS);
}
