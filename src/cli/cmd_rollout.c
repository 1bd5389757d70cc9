/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change on its way from a pair of nodes to a cluster: plan writes the file that people keep,
 * status reads it and the bundles that it names.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/near.h"
#include "base/parse.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/session.h"
#include "profile/rollout.h"
#include "profile/shelf.h"
#include "base/banned.h"

static int number(const struct pp_args *args, const char *option, unsigned int *ret)
{
	const char *text = pp_args_get(args, option);
	uint64_t n = 0;

	if (text && pp_parse_u64(text, 1, PP_ROLLOUT_NODES, &n))
		return pp_complain(args, PP_EXIT_USAGE, "--%s does not take '%s': 1 to %d", option,
				   text, PP_ROLLOUT_NODES);
	*ret = (unsigned int)n;
	return 0;
}

static int check_profile(const struct pp_args *args, const char *name)
{
	struct pp_profile *p = NULL;
	struct pp_error err = {0};
	int r = pp_shelf_load(name, &p, NULL, &err);

	pp_profile_free(p);
	return r ? pp_complain(args, PP_EXIT_INPUT, "%s", err.text) : 0;
}

static int plan(struct pp_session *s, const char *file)
{
	const char *from = pp_args_get(s->args, "from"), *to = pp_args_get(s->args, "to");
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_ROLLOUT_BYTES);
	struct pp_error err = {0};
	unsigned int pool, cluster;
	int code, r;

	if (!from || !to || !strcmp(from, to))
		return pp_complain(s->args, PP_EXIT_USAGE,
				   "'rollout plan' needs --from and --to: two profiles");
	code = check_profile(s->args, from);
	code = code ? code : check_profile(s->args, to);
	code = code ? code : number(s->args, "pool", &pool);
	code = code ? code : number(s->args, "cluster", &cluster);
	if (code)
		return code;
	pp_rollout_plan(from, to, pool, cluster, &text);
	r = pp_output_write(file, &text, pp_args_has(s->args, "force"), &err);
	if (r)
		return pp_complain(s->args, pp_exit_of_writing(r), "%s", err.text);
	pp_out_document(s->out, "peerpath.rollout/1");
	pp_out_str(s->out, "file", NULL, file);
	pp_out_para(s->out, 0,
		    "%s: put the paths of bundles into it; next: peerpath rollout status %s", file,
		    file);
	return PP_EXIT_PASS;
}

static void out_steps(struct pp_out *o, const struct pp_rollout *r,
		      const struct pp_rollout_status *st)
{
	static const struct pp_out_column columns[] = {{"step", "STEP", false},
						       {"state", "STATE", false},
						       {"nodes", "NODES", false},
						       {"needed", "OF", false},
						       {"why", "WHY", true}};

	pp_out_table(o, "steps", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < PP_STEPS; i++) {
		const struct pp_rollout_step *step = &st->step[i];
		struct pp_buf PP_AUTO_BUF why = PP_BUF(8192);

		if (i == PP_STEP_ROLLBACK && step->state == PP_STEP_WAITING)
			continue;
		for (unsigned int k = 0; k < step->n_why; k++)
			pp_buf_printf(&why, "%s%s", k ? "; " : "", step->why[k]);
		if (step->more)
			pp_buf_printf(&why, "; and %u more", step->more);
		pp_out_cell(o, pp_step_name((enum pp_step)i));
		pp_out_cell(o, pp_step_state_name(step->state));
		pp_out_cell_i64(o, step->nodes);
		if (r->nodes[i])
			pp_out_cell_i64(o, r->nodes[i]);
		else
			pp_out_cell(o, NULL);
		pp_out_cell(o, why.len ? pp_buf_text(&why) : NULL);
	}
	pp_out_table_end(o);
}

static void out_bundles(struct pp_out *o, const struct pp_rollout *r)
{
	static const struct pp_out_column columns[] = {
		{"step", "STEP", false},   {"role", "ROLE", false},   {"path", "BUNDLE", true},
		{"host", "NODE", false},   {"id", NULL, false},	      {"flavour", "MODULE", false},
		{"topology", NULL, false}, {"software", NULL, false}, {"simulated", NULL, false},
		{"error", NULL, false}};

	pp_out_heading(o, "Bundles");
	pp_out_table(o, "bundles", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < r->n; i++) {
		const struct pp_rollout_bundle *b = &r->bundle[i];

		pp_out_cell(o, pp_step_name(b->step));
		pp_out_cell(o, b->role == PP_ROLLOUT_AFTER   ? "after"
			       : b->step == PP_STEP_ROLLBACK ? "change"
							     : "before");
		pp_out_cell(o, b->path);
		pp_out_cell(o, b->host);
		pp_out_cell(o, b->id);
		pp_out_cell(o, b->flavour);
		pp_out_cell(o, b->topology);
		pp_out_cell(o, b->software);
		pp_out_cell_bool(o, b->simulated);
		pp_out_cell(o, b->error);
	}
	pp_out_table_end(o);
}

static int show(struct pp_session *s, const char *file, const struct pp_rollout *r)
{
	struct pp_rollout_status st;
	enum pp_verdict v;

	if (pp_rollout_judge(r, &st)) {
		pp_rollout_status_done(&st);
		return pp_complain(s->args, PP_EXIT_INTERNAL, "out of memory");
	}
	pp_out_document(s->out, "peerpath.rollout/1");
	pp_out_str(s->out, "file", NULL, file);
	pp_out_str(s->out, "from", "from", r->from);
	pp_out_str(s->out, "to", "to", r->to);
	pp_out_str(s->out, "through", "gates through", pp_gate_name(r->through));
	pp_out_bool(s->out, "simulation", NULL, r->simulation);
	if (!pp_out_is_json(s->out))
		pp_out_raw(s->out, "\n");
	out_steps(s->out, r, &st);
	if (r->n)
		out_bundles(s->out, r);
	pp_out_heading(s->out, "Status");
	v = st.verdict;
	pp_out_verdict(s->out, "verdict", "verdict", v);
	pp_out_str(s->out, "sentence", "status", st.sentence);
	pp_out_str(s->out, "next", "next", st.next);
	pp_rollout_status_done(&st);
	return pp_exit_of(s->args, v);
}

static int status(struct pp_session *s, const char *file)
{
	static const char *const of_plan[] = {"from", "to", "pool", "cluster", "force"};
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_ROLLOUT_BYTES);
	struct pp_rollout *r = NULL;
	struct pp_error err = {0};
	const char *slash = strrchr(file, '/');
	char dir[PATH_MAX];
	int code, e;

	for (size_t i = 0; i < PP_ARRAY_LEN(of_plan); i++)
		if (pp_args_has(s->args, of_plan[i]))
			return pp_complain(s->args, PP_EXIT_USAGE, "--%s goes with 'rollout plan'",
					   of_plan[i]);
	(void)snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - file) : 1,
		       slash ? file : ".");
	e = pp_input_read(file, &text, &err);
	e = e ? e : pp_rollout_parse(pp_input_name(file), pp_buf_text(&text), text.len, &r, &err);
	e = e ? e : pp_rollout_read(r, *dir ? dir : "/", &err);
	code = e ? pp_complain(s->args, e == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
			       err.text)
		 : show(s, file, r);
	pp_rollout_free(r);
	return code;
}

int pp_cmd_rollout(const struct pp_args *args)
{
	static const char *const words[] = {"plan", "status"};
	static int (*const actions[])(struct pp_session *, const char *) = {plan, status};
	const char *word = pp_args_operand(args, 0), *file = pp_args_operand(args, 1);
	struct pp_near near = PP_NEAR(word);
	struct pp_session s;
	size_t i = 0;
	int code;

	while (i < PP_ARRAY_LEN(words) && strcmp(words[i], word) != 0)
		pp_near_offer(&near, words[i++]);
	if (i == PP_ARRAY_LEN(words))
		return pp_complain(args, PP_EXIT_USAGE,
				   "unknown action '%.60s'%s%s%s; there are plan and status", word,
				   near.best ? ", did you mean '" : "", near.best ? near.best : "",
				   near.best ? "'" : "");
	code = pp_session_open_output(args, &s);
	code = code ? code : actions[i](&s, file);
	return pp_session_close(&s, code);
}
