/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/monitor_export.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "cli/session.h"
#include "base/banned.h"

/* node_exporter is scraped every 15 s at the most often. */
static const int64_t EACH_NS = 15 * PP_SECOND;
static const size_t STATE_BYTES = (size_t)64 << 20;

/* Is called between rounds only: the state is whole. */
static int page(void *ctx, enum pp_metrics_format format, struct pp_buf *to)
{
	const struct pp_monitor_export *e = ctx;
	struct pp_arena arena = PP_ARENA(STATE_BYTES);
	struct pp_state state;
	int r = e->monitor ? pp_monitor_state(e->monitor, &arena, &state) : -EAGAIN;

	if (!r)
		pp_metrics_write(&state, format, to);
	pp_arena_done(&arena);
	return r;
}

int pp_monitor_export_open(struct pp_monitor_export *e, const struct pp_args *args)
{
	const char *listen = pp_args_get(args, "listen");
	struct pp_error err = {0};
	int r;

	*e = (struct pp_monitor_export){.args = args, .textfile = pp_args_get(args, "textfile")};
	if (listen && pp_args_has(args, "once"))
		return pp_complain(args, PP_EXIT_USAGE, "--once and --listen exclude each other");
	if (pp_args_has(args, "show") && (listen || e->textfile))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--show looks at nothing: it takes no --listen and no "
				   "--textfile");
	r = e->textfile ? pp_file_replaceable(e->textfile) : 0;
	if (r)
		return pp_complain(args, PP_EXIT_INTERNAL, "--textfile '%s' cannot be written: %s",
				   e->textfile, pp_source_why(r));
	r = listen ? pp_exporter_open(listen, page, e, &e->exporter, &err) : 0;
	if (r)
		return pp_complain(args, r == -EINVAL ? PP_EXIT_USAGE : PP_EXIT_INTERNAL, "%s",
				   err.text);
	/* Of port 0 the kernel chose one. */
	if (listen && (!strcmp(listen, "0") || !strcmp(listen + strcspn(listen, ":"), ":0") ||
		       strstr(listen, "]:0")))
		(void)pp_complain(args, 0, "metrics at port %u", pp_exporter_port(e->exporter));
	return 0;
}

void pp_monitor_export_close(struct pp_monitor_export *e)
{
	e->exporter = pp_exporter_close(e->exporter);
}

void pp_monitor_export_round(struct pp_monitor_export *e, bool now)
{
	struct pp_arena arena = PP_ARENA(STATE_BYTES);
	struct pp_error err = {0};
	struct pp_state state;
	int r;

	if (!e->textfile || (!now && pp_clock_monotonic() < e->next_ns))
		return;
	e->next_ns = pp_clock_monotonic() + EACH_NS;
	r = pp_monitor_state(e->monitor, &arena, &state);
	if (!r)
		r = pp_metrics_textfile(&state, e->textfile, &err);
	if (r && r != e->failed)
		(void)pp_complain(e->args, 0, "%s", err.text[0] ? err.text : "out of memory");
	e->failed = r;
	pp_arena_done(&arena);
}
