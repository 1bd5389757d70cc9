/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command where none is given: this program's own `nccl perf`, with the options that it takes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/nccl_options.h"
#include "cli/nccl_run.h"
#include "nccl/library.h"
#include "nccl/perf_gpu.h"
#include "node/ask.h"
#include "rdma/location.h"
#include "base/banned.h"

enum { WORDS = 64 };
static const pp_ns DEADLINE = 30 * PP_SECOND;

static int add(struct pp_nccl_running *c, const char *word)
{
	size_t n = 0;

	while (c->argv[n])
		n++;
	if (!word || n == WORDS)
		return -ENOMEM;
	c->argv[n] = (char *)(uintptr_t)word;
	return 0;
}

static int add_options(struct pp_nccl_running *c)
{
	int bad = 0;

	for (const struct pp_option *o = pp_nccl_options_table; o->name && !bad; o++) {
		const char *value = pp_args_get(c->args, o->name);

		if (!pp_nccl_options_of(o->name, "perf") || pp_nccl_options_own(o->name) ||
		    !pp_args_has(c->args, o->name))
			continue;
		bad = add(c, pp_arena_printf(&c->words, "--%s%s%s", o->name, value ? "=" : "",
					     value ? value : ""));
	}
	return bad;
}

int pp_nccl_running_default(struct pp_nccl_running *c)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int bad;

	self[n < 0 ? 0 : n] = '\0';
	if (!pp_args_has(c->args, "gpus") && !pp_args_has(c->args, "ranks") &&
	    !pp_nccl_ranks_many(&c->ranks))
		return pp_complain(c->args, PP_EXIT_USAGE,
				   "which command? nccl run -- CMD [ARG]...; without one "
				   "peerpath's own collectives: --gpus N, --ranks N --one-gpu, or "
				   "a launcher");
	c->argv = calloc(WORDS + 1, sizeof(*c->argv));
	if (!c->argv)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	c->own = true;
	bad = add(c, pp_arena_str(&c->words, self));
	bad = bad ? bad : add(c, "nccl");
	bad = bad ? bad : add(c, "perf");
	bad = bad ? bad : add_options(c);
	return bad ? pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory") : 0;
}

/* In a helper: what the command cannot do without, by the code that the command uses. */
static int run_ready(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct pp_nccl_library library;
	struct pp_perf_gpu gpu;
	int r;

	(void)data;
	pp_ask_doing("loading libnccl");
	r = pp_nccl_library_open(arg, &library, err);
	pp_ask_doing("a look for a GPU");
	return r ? r : pp_perf_gpu_find(/* bdf= */ NULL, 0, &gpu, err);
}

int pp_nccl_running_ready(struct pp_nccl_running *c)
{
	const struct pp_question q = {.name = "nccl-perf-ready",
				      .run = run_ready,
				      .arg = pp_args_get(c->args, "library"),
				      .deadline = DEADLINE};
	struct pp_answer a;
	int code = 0;

	if (!c->own)
		return 0;
	if (pp_ask(c->session.src, &q, &a))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	if (!a.answered)
		code = pp_complain(c->args, PP_EXIT_UNKNOWN, "%s", a.detail);
	pp_answer_done(&a);
	return code;
}

int pp_nccl_running_meet(struct pp_nccl_running *c, struct pp_nccl_environment *e)
{
	const struct pp_launch *l = &c->ranks.launch;
	struct pp_error err = {0};
	struct pp_location at;
	char text[300];

	if (!c->own || !pp_nccl_ranks_many(&c->ranks) ||
	    pp_location_parse(l->coordinator, 0, &at, &err))
		return 0;
	(void)snprintf(text, sizeof(text), strchr(at.host, ':') ? "[%s]:%u" : "%s:%u", at.host,
		       at.port ? at.port % 65535 + 1 : pp_launch_port(l, PP_LAUNCH_PORTS - 1));
	return pp_nccl_environment_set(e, "PEERPATH_COORDINATOR", text);
}
