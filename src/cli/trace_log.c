/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/session.h"
#include "base/banned.h"

static const size_t LOG_LIMIT = (size_t)256 << 20;

static void lines(struct pp_trace_logs *l, const char *file, const char *text, size_t len)
{
	uint32_t number = 1;

	for (const char *end; len; number++) {
		size_t n = (end = memchr(text, '\n', len)) ? (size_t)(end - text) : len;

		pp_log_line(&l->claims, file, number, text, n);
		n += end != NULL;
		text += n;
		len -= n;
	}
}

static int read_one(const struct pp_args *args, const char *file, struct pp_trace_logs *l)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(LOG_LIMIT);
	struct pp_error err = {0};
	const char *why;

	if (pp_input_read(file, &text, &err))
		return pp_complain(args, PP_EXIT_INPUT, "%s", err.text);
	why = pp_input_not_text(pp_buf_text(&text), text.len);
	if (why)
		return pp_complain(args, PP_EXIT_INPUT, "%s: %s", pp_input_name(file), why);
	lines(l, pp_input_name(file), pp_buf_text(&text), text.len);
	pp_nccl_feed_file(l->feed, pp_input_name(file));
	pp_nccl_feed_push(l->feed, pp_buf_text(&text), text.len);
	pp_nccl_feed_end(l->feed);
	return 0;
}

int pp_trace_logs_read(const struct pp_args *args, struct pp_trace_logs *l)
{
	size_t n = pp_args_count(args, "log");
	int code = 0;

	if (!n)
		return 0;
	l->feed = calloc(1, sizeof(*l->feed));
	if (!l->feed || pp_nccl_feed_init(l->feed))
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 0; !code && i < n; i++)
		code = read_one(args, pp_args_nth(args, "log", i), l);
	return code;
}

/* As NCCL writes it: up to the first dot. */
static void host_name(char *buf, size_t size)
{
	if (gethostname(buf, size))
		buf[0] = '\0';
	buf[size - 1] = '\0';
	buf[strcspn(buf, ".")] = '\0';
}

int pp_trace_logs_judge(const struct pp_args *args, const struct pp_trace_table *t,
			struct pp_trace_logs *l)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group group;
	char host[256] = "";

	if (!l->feed)
		return 0;
	if (pp_nccl_feed_judge(l->feed, &group, &j))
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	/* Of a recording the name is another machine's, and may be scrubbed. */
	if (!pp_args_has(args, "replay") && !pp_args_has(args, "root"))
		host_name(host, sizeof(host));
	pp_log_judge_lines(&l->claims, t);
	pp_log_judge_nccl(&l->claims, t, &l->feed->job, &j, host);
	pp_nccl_group_done(&group);
	return 0;
}

void pp_trace_logs_done(struct pp_trace_logs *l)
{
	if (l->feed)
		pp_nccl_feed_done(l->feed);
	free(l->feed);
	*l = (struct pp_trace_logs){0};
}

bool pp_trace_logs_refuted(const struct pp_trace_logs *l)
{
	return pp_log_refuted(&l->claims);
}

void pp_trace_logs_show(struct pp_out *o, const struct pp_trace_logs *l)
{
	static const struct pp_out_column columns[] = {
		{NULL, "LOG SAYS", true},
		{NULL, "STATE", false},
		{NULL, "WHY", true},
	};

	if (!l->feed)
		return;
	pp_out_heading(o, "Logs against the kernel");
	if (!l->claims.n)
		pp_out_para(o, 0, "They say nothing of registrations.");
	if (!l->claims.n)
		return;
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < l->claims.n; i++) {
		const struct pp_log_claim *c = &l->claims.item[i];

		if (*c->file)
			pp_out_cellf(o, "%s:%" PRIu32 ": %s", c->file, c->line, c->text);
		else
			pp_out_cell(o, c->text);
		pp_out_cell(o, pp_log_state_name(c->state));
		pp_out_cell(o, c->why);
	}
	pp_out_table_end(o);
	if (l->claims.more)
		pp_out_para(o, 0, "%" PRIu64 " more such lines.", l->claims.more);
}

void pp_trace_logs_write(struct pp_json *j, const char *key, const struct pp_trace_logs *l)
{
	pp_log_write(j, key, &l->claims);
}
