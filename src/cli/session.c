/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/parse.h"
#include "bundle/replay.h"
#include "cli/interrupt.h"
#include "base/banned.h"

/* A capture holds a few MiB; the bound keeps a hostile tree from filling memory. */
static const size_t RECORD_LIMIT = (size_t)64 << 20;

int pp_complain(const struct pp_args *args, int code, const char *fmt, ...)
{
	const char *verb = pp_args_verb(args);
	bool bare = !strcmp(verb, "show");
	char line[1024];
	va_list ap;

	/* A read that a signal ended is no bad input: the exit status says it all. */
	if (code == PP_EXIT_INPUT && pp_interrupted())
		return PP_EXIT_INTERRUPTED;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pp_sanitize(line, false); /* names of files and their words may hold control bytes */
	(void)fprintf(stderr, "peerpath%s%s: %s\n", bare ? "" : " ", bare ? "" : verb, line);
	return code;
}

static int open_source(const struct pp_args *args, struct pp_source **ret, struct pp_error *err)
{
	if (pp_args_has(args, "replay"))
		return pp_replay_open(pp_args_get(args, "replay"), ret, err);
	if (pp_args_has(args, "root"))
		return pp_source_root(pp_args_get(args, "root"), ret, err);
	return pp_source_live(ret, err);
}

/* What the output is for in the end: of a process whose answer another relays, that one's. */
static int shown_on = STDOUT_FILENO;

void pp_session_show_on(int fd)
{
	shown_on = fd;
}

static bool want_color(const struct pp_args *args)
{
	const char *when = pp_args_get(args, "color"), *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (when && strcmp(when, "auto") != 0)
		return !strcmp(when, "always");
	return isatty(shown_on) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

/* Columns of the terminal; 0 = the default, for what is no terminal. */
static unsigned int terminal_width(void)
{
	struct winsize w;

	if (!isatty(shown_on) || ioctl(shown_on, TIOCGWINSZ, &w) || w.ws_col < 40)
		return 0;
	return w.ws_col;
}

int pp_session_open_output(const struct pp_args *args, struct pp_session *ret)
{
	*ret = (struct pp_session){.args = args};
	ret->out =
		pp_out_new(pp_args_has(args, "json"), stdout, terminal_width(), want_color(args));
	return ret->out ? 0 : pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
}

/* --deadline, where the verb has it: from now on. Usage error for what is no time. */
static int set_deadline(const struct pp_args *args, struct pp_source *src)
{
	const char *text = pp_args_knows(args, "deadline") ? pp_args_get(args, "deadline") : NULL;
	pp_ns limit;

	if (!text)
		return 0;
	if (pp_parse_duration(text, 24 * 3600 * PP_SECOND, &limit) || limit == 0)
		return pp_complain(
			args, PP_EXIT_USAGE,
			"--deadline does not take '%s': a time such as 30, 30s, 500ms or 2m", text);
	pp_source_set_deadline(src, pp_clock_monotonic() + limit);
	return 0;
}

int pp_session_open_source(const struct pp_args *args, struct pp_session *ret)
{
	struct pp_error err = {0};
	int r = pp_session_open_output(args, ret);

	if (r)
		return r;
	r = open_source(args, &ret->src, &err);
	if (r)
		return pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
				   err.text);
	return set_deadline(args, ret->src);
}

int pp_session_open(const struct pp_args *args, bool keep_record, struct pp_session *ret)
{
	struct pp_error err = {0};
	int r = pp_session_open_source(args, ret);

	if (r)
		return r;
	if (keep_record && pp_record_new(RECORD_LIMIT, &ret->record))
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	pp_source_set_record(ret->src, ret->record);
	r = pp_node_collect(ret->src, &ret->node, &err);
	if (r)
		return pp_complain(args, r == -EFBIG ? PP_EXIT_INPUT : PP_EXIT_INTERNAL, "%s",
				   err.text);
	return pp_interrupted() ? PP_EXIT_INTERRUPTED : 0;
}

int pp_session_close(struct pp_session *s, int code)
{
	bool done = s->answered || code == PP_EXIT_PASS || code == PP_EXIT_BAD ||
		    code == PP_EXIT_UNKNOWN;
	char text[128];
	int r;

	if (s->out && done) {
		r = pp_out_finish(s->out);
		/* A reader that has seen enough ("| head") takes nothing from the verdict. */
		if (r && r != -EPIPE)
			code = pp_complain(s->args, PP_EXIT_INTERNAL, "cannot write the output: %s",
					   pp_errno_text(r, text, sizeof(text)));
	}
	pp_out_free(s->out);
	pp_node_free(s->node);
	pp_source_free(s->src);
	pp_record_free(s->record);
	*s = (struct pp_session){0};
	return code;
}

int pp_exit_of(const struct pp_args *args, enum pp_verdict v)
{
	static const int codes[] = {
		[PP_PASS] = PP_EXIT_PASS,
		[PP_DEGRADED] = PP_EXIT_BAD,
		[PP_UNKNOWN] = PP_EXIT_UNKNOWN,
		[PP_FAIL] = PP_EXIT_BAD,
	};
	const char *on = pp_args_knows(args, "fail-on") ? pp_args_get(args, "fail-on") : NULL;

	if (v == PP_DEGRADED && on && !strcmp(on, "fail"))
		return PP_EXIT_PASS;
	return codes[v];
}

int pp_exit_of_writing(int error)
{
	switch (error) {
	case -EINTR:
		return PP_EXIT_INTERRUPTED;
	case -EEXIST:
	case -EINVAL:
		return PP_EXIT_USAGE;
	default:
		return PP_EXIT_INTERNAL;
	}
}
