/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath nccl judge: reads logs as streams, whatever their length, and judges the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/nccl_options.h"
#include "cli/nccl_perf.h"
#include "cli/nccl_run.h"
#include "cli/nccl_show.h"
#include "cli/session.h"
#include "nccl/feed.h"
#include "base/banned.h"

enum { TEXT_WIDTH = 80 };

static void push(void *arg, const char *bytes, size_t len)
{
	pp_nccl_feed_push(arg, bytes, len);
}

static int read_log(const struct pp_args *args, struct pp_nccl_feed *f, const char *file)
{
	int PP_AUTO_CLOSE opened = -1; /* alone: the attribute is of all declared with it */
	const char *why = NULL;
	int fd = STDIN_FILENO, e;

	pp_nccl_feed_file(f, pp_input_name(file));
	if (strcmp(file, "-") != 0) {
		opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return pp_complain(args, PP_EXIT_INPUT, "'%s': %s", file, strerror(errno));
		fd = opened;
	}
	e = pp_input_stream(fd, push, f, &why);
	if (!e)
		pp_nccl_feed_end(f);
	if (e == -EINTR)
		return PP_EXIT_INTERRUPTED;
	return e ? pp_complain(args, PP_EXIT_INPUT, "%s: %s", pp_input_name(file),
			       why ? why : strerror(-e))
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

static int judge(const struct pp_args *args, struct pp_session *s, struct pp_nccl_feed *f)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group group;

	if (pp_nccl_feed_judge(f, &group, &j))
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	pp_nccl_show(s->out, &f->job, &group, &j);
	pp_nccl_group_done(&group);
	return exit_of(j.claim_gdr);
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

/* False: the nearest of them is in *ret_near. */
static bool is_operation(const char *word, const char **ret_near)
{
	static const char *const all[] = {"judge", "run", "perf"};
	struct pp_near near = PP_NEAR(word);

	for (size_t i = 0; i < PP_ARRAY_LEN(all); i++) {
		if (!strcmp(all[i], word))
			return true;
		pp_near_offer(&near, all[i]);
	}
	*ret_near = near.best ? near.best : all[0];
	return false;
}

int pp_cmd_nccl(const struct pp_args *args)
{
	const char *near;
	struct pp_nccl_feed f;
	struct pp_session s;
	int code;

	if (!is_operation(pp_args_operand(args, 0), &near))
		return pp_complain(args, PP_EXIT_USAGE, "no '%s' here; did you mean '%s'?",
				   pp_args_operand(args, 0), near);
	code = pp_nccl_options_check(args);
	if (code)
		return code;
	if (!strcmp(pp_args_operand(args, 0), "run"))
		return pp_cmd_nccl_run(args);
	if (!strcmp(pp_args_operand(args, 0), "perf"))
		return pp_nccl_perf(args);
	if (pp_args_operands(args) < 2)
		return pp_complain(args, PP_EXIT_USAGE, "judge wants LOG...; - is standard input");
	code = open_output(args, &s);
	if (code)
		return pp_session_close(&s, code);
	if (pp_nccl_feed_init(&f))
		code = pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 1; !code && i < pp_args_operands(args); i++)
		code = read_log(args, &f, pp_args_operand(args, i));
	if (!code)
		code = judge(args, &s, &f);
	pp_nccl_feed_done(&f);
	return pp_session_close(&s, code);
}
