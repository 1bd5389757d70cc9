/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath nccl run: a job under observation, and its controls.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/interrupt.h"
#include "cli/nccl_options.h"
#include "cli/nccl_run.h"
#include "cli/nccl_run_text.h"
#include "cli/output.h"
#include "cli/simulation.h"
#include "rdma/users.h"
#include "base/banned.h"

static const pp_ns TIMEOUT_MOST = 7 * 24 * 3600 * PP_SECOND;
static const size_t DOCUMENT_MOST = (size_t)64 << 20;

static int read_arms(struct pp_nccl_running *c)
{
	const char *arm = pp_args_get(c->args, "arm"), *net = pp_args_get(c->args, "net");
	bool controls = pp_args_has(c->args, "controls");
	enum pp_nccl_arm one = PP_NCCL_ARM_UNCHANGED;

	if (arm && controls)
		return pp_complain(c->args, PP_EXIT_USAGE, "--arm excludes --controls");
	if (arm)
		(void)pp_nccl_arm_parse(arm, &one);
	if (one == PP_NCCL_ARM_PINNED && !net)
		return pp_complain(c->args, PP_EXIT_USAGE, "--arm=pinned wants --net=NAME");
	if (arm && net && one != PP_NCCL_ARM_PINNED)
		return pp_complain(c->args, PP_EXIT_USAGE, "--net goes with --arm=pinned");
	if (net && (!*net || strlen(net) > 64 || !pp_is_text(net, strlen(net))))
		return pp_complain(c->args, PP_EXIT_USAGE, "--net does not take '%s'", net);
	c->arm[c->n_arms++] = one;
	for (int a = PP_NCCL_ARM_A; controls && a <= PP_NCCL_ARM_C; a++)
		c->arm[c->n_arms++] = (enum pp_nccl_arm)a;
	if (net && !arm)
		c->arm[c->n_arms++] = PP_NCCL_ARM_PINNED;
	return 0;
}

static int read_command(struct pp_nccl_running *c)
{
	size_t n = pp_args_operands(c->args);
	const char *foreign;

	if (n < 2)
		return pp_nccl_running_default(c);
	foreign = pp_nccl_options_foreign(c->args);
	if (foreign)
		return pp_complain(c->args, PP_EXIT_USAGE,
				   "--%s is of peerpath's own collectives, and CMD is given",
				   foreign);
	c->argv = calloc(n, sizeof(*c->argv));
	if (!c->argv)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 1; i < n; i++)
		c->argv[i - 1] = (char *)(uintptr_t)pp_args_operand(c->args, i);
	return 0;
}

static int read_timeout(struct pp_nccl_running *c)
{
	const char *text = pp_args_get(c->args, "timeout");

	if (text && (pp_parse_duration(text, TIMEOUT_MOST, &c->timeout) || !c->timeout))
		return pp_complain(c->args, PP_EXIT_USAGE,
				   "--timeout does not take '%s': a time such as 300, 90s or 10m",
				   text);
	return 0;
}

/* Who else uses a GPU or an hca of this node; "" nobody that is seen. */
static void find_users(struct pp_nccl_running *c, char *text, size_t size)
{
	struct pp_node *n = c->session.node;
	const struct pp_object *o = NULL;
	struct pp_answer users;

	*text = '\0';
	while (!*text && (o = pp_object_next(&n->facts, PP_GPU, o))) {
		int64_t contexts = pp_fact_int_or(o, PP_F_GPU_PROCESSES, 0);

		if (contexts > 0)
			(void)snprintf(text, size, "%lld process%s a context on GPU %s",
				       (long long)contexts, contexts > 1 ? "es have" : " has",
				       o->id);
	}
	if (*text || pp_users_ask(c->session.src, &users))
		return;
	while (!*text && (o = pp_object_next(&n->facts, PP_HCA, o))) {
		const char *uverbs = pp_fact_str_or(o, PP_F_HCA_UVERBS, "");
		int64_t pid = *uverbs ? pp_users_pid(&users, uverbs) : 0;

		if (pid)
			(void)snprintf(text, size, "process %lld has %s (%s) open", (long long)pid,
				       pp_fact_str_or(o, PP_F_HCA_NAME, o->id), uverbs);
	}
	pp_answer_done(&users);
}

static int check_users(struct pp_nccl_running *c)
{
	char text[160];

	find_users(c, text, sizeof(text));
	if (!*text)
		return 0;
	if (!pp_args_has(c->args, "busy-ok"))
		return pp_complain(c->args, PP_EXIT_UNKNOWN,
				   "this node is in use: %s (--busy-ok runs beside it)", text);
	c->busy = pp_arena_str(&c->session.node->arena, text);
	return pp_complain(c->args, 0, "this node is in use: %s", text);
}

static void write_document(struct pp_json *j, const struct pp_nccl_running *c)
{
	pp_json_array(j, "runs");
	for (unsigned int a = 0; a < PP_NCCL_ARMS; a++)
		if (c->run[a])
			pp_nccl_run_write(j, NULL, c->run[a]);
	pp_json_end_array(j);
	pp_json_bool(j, "busy_ok", c->busy != NULL);
	pp_json_str(j, "busy", c->busy);
}

static int save(struct pp_nccl_running *c)
{
	PP_AUTO_BUF struct pp_buf content = PP_BUF(DOCUMENT_MOST);
	const char *file = pp_args_get(c->args, "output");
	struct pp_json j = PP_JSON(&content, true);
	struct pp_error err = {0};
	int r;

	if (!file)
		return 0;
	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.nccl_run/1");
	write_document(&j, c);
	pp_json_end_object(&j);
	pp_buf_char(&content, '\n');
	r = pp_output_write(file, &content, pp_args_has(c->args, "force"), &err);
	return r ? pp_complain(c->args, r == -EEXIST ? PP_EXIT_USAGE : PP_EXIT_INTERNAL,
			       "--output %s", err.text)
		 : 0;
}

/* Interrupted is also who was at a terminal that the command had. */
static bool was_interrupted(const struct pp_nccl_running *c)
{
	bool any = pp_interrupted();

	for (unsigned int a = 0; a < PP_NCCL_ARMS; a++)
		for (uint32_t i = 0; c->run[a] && i < c->run[a]->n_nodes; i++)
			any = any || c->run[a]->node[i].interrupted;
	return any;
}

/* Gate 3 is of the user's own environment: controls alone are not judged, only shown. */
static int judge(struct pp_nccl_running *c)
{
	struct pp_error err = {0};
	int r;

	if (!c->run[PP_NCCL_ARM_UNCHANGED]) {
		(void)snprintf(c->not_judged, sizeof(c->not_judged),
			       "no run of the user's own environment is here; --join puts it and "
			       "its controls together");
		return 0;
	}
	c->gate = calloc(1, sizeof(*c->gate));
	if (!c->gate)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	r = pp_gate_library_judge((const struct pp_nccl_run *const *)c->run, c->gate, &err);
	return r ? pp_complain(c->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
			       err.text)
		 : 0;
}

static int exit_of(const struct pp_nccl_running *c)
{
	const struct pp_gate_library *g = c->gate;

	if (was_interrupted(c))
		return PP_EXIT_INTERRUPTED;
	for (unsigned int a = 0; a < PP_NCCL_ARMS; a++)
		for (uint32_t i = 0; c->run[a] && i < c->run[a]->n_nodes; i++)
			if (c->run[a]->node[i].status)
				return PP_EXIT_BAD;
	if (!g)
		return PP_EXIT_UNKNOWN;
	/* Who put the software device below a job asked for a simulation. */
	if (g->simulated)
		return g->passed ? PP_EXIT_PASS : PP_EXIT_BAD;
	return pp_exit_of(c->args, g->verdict);
}

static int report(struct pp_nccl_running *c)
{
	struct pp_out *o = c->session.out;
	const struct pp_nccl_run *first = c->run[c->n_arms ? c->arm[0] : PP_NCCL_ARM_UNCHANGED];
	int code = save(c);

	if (code || !first)
		return code;
	code = judge(c);
	if (code)
		return code;
	pp_out_document(o, "peerpath.nccl_run/1");
	if (pp_out_is_json(o))
		write_document(pp_out_json(o), c);
	pp_nccl_run_text(o, (const struct pp_nccl_run *const *)c->run, c->gate, c->not_judged);
	c->session.answered = true;
	return exit_of(c);
}

static int run_arms(struct pp_nccl_running *c)
{
	int code = 0;

	for (unsigned int i = 0; !code && i < c->n_arms && !was_interrupted(c); i++) {
		if (c->n_arms > 1 && !pp_args_has(c->args, "quiet"))
			(void)fprintf(stderr, "peerpath nccl run: %s (%u of %u)\n",
				      pp_nccl_arm_title(c->arm[i]), i + 1, c->n_arms);
		code = pp_nccl_running_arm(c, c->arm[i]);
	}
	return code;
}

/* One process of a node looks at the node, and before any of them has started the command. */
static int open_node(struct pp_nccl_running *c)
{
	int code;

	if (c->ranks.launch.local_size && c->ranks.launch.local_rank)
		return pp_session_open_source(c->args, &c->session);
	code = pp_session_open(c->args, /* keep_record= */ false, &c->session);
	return code ? code : check_users(c);
}

static int check_output(const struct pp_nccl_running *c)
{
	const char *file = pp_args_get(c->args, "output");
	struct pp_error err = {0};
	int r = file && !c->ranks.launch.rank
			? pp_output_check(file, pp_args_has(c->args, "force"), &err)
			: 0;

	return r ? pp_complain(c->args, r == -EEXIST ? PP_EXIT_USAGE : PP_EXIT_INTERNAL,
			       "--output %s", err.text)
		 : 0;
}

static int watch(struct pp_nccl_running *c)
{
	int code = read_arms(c), reported;

	code = code ? code : read_timeout(c);
	code = code ? code : pp_nccl_ranks_read(c);
	code = code ? code : read_command(c);
	/* no job of hours ends at a name that cannot be written */
	code = code ? code : check_output(c);
	code = code ? code : open_node(c);
	code = code ? code : pp_nccl_running_ready(c);
	if (!code) {
		pp_nccl_running_observer(c);
		code = run_arms(c);
	}
	if ((code && !was_interrupted(c)) || c->ranks.launch.rank)
		return code;
	reported = report(c);
	return code ? code : reported;
}

static int join(struct pp_nccl_running *c)
{
	int code = pp_nccl_running_join(c);

	if (!code)
		code = pp_session_open_output(c->args, &c->session);
	return code ? code : report(c);
}

int pp_cmd_nccl_run(const struct pp_args *args)
{
	struct pp_nccl_running c = {.args = args, .words = PP_ARENA(1 << 20)};
	bool simulate = pp_args_has(args, "simulate") && !pp_args_has(args, "join");
	int code;

	pp_simulation_settle();
	(void)sigprocmask(SIG_SETMASK, NULL, &c.mask);
	if (simulate && !pp_simulation_inside())
		return pp_simulation_enter(args);
	code = pp_args_has(args, "join") ? join(&c) : watch(&c);
	pp_simulation_leave();
	for (unsigned int a = 0; a < PP_NCCL_ARMS; a++)
		c.run[a] = pp_nccl_run_free(c.run[a]);
	pp_known_free(c.known);
	free(c.gate);
	free(c.argv);
	pp_arena_done(&c.words);
	return pp_session_close(&c.session, code);
}
