/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath fleet: many nodes' results in one database.
 */
#include <errno.h>
#include <string.h>

#include "base/near.h"
#include "base/parse.h"
#include "cli/fleet.h"
#include "cli/fleet_options.h"
#include "base/banned.h"

static int number(const struct pp_args *args, const char *option, uint64_t most, unsigned int *ret)
{
	const char *text = pp_args_get(args, option);
	uint64_t n = 0;

	if (text && pp_parse_u64(text, 0, most, &n))
		return pp_complain(args, PP_EXIT_USAGE, "--%s does not take '%s': 0 to %llu",
				   option, text, (unsigned long long)most);
	*ret = (unsigned int)n;
	return 0;
}

struct asking {
	struct pp_session *s;
	struct pp_sql *sql;
	bool simulated;
	size_t found;
	struct pp_error err;
};

static int silent_after(const struct pp_args *args, pp_ns *ret)
{
	const char *text = pp_args_get(args, "silent-after");

	*ret = PP_FLEET_SILENT_AFTER;
	if (text && pp_parse_duration(text, 3650 * 86400ll * PP_SECOND, ret))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--silent-after does not take '%s': up to 3650d; 0 calls nobody "
				   "silent",
				   text);
	return 0;
}

static int ask_list(struct asking *a)
{
	const struct pp_args *args = a->s->args;
	struct pp_fleet_filter f = {.text = pp_args_operand(args, 1),
				    .verdict = pp_args_get(args, "verdict"),
				    .flavour = pp_args_get(args, "module"),
				    .topology = pp_args_get(args, "wiring"),
				    .software = pp_args_get(args, "software")};

	if (number(args, "limit", PP_FLEET_LIST_MOST, &f.limit) ||
	    silent_after(args, &f.silent_after))
		return -ECANCELED;
	if (pp_args_has(args, "limit") && !f.limit)
		f.limit = PP_FLEET_LIST_MOST;
	return pp_fleet_list(a->sql, a->simulated, &f, a->s->out, &a->err);
}

static int ask_show(struct asking *a)
{
	return pp_fleet_show(a->sql, a->simulated, pp_args_operand(a->s->args, 1), a->s->out,
			     &a->err);
}

static int ask_classes(struct asking *a)
{
	return pp_fleet_classes(a->sql, a->simulated, a->s->out, &a->err);
}

static int ask_odd(struct asking *a)
{
	pp_ns after;

	if (silent_after(a->s->args, &after))
		return -ECANCELED;
	return pp_fleet_odd(a->sql, a->simulated, after, a->s->out, &a->found, &a->err);
}

static int ask_rails(struct asking *a)
{
	return pp_fleet_rails(a->sql, a->simulated, a->s->out, &a->found, &a->err);
}

static int ask_diff(struct asking *a)
{
	return pp_fleet_diff(a->sql, a->simulated, pp_args_operand(a->s->args, 1),
			     pp_args_operand(a->s->args, 2), a->s->out, &a->err);
}

static const struct {
	const char *name;
	size_t least, most; /* operands behind it */
	int (*ask)(struct asking *a);
} views[] = {
	{"list", 0, 1, ask_list},	{"show", 1, 1, ask_show},   {"odd", 0, 0, ask_odd},
	{"classes", 0, 0, ask_classes}, {"rails", 0, 0, ask_rails}, {"diff", 2, 2, ask_diff},
};

static int answer(struct pp_session *s, size_t view)
{
	struct asking a = {.s = s, .simulated = pp_args_has(s->args, "simulated")};
	int code = pp_fleet_database(s->args, PP_SQL_READ_ONLY, &a.sql), r;

	if (code)
		return code;
	pp_out_document(s->out, "peerpath.fleet/1");
	pp_out_str(s->out, "view", NULL, views[view].name);
	pp_out_bool(s->out, "simulated", NULL, a.simulated);
	if (a.simulated)
		pp_out_para(s->out, 0, "Simulated results: nothing here was measured.");
	/* One moment for all that is asked, whoever adds meanwhile. */
	r = pp_sql_begin(a.sql, &a.err);
	r = r ? r : views[view].ask(&a);
	if (!r)
		r = pp_sql_commit(a.sql, &a.err);
	pp_sql_close(a.sql);
	if (r == -ECANCELED)
		return PP_EXIT_USAGE;
	return r ? pp_fleet_failed(s->args, r, &a.err) : a.found ? PP_EXIT_BAD : PP_EXIT_PASS;
}

static int check_operands(const struct pp_args *args, size_t view)
{
	size_t n = pp_args_operands(args) - 1;

	if (n >= views[view].least && n <= views[view].most)
		return 0;
	return pp_complain(args, PP_EXIT_USAGE, "'fleet %s' takes %s", views[view].name,
			   views[view].most == 0   ? "nothing more"
			   : views[view].most == 2 ? "two nodes"
			   : views[view].least	   ? "one node"
						   : "a part of a name at most");
}

/* An option that another word takes would be passed over, and the answer taken for its. */
static int check_options(const struct pp_args *args, const char *what)
{
	static const struct {
		const char *option, *words;
	} rows[] = {
		{"verdict", " list "},	   {"module", " list "},    {"wiring", " list "},
		{"software", " list "},	   {"limit", " list "},	    {"silent-after", " list odd "},
		{"listen", " serve "},	   {"port", " serve "},	    {"host", " serve "},
		{"token-file", " serve "}, {"max-push", " serve "}, {"older-than", " prune "},
		{"gains", " prune "},	   {"dry-run", " prune "},  {"compact", " prune "}};
	char word[32];

	(void)snprintf(word, sizeof(word), " %s ", what);
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		if (pp_args_has(args, rows[i].option) && !strstr(rows[i].words, word))
			return pp_complain(args, PP_EXIT_USAGE, "'fleet %s' takes no --%s", what,
					   rows[i].option);
	return 0;
}

static bool is_word(const char *what)
{
	for (const char *const *w = pp_fleet_words; *w; w++)
		if (!strcmp(*w, what))
			return true;
	return false;
}

static int refuse_word(const struct pp_args *args, const char *what)
{
	PP_AUTO_BUF struct pp_buf words = PP_BUF(1024);
	struct pp_near near = PP_NEAR(what);

	for (const char *const *w = pp_fleet_words; *w; w++) {
		pp_near_offer(&near, *w);
		pp_buf_printf(&words, "%s%s", words.len ? ", " : "", *w);
	}
	if (near.best)
		return pp_complain(args, PP_EXIT_USAGE,
				   "fleet does not know '%s'; did you mean '%s'?", what, near.best);
	return pp_complain(args, PP_EXIT_USAGE, "fleet does not know '%s': it takes %s", what,
			   pp_buf_text(&words));
}

static int run(struct pp_session *s)
{
	const char *what = pp_args_operand(s->args, 0);
	int code = is_word(what) ? check_options(s->args, what) : refuse_word(s->args, what);

	if (code)
		return code;
	if (!strcmp(what, "add"))
		return pp_fleet_cmd_add(s);
	if (!strcmp(what, "prune"))
		return pp_fleet_cmd_prune(s);
	for (size_t i = 0; i < PP_ARRAY_LEN(views); i++) {
		if (strcmp(what, views[i].name) != 0)
			continue;
		code = check_operands(s->args, i);
		return code ? code : answer(s, i);
	}
	return pp_fleet_cmd_serve(s);
}

int pp_cmd_fleet(const struct pp_args *args)
{
	struct pp_session s;
	int code = pp_session_open_output(args, &s);

	return pp_session_close(&s, code ? code : run(&s));
}
