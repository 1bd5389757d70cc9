/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath explain: text of a log, or words on the command line, to causes. Read-only: facts come
 * from the collectors; --check also runs the deciding commands that only read.
 */
#include "cli/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/explain_nccl.h"
#include "cli/explain_run.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "base/banned.h"

struct explaining {
	const struct pp_args *args;
	struct pp_session s;
	struct pp_known_set *known;
	struct pp_policy *policy;
	struct pp_explain *reader;
	struct pp_explanation x;
	struct pp_explain_nccl nccl;
	bool words; /* the operands are the text */
};

static bool is_file(const char *operand)
{
	struct stat st;

	return !strcmp(operand, "-") || (!stat(operand, &st) && !S_ISDIR(st.st_mode));
}

/* A path that does not exist is a mistake, not a text. */
static bool is_path(const char *operand)
{
	static const char *const starts[] = {"/", "./", "../", "~/"};

	for (size_t i = 0; i < PP_ARRAY_LEN(starts); i++)
		if (!strncmp(operand, starts[i], strlen(starts[i])))
			return !strpbrk(operand, " \t\n");
	return false;
}

/* Operands are files when each of them is one; else they are the text. */
static bool are_words(const struct pp_args *args)
{
	size_t n = pp_args_operands(args);

	for (size_t i = 0; i < n; i++)
		if (!is_file(pp_args_operand(args, i)))
			return true;
	return false;
}

static void push(void *arg, const char *bytes, size_t len)
{
	struct explaining *e = arg;

	pp_explain_push(e->reader, bytes, len);
	pp_explain_nccl_push(&e->nccl, bytes, len);
}

static int read_file(struct explaining *e, const char *file)
{
	int PP_AUTO_CLOSE opened = -1; /* alone: the attribute is of all declared with it */
	int fd = STDIN_FILENO, r;
	const char *why = NULL;
	char text[128];

	if (strcmp(file, "-") != 0) {
		opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		fd = opened;
	}
	r = fd < 0 ? -errno : pp_input_stream(fd, push, e, &why); /* a directory: EISDIR */
	if (!r)
		push(e, "\n", 1);
	if (r == -EINTR)
		return PP_EXIT_INTERRUPTED;
	return r ? pp_complain(e->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s: %s",
			       pp_input_name(file),
			       why ? why : pp_errno_text(r, text, sizeof(text)))
		 : 0;
}

static int read_text(struct explaining *e)
{
	size_t n = pp_args_operands(e->args);
	int code = 0;

	if (!n)
		return read_file(e, "-");
	e->words = are_words(e->args) && !is_path(pp_args_operand(e->args, 0));
	for (size_t i = 0; i < n && !code; i++) {
		const char *operand = pp_args_operand(e->args, i);

		if (!e->words) {
			code = read_file(e, operand);
			continue;
		}
		push(e, operand, strlen(operand));
		push(e, i + 1 < n ? " " : "\n", 1);
	}
	return code;
}

/* Facts of a machine that has nothing to do with RDMA cannot be those of the text. */
static bool facts_matter(const struct pp_node *n)
{
	const struct pp_fact *without = pp_fact_get(n->self, PP_F_RDMA_FUNCTIONS_WITHOUT);

	return pp_fact_int_or(n->self, PP_F_N_HCAS, 0) > 0 ||
	       (without && without->known && without->list[0]);
}

static bool asks_facts(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct pp_known *k = x->list[i].known;

		if (k->rule.n_when + k->rule.n_unless + k->n_templates + k->rule.n_show +
		    k->n_ranges)
			return true;
	}
	return false;
}

static int narrow(struct explaining *e, struct pp_explain_page *page)
{
	const char *given = pp_args_has(e->args, "replay") ? "replay" : "root";
	bool told = pp_args_has(e->args, "replay") || pp_args_has(e->args, "root");
	int code;

	page->facts_name = "of no node (--no-node)";
	if (pp_args_has(e->args, "no-node"))
		return pp_session_open_output(e->args, &e->s);
	page->facts_name = "none are needed";
	if (!told && !pp_args_has(e->args, "check") && !asks_facts(&e->x))
		return pp_session_open_output(e->args, &e->s);
	code = pp_session_open(e->args, false, &e->s);
	if (code)
		return code;
	page->facts_name = told ? pp_args_get(e->args, given)
				: "of this node; --no-node when the text is from another one";
	if (!told && !facts_matter(e->s.node)) {
		page->facts_name = "not used: this node has no RDMA device, so the text is from "
				   "another one";
		return 0;
	}
	page->facts = &e->s.node->facts;
	pp_explanation_done(&e->x);
	if (pp_args_has(e->args, "here"))
		pp_explain_here(e->reader);
	return pp_explain_finish(e->reader, page->facts, &e->x) ? PP_EXIT_INTERNAL : 0;
}

/* What the commands of the first diagnoses say. */
static void write_answers(struct pp_json *j, const struct pp_explain_page *page)
{
	const struct pp_explanation *x = page->x;
	struct pp_run run;

	pp_json_array(j, "checks");
	for (size_t i = 0; i < x->n && (page->all || i < PP_EXPLAIN_FULL); i++) {
		const struct pp_rule *rule = &x->list[i].known->rule;

		run = (struct pp_run){.why_not = page->no_run};
		if (!page->no_run)
			pp_run(rule->next, &run);
		pp_json_object(j, NULL);
		pp_json_str(j, "rule", rule->id);
		pp_json_str(j, "command", rule->next);
		pp_json_bool(j, "ran", run.ran);
		pp_json_str(j, "why_not", run.why_not);
		if (run.ran)
			pp_json_i64(j, "exit", run.status);
		pp_json_str(j, "output", run.ran ? run.output : NULL);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static int write_all(struct explaining *e, struct pp_explain_page *page)
{
	struct pp_out *o = e->s.out;

	page->x = &e->x;
	page->policy = e->policy;
	page->checks = pp_args_has(e->args, "check");
	page->no_run = !page->checks ? "--check was not given"
		       : pp_args_has(e->args, "replay") || pp_args_has(e->args, "root")
			       ? "the facts are not of this machine as it runs"
		       : page->facts ? NULL
				     : "this machine is not the one that the text is from";
	page->all = pp_args_has(e->args, "all");
	page->one_line = e->x.lines <= 1;
	pp_out_limit_width(o, 80);
	pp_out_document(o, "peerpath.explain/1");
	if (pp_out_is_json(o)) {
		pp_out_str(o, "facts", NULL, page->facts_name);
		pp_out_bool(o, "facts_used", NULL, page->facts != NULL);
		pp_explanation_write(pp_out_json(o), &e->x, page->facts, e->policy);
		if (page->checks)
			write_answers(pp_out_json(o), page);
		return pp_explain_nccl_show(&e->nccl, o);
	}
	pp_explain_text(o, page);
	if (e->words && pp_args_operands(e->args) == 1 && !e->x.n)
		pp_out_para(o, 0, "There is no file '%s': it was taken as text.",
			    pp_args_operand(e->args, 0));
	return pp_explain_nccl_show(&e->nccl, o);
}

static int explain(struct explaining *e)
{
	struct pp_explain_page page = {0};
	struct pp_error err = {0};
	int code;

	if (pp_known_load(pp_args_get(e->args, "rules"), &e->known, &err) ||
	    pp_policy_load(pp_args_get(e->args, "policy"), &e->policy, &err))
		return pp_complain(e->args, PP_EXIT_INPUT, "%s", err.text);
	if (pp_explain_new(e->known, &e->reader) || pp_explain_nccl_init(&e->nccl))
		return pp_complain(e->args, PP_EXIT_INTERNAL, "out of memory");
	code = read_text(e);
	if (code)
		return code;
	if (pp_explain_finish(e->reader, NULL, &e->x))
		return pp_complain(e->args, PP_EXIT_INTERNAL, "out of memory");
	code = narrow(e, &page);
	if (code)
		return code;
	if (write_all(e, &page))
		return pp_complain(e->args, PP_EXIT_INTERNAL, "out of memory");
	return (int)pp_explanation_exit(&e->x);
}

int pp_cmd_explain(const struct pp_args *args)
{
	struct explaining e = {.args = args};
	int code;

	if (pp_args_has(args, "no-node") &&
	    (pp_args_has(args, "check") || pp_args_has(args, "here") ||
	     pp_args_has(args, "replay") || pp_args_has(args, "root")))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--no-node excludes --check, --here, --replay and --root");
	pp_interrupt_catch();
	code = explain(&e);
	pp_explanation_done(&e.x);
	code = pp_session_close(&e.s, code);
	pp_explain_free(e.reader);
	pp_explain_nccl_done(&e.nccl);
	pp_policy_free(e.policy);
	pp_known_free(e.known);
	return code;
}
