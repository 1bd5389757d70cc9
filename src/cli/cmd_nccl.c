/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath nccl judge: reads logs as streams, whatever their length, and judges the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/nccl_show.h"
#include "cli/session.h"
#include "nccl/reader.h"
#include "base/banned.h"

enum { TEXT_WIDTH = 80 };

struct reading {
	struct pp_nccl_job job;
	struct pp_nccl_reader *reader;
};

static void take_line(void *ctx, const char *text, size_t len, uint64_t number)
{
	struct reading *r = ctx;

	r->reader->table = pp_nccl_job_line(&r->job, text, len, number);
}

static int stream(struct reading *r, int fd)
{
	char part[64 << 10];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part)))) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (pp_interrupted())
			return -EINTR;
		if (n > 0)
			pp_nccl_reader_feed(r->reader, part, (size_t)n);
	}
	pp_nccl_reader_end(r->reader);
	return 0;
}

static int read_log(const struct pp_args *args, struct reading *r, const char *file)
{
	int PP_AUTO_CLOSE opened = -1; /* alone: the attribute is of all declared with it */
	int fd = STDIN_FILENO, e;

	pp_nccl_job_file(&r->job, pp_input_name(file));
	if (strcmp(file, "-") != 0) {
		opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return pp_complain(args, PP_EXIT_INPUT, "%s: %s", file, strerror(errno));
		fd = opened;
	}
	e = stream(r, fd);
	if (e == -EINTR)
		return PP_EXIT_INTERRUPTED;
	return e ? pp_complain(args, PP_EXIT_INPUT, "%s: %s", pp_input_name(file), strerror(-e))
		 : 0;
}

static int exit_of(enum pp_nccl_claim claim)
{
	static const int codes[] = {
		[PP_NCCL_REFUTED] = PP_EXIT_BAD,
		[PP_NCCL_UNPROVEN] = PP_EXIT_UNKNOWN,
		[PP_NCCL_PROVEN] = PP_EXIT_PASS,
	};

	return codes[claim];
}

static int judge(const struct pp_args *args, struct pp_session *s, struct reading *r)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group group;
	int e;

	r->job.cut = r->reader->cut;
	e = pp_nccl_group_make(&r->job, &group);
	if (!e)
		e = pp_nccl_judge(&r->job, &group, &j);
	if (!e)
		pp_nccl_show(s->out, &r->job, &group, &j);
	pp_nccl_group_done(&group);
	return e ? pp_complain(args, PP_EXIT_INTERNAL, "out of memory") : exit_of(j.claim_gdr);
}

/* Text is made to be pasted into a ticket: never wider than a mail. */
static int open_output(const struct pp_args *args, struct pp_session *s)
{
	int code = pp_session_open_output(args, s);

	if (code || pp_out_is_json(s->out) || pp_out_width(s->out) <= TEXT_WIDTH)
		return code;
	pp_out_free(s->out);
	s->out = pp_out_new(false, stdout, TEXT_WIDTH, false);
	return s->out ? 0 : pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
}

int pp_cmd_nccl(const struct pp_args *args)
{
	struct reading r;
	struct pp_session s;
	int code;

	if (strcmp(pp_args_operand(args, 0), "judge") != 0)
		return pp_complain(args, PP_EXIT_USAGE, "no '%s' here; did you mean 'judge'?",
				   pp_args_operand(args, 0));
	code = open_output(args, &s);
	if (code)
		return pp_session_close(&s, code);
	pp_nccl_job_init(&r.job);
	r.reader = pp_nccl_reader_new(take_line, &r);
	if (!r.reader)
		code = pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 1; !code && i < pp_args_operands(args); i++)
		code = read_log(args, &r, pp_args_operand(args, i));
	if (!code)
		code = judge(args, &s, &r);
	pp_nccl_reader_free(r.reader);
	pp_nccl_job_done(&r.job);
	return pp_session_close(&s, code);
}
