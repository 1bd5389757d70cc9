/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `profile apply` and `profile rollback`: files, all or nothing. What must be installed, reloaded
 * or rebooted is said and never done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/profile.h"
#include "profile/difference.h"
#include "base/banned.h"

enum { DIFF_MAX = 4 << 20 };

struct foreign_list {
	struct pp_foreign list[PP_GENERATION_ENTRIES];
};

/* The site's, or of an image that has its own. */
static int load_policy(struct pp_profile_run *run, struct pp_policy **ret)
{
	static const char own[] = PEERPATH_SYSCONFDIR "/policy.conf";
	const char *given = pp_args_get(run->args, "policy");
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_DISK_FILE_MAX);
	struct pp_disk_state state = {0};
	struct pp_error err = {0};
	char name[512];
	int r = 0;

	if (!given && pp_args_has(run->args, "root"))
		r = pp_disk_read(&run->disk, own, &text, &state, &err);
	if (!r && state.exists)
		r = pp_policy_parse(pp_profile_below(run, own, name, sizeof(name)),
				    pp_buf_text(&text), text.len, ret, &err);
	else if (!r)
		r = pp_policy_load(given, ret, &err);
	return r ? pp_complain(run->args, PP_EXIT_INPUT, "%s", err.text) : 0;
}

static int check_policy(struct pp_profile_run *run, const struct pp_change *c)
{
	struct pp_policy *policy = NULL;
	const char *reason, *fix;
	int code = load_policy(run, &policy);

	if (code)
		return code;
	fix = pp_change_forbidden(c, policy, &run->s.node->facts, &reason);
	if (fix)
		code = pp_complain(run->args, PP_EXIT_BAD,
				   "%s forbids '%s', which profile '%s' amounts to: %s",
				   pp_policy_name(policy), fix, run->profile->name, reason);
	pp_policy_free(policy);
	return code;
}

static int check_rule(struct pp_profile_run *run, const struct pp_change *c)
{
	if (!pp_change_drops_peermem(&run->state, c))
		return 0;
	return pp_complain(
		run->args, PP_EXIT_BAD,
		"profile '%s' would remove nvidia_peermem in the change that first tests "
		"DMA-BUF: prove DMA-BUF first (peerpath profile apply dmabuf), remove "
		"peermem in a change of its own",
		run->profile->name);
}

/* Refused with the difference: what the profile had put there, and what is there now. */
static int check_foreign(struct pp_profile_run *run, bool all)
{
	struct foreign_list *f = calloc(1, sizeof(*f));
	struct pp_buf PP_AUTO_BUF text = PP_BUF(DIFF_MAX);
	struct pp_error err = {0};
	char path[512], recorded[600];
	int n = f ? pp_foreign_find(&run->state, all, f->list, &err)
		  : pp_error_set(&err, -ENOMEM, "out of memory");

	for (int i = 0; i < n; i++) {
		(void)pp_profile_below(run, f->list[i].path, path, sizeof(path));
		(void)snprintf(recorded, sizeof(recorded), "%s (%s)", path,
			       run->state.current->name);
		pp_difference(recorded, f->list[i].recorded, f->list[i].now.exists ? path : NULL,
			      f->list[i].found, &text);
		if (f->list[i].now.exists && !strcmp(f->list[i].recorded, f->list[i].found))
			pp_buf_printf(&text, "%s: mode or owner changed: %04o %u:%u\n", path,
				      f->list[i].now.mode, f->list[i].now.uid, f->list[i].now.gid);
	}
	if (n > 0) {
		pp_profile_head(run);
		pp_out_str(run->s.out, "result", NULL, "refused");
		pp_out_str(run->s.out, "difference", NULL, pp_buf_text(&text));
		pp_out_raw(run->s.out, pp_buf_text(&text));
		pp_foreign_done(f->list, n);
	}
	free(f);
	if (n < 0)
		return pp_profile_failed(run, n, &err);
	return n ? pp_complain(run->args, PP_EXIT_BAD,
			       "%d file%s changed by others since '%s' was applied: nothing was "
			       "touched. Put back what stands above, then try again",
			       n, n == 1 ? " was" : "s were", run->state.current->name)
		 : 0;
}

static const char *what_of(const struct pp_disk_state *from, const struct pp_disk_state *to)
{
	if (pp_disk_same(from, to))
		return "unchanged";
	return !from->exists ? "new" : !to->exists ? "removed" : "replaced";
}

static void out_files(struct pp_profile_run *run, const struct pp_generation *g, bool back)
{
	static const struct pp_out_column columns[] = {{"file", "FILE", false},
						       {"change", "CHANGE", false}};
	struct pp_out *o = run->s.out;

	pp_out_table(o, "files", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < g->n; i++) {
		const struct pp_generation_entry *e = &g->entry[i];

		pp_out_cell(o, e->path);
		pp_out_cell(o,
			    back ? what_of(&e->after, &e->before) : what_of(&e->before, &e->after));
	}
	pp_out_table_end(o);
}

/* What is to be done by hand until the files are in effect, of each kind of place once. */
static void out_effects(struct pp_profile_run *run, const struct pp_generation *g)
{
	static const struct pp_out_column columns[] = {
		{"effect", "THEN", false}, {"of", "OF", false}, {"how", "HOW", true}};
	const struct pp_spot *s;
	bool used;

	pp_out_heading(run->s.out, "To be done by hand");
	pp_out_table(run->s.out, "effects", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; (s = pp_spot_at(i)); i++) {
		used = false;
		for (unsigned int k = 0; k < g->n; k++)
			used |= pp_spot_find(g->entry[k].path) == s &&
				!pp_disk_same(&g->entry[k].before, &g->entry[k].after);
		if (!used)
			continue;
		pp_out_cell(run->s.out, pp_effect_name(s->effect));
		pp_out_cell(run->s.out, s->name);
		pp_out_cell(run->s.out, s->how);
	}
	pp_out_table_end(run->s.out);
}

static void out_gates(struct pp_profile_run *run)
{
	const char *const gates[] = {
		run->state.current ? "peerpath profile verify --after-reboot" : "peerpath check",
		"peerpath prove --peer HOST --after-reboot "
		"BEFORE.tar.zst -o AFTER.tar.zst",
		"peerpath nccl judge LOG...", "the application, by its own figures"};
	static const struct pp_out_column columns[] = {{"gate", "GATES", false},
						       {"command", "BY", true}};
	static const char *const names[] = {"0, 1", "0 to 2", "3", "4"};

	pp_out_heading(run->s.out, "Then the same gates as before the change");
	pp_out_table(run->s.out, "gates", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < PP_ARRAY_LEN(gates); i++) {
		pp_out_cell(run->s.out, names[i]);
		pp_out_cell(run->s.out, gates[i]);
	}
	pp_out_table_end(run->s.out);
}

static int do_apply(struct pp_profile_run *run, const struct pp_change *c, const char **ret_result)
{
	const struct pp_generation *g = run->state.current;
	struct pp_error err = {0};
	int r;

	if (!c->differing && g && !strcmp(g->sha256, run->profile->sha256)) {
		*ret_result = "in effect already";
		return 0;
	}
	if (pp_args_has(run->args, "dry-run")) {
		*ret_result = "nothing was changed (--dry-run)";
		return 0;
	}
	*ret_result = "applied";
	r = pp_commit_apply(&run->state, c, &err);
	return r ? pp_profile_failed(run, r, &err) : 0;
}

static int checked(struct pp_profile_run *run, struct pp_change **ret)
{
	struct pp_error err = {0};
	int code = check_foreign(run, false), r;

	if (code)
		return code;
	r = pp_change_make(&run->state, run->profile, ret, &err);
	if (r)
		return pp_profile_failed(run, r, &err);
	code = check_rule(run, *ret);
	return code ? code : check_policy(run, *ret);
}

/* Reads only without a change to make: a dry run needs no privilege. */
static int lock(struct pp_profile_run *run)
{
	struct pp_error err = {0};
	int r;

	if (pp_args_has(run->args, "dry-run"))
		return run->state.hidden ? pp_complain(run->args, PP_EXIT_BAD,
						       "%s may be read by root only", PP_STATE_DIR)
					 : 0;
	r = pp_state_lock(&run->state, &err);
	if (!r && run->state.unfinished)
		r = pp_error_set(&err, -EAGAIN, "another change was cut short meanwhile: again");
	return r ? pp_profile_failed(run, r, &err) : 0;
}

int pp_profile_apply(struct pp_profile_run *run)
{
	struct pp_change *c = NULL;
	const char *result = NULL;
	int code;

	/* A root that is none is said before anything is made in it. */
	if (pp_disk_has_dir(&run->disk, "/etc") != 1)
		return pp_complain(run->args, PP_EXIT_INPUT, "%s has no /etc: no root of a system",
				   run->disk.name);
	code = lock(run);
	code = code ? code : checked(run, &c);
	code = code ? code : do_apply(run, c, &result);
	if (!code) {
		pp_profile_head(run);
		pp_out_str(run->s.out, "name", "profile", run->profile->name);
		pp_out_str(run->s.out, "result", "result", result);
		pp_out_bool(run->s.out, "dry_run", NULL, pp_args_has(run->args, "dry-run"));
		pp_out_u64(run->s.out, "changed", NULL, c->differing);
		if (!pp_out_is_json(run->s.out))
			pp_out_raw(run->s.out, "\n");
		out_files(run, c->next, false);
		(void)pp_profile_needs(run);
		out_effects(run, c->next);
		out_gates(run);
	}
	/* The difference that it was refused for is an answer, too. */
	run->s.answered = code == PP_EXIT_BAD;
	pp_change_free(c);
	return code;
}

int pp_profile_rollback(struct pp_profile_run *run)
{
	bool dry = pp_args_has(run->args, "dry-run");
	struct pp_generation *g = NULL;
	struct pp_error err = {0};
	int code = lock(run), r = 0;

	if (!code && !run->state.current)
		code = pp_complain(run->args, PP_EXIT_BAD,
				   "no profile is applied: nothing to roll back");
	code = code ? code : check_foreign(run, true);
	run->s.answered = code == PP_EXIT_BAD;
	if (code)
		return code;
	r = pp_state_generation(&run->disk, run->state.current->number, &g, &err);
	if (!r && !dry)
		r = pp_commit_rollback(&run->state, &err);
	if (r) {
		pp_generation_free(g);
		return pp_profile_failed(run, r, &err);
	}
	pp_profile_head(run);
	pp_out_str(run->s.out, "name", "taken back", g->name);
	pp_out_str(run->s.out, "result", "result",
		   dry ? "nothing was changed (--dry-run)" : "rolled back");
	pp_out_bool(run->s.out, "dry_run", NULL, dry);
	pp_out_str(run->s.out, "in_effect", "in effect",
		   run->state.current ? run->state.current->name : "none");
	if (!pp_out_is_json(run->s.out))
		pp_out_raw(run->s.out, "\n");
	out_files(run, g, true);
	out_effects(run, g);
	out_gates(run);
	pp_out_para(run->s.out, 0,
		    "\nKeep both bundles: that of the change and that of its rollback.");
	pp_generation_free(g);
	return PP_EXIT_PASS;
}
