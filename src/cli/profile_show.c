/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `profile list`, `show` and `render`: what profiles say.
 */
#include <errno.h>
#include <string.h>

#include "cli/profile.h"
#include "profile/render.h"
#include "profile/shelf.h"
#include "base/banned.h"

static void in_effect(struct pp_profile_run *run)
{
	const struct pp_generation *g = run->state.current;

	if (run->state.hidden) {
		pp_out_str(run->s.out, "in_effect", "in effect", NULL);
		pp_out_para(run->s.out, 2, "  unknown: %s may be read by root only", PP_STATE_DIR);
		return;
	}
	pp_out_str(run->s.out, "in_effect", "in effect", g ? g->name : "none");
	pp_out_str(run->s.out, "applied", g ? "since" : NULL, g ? g->applied : NULL);
	pp_out_u64(run->s.out, "generation", NULL, g ? g->number : 0);
}

static void list_row(struct pp_profile_run *run, const char *name)
{
	const struct pp_generation *g = run->state.current;
	struct pp_profile *p = NULL;
	struct pp_error err = {0};

	pp_out_cell(run->s.out, g && !strcmp(g->name, name) ? "*" : " ");
	pp_out_cell(run->s.out, name);
	if (pp_shelf_load(name, &p, NULL, &err)) {
		pp_out_cell(run->s.out, NULL);
		pp_out_cell(run->s.out, err.text);
	} else {
		pp_out_cell(run->s.out, pp_registration_name(p->registration));
		pp_out_cell(run->s.out, p->title);
	}
	pp_profile_free(p);
}

int pp_profile_list(struct pp_profile_run *run)
{
	static const struct pp_out_column columns[] = {{NULL, " ", false},
						       {"name", "PROFILE", false},
						       {"registration", "REGISTRATION", false},
						       {"title", "WHAT IT IS", true}};
	char names[PP_SHELF_MAX][PP_SHELF_NAME];
	int n = pp_shelf_list(names, PP_SHELF_MAX);

	pp_profile_head(run);
	pp_out_table(run->s.out, "profiles", columns, PP_ARRAY_LEN(columns));
	for (int i = 0; i < n; i++)
		list_row(run, names[i]);
	pp_out_table_end(run->s.out);
	if (!pp_out_is_json(run->s.out))
		pp_out_raw(run->s.out, "\n");
	in_effect(run);
	return PP_EXIT_PASS;
}

static void show_head(struct pp_profile_run *run)
{
	const struct pp_profile *p = run->profile;
	struct pp_out *o = run->s.out;

	pp_out_str(o, "name", "profile", p->name);
	pp_out_str(o, "title", "what it is", p->title);
	pp_out_str(o, "registration", "registration", pp_registration_name(p->registration));
	pp_out_str(o, "file", "from", run->path);
	pp_out_str(o, "sha256", "SHA-256", p->sha256);
	pp_out_str(o, "reviewed", p->reviewed ? "reviewed" : NULL, p->reviewed);
	pp_out_str(o, "source", p->source ? "source" : NULL, p->source);
}

static void show_needs(struct pp_profile_run *run)
{
	static const struct pp_out_column columns[] = {
		{"require", "NEEDS", false}, {"install", "BY", true}, {"fix", "FIX", false}};
	const struct pp_profile *p = run->profile;

	pp_out_heading(run->s.out, "Software tuple");
	pp_out_table(run->s.out, "needs", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < p->n_needs; i++) {
		pp_out_cell(run->s.out, p->need[i].when.text);
		pp_out_cell(run->s.out, p->need[i].install);
		pp_out_cell(run->s.out, p->need[i].fix_id);
	}
	pp_out_table_end(run->s.out);
}

static void show_files(struct pp_profile_run *run)
{
	static const struct pp_out_column columns[] = {
		{"action", "ACTION", false}, {"path", "FILE", false},	{"mode", NULL, false},
		{"text", NULL, false},	     {"effect", "THEN", false}, {"how", NULL, false},
		{"fix", "FIX", false},	     {"why", "WHY", true}};
	const struct pp_profile *p = run->profile;
	struct pp_out *o = run->s.out;

	pp_out_heading(o, "Files");
	pp_out_table(o, "files", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < p->n_files; i++) {
		const struct pp_profile_file *f = &p->file[i];

		pp_out_cell(o, pp_profile_action_name(f->action));
		pp_out_cell(o, f->path);
		pp_out_cellf(o, "%04o", f->mode);
		pp_out_cell(o, f->text);
		pp_out_cell(o, pp_effect_name(f->spot->effect));
		pp_out_cell(o, f->spot->how);
		pp_out_cell(o, f->fix_id);
		pp_out_cell(o, f->why);
	}
	pp_out_table_end(o);
}

int pp_profile_show(struct pp_profile_run *run)
{
	pp_profile_head(run);
	show_head(run);
	show_needs(run);
	show_files(run);
	pp_out_para(run->s.out, 0, "\nnext: peerpath profile diff %s", run->profile->name);
	return PP_EXIT_PASS;
}

int pp_profile_render(struct pp_profile_run *run)
{
	const char *word = pp_args_get(run->args, "for");
	struct pp_buf PP_AUTO_BUF text = PP_BUF(8 * PP_PROFILE_BYTES);
	enum pp_render how = PP_RENDER_FILES;

	if (word && pp_render_parse(word, &how))
		return pp_complain(run->args, PP_EXIT_USAGE, "--for does not take '%s'", word);
	pp_render(run->profile, how, &text);
	if (text.failed)
		return pp_complain(run->args, PP_EXIT_INTERNAL, "the text is too long");
	pp_profile_head(run);
	pp_out_str(run->s.out, "name", NULL, run->profile->name);
	pp_out_str(run->s.out, "for", NULL, word ? word : "files");
	pp_out_str(run->s.out, "text", NULL, pp_buf_text(&text));
	pp_out_raw(run->s.out, pp_buf_text(&text));
	return PP_EXIT_PASS;
}
