/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others have changed in files that a profile has put there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/change.h"
#include "base/banned.h"

static char *text_of(const struct pp_buf *b)
{
	return b->failed ? NULL : strdup(pp_buf_text(b));
}

static int look(const struct pp_disk *d, const struct pp_generation_entry *e,
		struct pp_foreign *ret, bool *ret_foreign, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF now = PP_BUF(PP_DISK_FILE_MAX);
	struct pp_buf PP_AUTO_BUF recorded = PP_BUF(PP_DISK_FILE_MAX);
	struct pp_disk_state state;
	int r = pp_disk_read(d, e->path, &now, &state, err);

	*ret_foreign = !r && !pp_disk_same(&state, &e->after);
	if (r || !*ret_foreign)
		return r;
	r = pp_state_content(d, &e->after, &recorded, err);
	if (r)
		return r;
	*ret = (struct pp_foreign){.path = e->path,
				   .recorded = text_of(&recorded),
				   .found = text_of(&now),
				   .now = state};
	return ret->recorded && ret->found ? 0 : pp_error_set(err, -ENOMEM, "out of memory");
}

int pp_foreign_find(const struct pp_state *s, bool all,
		    struct pp_foreign ret[PP_GENERATION_ENTRIES], struct pp_error *err)
{
	const struct pp_generation *g = s->current;
	bool foreign;
	int n = 0, r = 0;

	for (unsigned int i = 0; g && i < g->n && !r; i++) {
		if (!all && !g->entry[i].managed)
			continue;
		ret[n] = (struct pp_foreign){0};
		r = look(s->disk, &g->entry[i], &ret[n], &foreign, err);
		n += r || foreign;
	}
	if (r)
		pp_foreign_done(ret, n);
	return r ? r : n;
}

void pp_foreign_done(struct pp_foreign *f, int n)
{
	for (int i = 0; i < n; i++) {
		free(f[i].recorded);
		free(f[i].found);
	}
}
