/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `profile diff`: what applying would change, as diff -u has it; or how two profiles differ.
 */
#include <string.h>

#include "cli/profile.h"
#include "profile/difference.h"
#include "profile/render.h"
#include "profile/shelf.h"
#include "base/banned.h"

enum { DIFF_MAX = 4 << 20 };

static void note_mode(const struct pp_generation_entry *e, struct pp_buf *ret)
{
	const struct pp_disk_state *a = &e->before, *b = &e->after;

	if (a->exists && b->exists && a->mode != b->mode)
		pp_buf_printf(ret, "%s: mode %04o becomes %04o\n", e->path, a->mode, b->mode);
	/* Two states that diff -u cannot tell apart. */
	if (a->exists != b->exists && !(a->exists ? a : b)->bytes)
		pp_buf_printf(ret, "%s: empty, %s\n", e->path, b->exists ? "new" : "removed");
}

static int against_root(struct pp_profile_run *run, struct pp_buf *ret)
{
	char from[512], to[640];
	struct pp_change *c = NULL;
	struct pp_error err = {0};
	int r = pp_change_make(&run->state, run->profile, &c, &err);

	if (r)
		return pp_profile_failed(run, r, &err);
	for (unsigned int i = 0; i < c->next->n; i++) {
		const struct pp_generation_entry *e = &c->next->entry[i];

		if (!c->file[i].differs)
			continue;
		(void)pp_profile_below(run, e->path, from, sizeof(from));
		(void)snprintf(to, sizeof(to), "%s (%s)", from,
			       c->file[i].of ? run->profile->name : "before any profile");
		pp_difference(e->before.exists ? from : NULL, c->file[i].before,
			      e->after.exists ? to : NULL, c->file[i].after, ret);
		note_mode(e, ret);
	}
	pp_change_free(c);
	return 0;
}

static int against_profile(struct pp_profile_run *run, const char *other, struct pp_buf *ret)
{
	struct pp_buf PP_AUTO_BUF a = PP_BUF(8 * PP_PROFILE_BYTES);
	struct pp_buf PP_AUTO_BUF b = PP_BUF(8 * PP_PROFILE_BYTES);
	struct pp_profile *p = NULL;
	struct pp_error err = {0};
	int r = pp_shelf_load(other, &p, NULL, &err);

	if (r)
		return pp_profile_failed(run, r, &err);
	pp_render(run->profile, PP_RENDER_FILES, &a);
	pp_render(p, PP_RENDER_FILES, &b);
	pp_difference(run->profile->name, pp_buf_text(&a), p->name, pp_buf_text(&b), ret);
	pp_profile_free(p);
	return 0;
}

int pp_profile_diff(struct pp_profile_run *run)
{
	const char *other = pp_args_operand(run->args, 2);
	struct pp_buf PP_AUTO_BUF text = PP_BUF(DIFF_MAX);
	int code;

	if (other && pp_args_has(run->args, "root"))
		return pp_complain(run->args, PP_EXIT_USAGE,
				   "two profiles are compared with each other, not with --root");
	code = other ? against_profile(run, other, &text) : against_root(run, &text);
	if (code)
		return code;
	if (text.failed)
		return pp_complain(run->args, PP_EXIT_INTERNAL, "the difference is too long");
	pp_profile_head(run);
	pp_out_str(run->s.out, "name", NULL, run->profile->name);
	pp_out_str(run->s.out, "with", NULL, other ? other : "root");
	pp_out_bool(run->s.out, "same", NULL, !text.len);
	pp_out_str(run->s.out, "difference", NULL, pp_buf_text(&text));
	pp_out_raw(run->s.out, pp_buf_text(&text));
	return text.len ? PP_EXIT_BAD : PP_EXIT_PASS;
}
