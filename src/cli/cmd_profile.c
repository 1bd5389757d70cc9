/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: declared states of a node, shown, compared, applied as files, taken back. Whatever the
 * action, a change that was cut short is completed or undone first, and that is said.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "cli/profile.h"
#include "profile/shelf.h"
#include "base/banned.h"

static const struct {
	const char *name;
	unsigned int min, max; /* operands behind the action */
	bool applied;	       /* without an operand: the profile in effect */
	int (*run)(struct pp_profile_run *run);
} actions[] = {
	{"list", 0, 0, false, pp_profile_list},		{"show", 1, 1, false, pp_profile_show},
	{"render", 1, 1, false, pp_profile_render},	{"diff", 1, 2, false, pp_profile_diff},
	{"verify", 0, 1, true, pp_profile_verify},	{"apply", 1, 1, false, pp_profile_apply},
	{"rollback", 0, 0, false, pp_profile_rollback},
};

/* Options that say something for some actions only. */
static const struct {
	const char *option;
	const char *actions; /* words between blanks */
} goes_with[] = {
	{"for", " render "},
	{"dry-run", " apply rollback "},
	{"after-reboot", " verify "},
	{"policy", " apply verify "},
	{"rules", " verify "},
	{"fail-on", " verify "},
	{"root", " list diff verify apply rollback "},
};

int pp_profile_failed(const struct pp_profile_run *run, int error, const struct pp_error *err)
{
	int code = PP_EXIT_INTERNAL;

	switch (error) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
	case -EAGAIN:
	case -ESTALE:
		code = PP_EXIT_BAD; /* refused: nothing was changed */
		break;
	case -EINVAL:
	case -ENOENT:
	case -EFBIG:
	case -EBADMSG:
	case -ELOOP:
	case -ENOTDIR:
		code = PP_EXIT_INPUT;
		break;
	default:
		break;
	}
	return pp_complain(run->args, code, "%s%s", err->text,
			   error == -EACCES || error == -EPERM ? " (run as root)" : "");
}

const char *pp_profile_below(const struct pp_profile_run *run, const char *path, char *buf,
			     size_t size)
{
	size_t len = strlen(run->disk.name);

	while (len && run->disk.name[len - 1] == '/')
		len--;
	(void)snprintf(buf, size, "%.*s%s", (int)len, run->disk.name, path);
	return buf;
}

void pp_profile_head(struct pp_profile_run *run)
{
	pp_out_document(run->s.out, "peerpath.profile/1");
	pp_out_str(run->s.out, "action", NULL, run->action);
	pp_out_str(run->s.out, "root", NULL, run->disk.name);
}

static int find_action(const struct pp_args *args, size_t *ret)
{
	const char *word = pp_args_operand(args, 0);
	struct pp_near near = PP_NEAR(word);
	size_t i = 0, n = pp_args_operands(args) - 1;

	while (i < PP_ARRAY_LEN(actions) && strcmp(actions[i].name, word) != 0)
		pp_near_offer(&near, actions[i++].name);
	if (i == PP_ARRAY_LEN(actions))
		return pp_complain(args, PP_EXIT_USAGE,
				   "unknown action '%.60s'%s%s%s; there are list, show, render, "
				   "diff, verify, apply and rollback",
				   word, near.best ? ", did you mean '" : "",
				   near.best ? near.best : "", near.best ? "'" : "");
	if (n < actions[i].min || n > actions[i].max)
		return pp_complain(args, PP_EXIT_USAGE, "'profile %s' takes %s", word,
				   actions[i].max == 0	 ? "no name"
				   : actions[i].max == 2 ? "a profile, or two"
							 : "the name of one profile");
	*ret = i;
	return 0;
}

static int check_options(const struct pp_args *args, const char *action)
{
	char word[32];

	(void)snprintf(word, sizeof(word), " %s ", action);
	for (size_t i = 0; i < PP_ARRAY_LEN(goes_with); i++)
		if (pp_args_has(args, goes_with[i].option) && !strstr(goes_with[i].actions, word))
			return pp_complain(args, PP_EXIT_USAGE, "--%s goes with 'profile%s'",
					   goes_with[i].option, goes_with[i].actions);
	return 0;
}

/* Who may not write is told that there is something to finish; the action reads what is there. */
static int recover(struct pp_profile_run *run)
{
	struct pp_journal j = run->state.journal;
	const char *what = j.rollback ? "rollback" : "apply";
	enum pp_recovery recovery;
	struct pp_error err = {0};
	bool dry = pp_args_has(run->args, "dry-run");
	int r;

	if (!run->state.unfinished)
		return 0;
	if (dry)
		return pp_complain(run->args, PP_EXIT_BAD,
				   "a '%s' was cut short; without --dry-run it is finished first",
				   what);
	r = pp_state_lock(&run->state, &err);
	r = r ? r : pp_commit_recover(&run->state, &recovery, &err);
	pp_cleanup_close(&run->state.lock);
	run->state.lock = -1;
	if (r == -EACCES || r == -EPERM || r == -EROFS)
		return pp_complain(
			run->args, 0,
			"a '%s' was cut short, and this user may not finish it: files are "
			"of two profiles until 'peerpath profile' is run as root",
			what);
	if (r)
		return pp_profile_failed(run, r, &err);
	if (recovery != PP_RECOVERY_NONE)
		(void)pp_complain(
			run->args, 0, "a '%s' was cut short: %s%s%s", what,
			recovery == PP_RECOVERY_COMPLETED ? "it is completed" : "it is undone",
			run->state.current ? "; in effect: " : "; no profile is in effect",
			run->state.current ? run->state.current->name : "");
	return 0;
}

static int load(struct pp_profile_run *run, const char *word, bool applied)
{
	struct pp_error err = {0};
	int r;

	if (!word && !applied)
		return 0;
	if (!word && !run->state.current)
		return pp_complain(run->args, PP_EXIT_USAGE, "no profile is applied: name one");
	r = pp_shelf_load(word ? word : run->state.current->name, &run->profile, &run->path, &err);
	return r ? pp_profile_failed(run, r, &err) : 0;
}

static int open_run(struct pp_profile_run *run, bool needs_node)
{
	const char *root = pp_args_get(run->args, "root");
	struct pp_error err = {0};
	int r = pp_disk_open(root ? root : "/", &run->disk, &err);

	if (r)
		return pp_profile_failed(run, r, &err);
	r = pp_state_read(&run->disk, &run->state, &err);
	if (r)
		return pp_profile_failed(run, r, &err);
	r = recover(run);
	if (r)
		return r;
	return needs_node ? pp_session_open(run->args, false, &run->s)
			  : pp_session_open_output(run->args, &run->s);
}

int pp_cmd_profile(const struct pp_args *args)
{
	struct pp_profile_run *run = calloc(1, sizeof(*run));
	size_t i = 0;
	int code;

	if (!run)
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	run->args = args;
	run->disk.root = -1;
	run->state.lock = -1;
	code = find_action(args, &i);
	code = code ? code : check_options(args, actions[i].name);
	if (!code) {
		run->action = actions[i].name;
		code = open_run(run, actions[i].run == pp_profile_verify ||
					     actions[i].run == pp_profile_apply);
		code = code ? code : load(run, pp_args_operand(args, 1), actions[i].applied);
		code = code ? code : actions[i].run(run);
		code = pp_session_close(&run->s, code);
	}
	pp_profile_free(run->profile);
	free(run->path);
	pp_state_done(&run->state);
	pp_disk_close(&run->disk);
	free(run);
	return code;
}
