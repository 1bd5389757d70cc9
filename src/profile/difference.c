/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/difference.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { CONTEXT = 3, CELLS = 4 << 20 };

struct line {
	const char *at;
	size_t len; /* its end included */
};

struct lines {
	struct line *line;
	size_t n;
};

/* One line of the result: kept (' '), dropped ('-') or new ('+'). */
struct edit {
	char kind;
	const struct line *line;
};

struct script {
	struct edit *edit;
	size_t n;
};

static bool split(const char *text, struct lines *ret)
{
	size_t n = 0;

	for (const char *c = text; *c; c++)
		n += *c == '\n' || !c[1];
	ret->line = calloc(n + 1, sizeof(*ret->line));
	ret->n = 0;
	for (; ret->line && *text; text += ret->line[ret->n - 1].len) {
		const char *end = strchr(text, '\n');

		ret->line[ret->n++] =
			(struct line){text, end ? (size_t)(end + 1 - text) : strlen(text)};
	}
	return ret->line;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->len == b->len && !memcmp(a->at, b->at, a->len);
}

static void add(struct script *s, char kind, const struct line *line)
{
	s->edit[s->n++] = (struct edit){kind, line};
}

/* Lengths of longest common subsequences of what follows: table[i * (m + 1) + k]. */
static uint32_t *table_of(const struct line *a, size_t n, const struct line *b, size_t m)
{
	uint32_t *t;

	if (n + 1 > CELLS / (m + 1))
		return NULL;
	t = calloc((n + 1) * (m + 1), sizeof(*t));
	for (size_t i = n; t && i-- > 0;)
		for (size_t k = m; k-- > 0;) {
			uint32_t down = t[(i + 1) * (m + 1) + k], right = t[i * (m + 1) + k + 1];

			t[i * (m + 1) + k] = same(&a[i], &b[k]) ? t[(i + 1) * (m + 1) + k + 1] + 1
					     : down >= right	? down
								: right;
		}
	return t;
}

static void middle(struct script *s, const struct line *a, size_t n, const struct line *b, size_t m)
{
	uint32_t *t = table_of(a, n, b, m);
	size_t i = 0, k = 0;

	while (t && i < n && k < m) {
		if (same(&a[i], &b[k])) {
			add(s, ' ', &a[i++]);
			k++;
		} else if (t[(i + 1) * (m + 1) + k] >= t[i * (m + 1) + k + 1]) {
			add(s, '-', &a[i++]);
		} else {
			add(s, '+', &b[k++]);
		}
	}
	while (i < n)
		add(s, '-', &a[i++]);
	while (k < m)
		add(s, '+', &b[k++]);
	free(t);
}

static void edits(struct script *s, const struct lines *a, const struct lines *b)
{
	size_t head = 0, tail = 0;

	while (head < a->n && head < b->n && same(&a->line[head], &b->line[head]))
		head++;
	while (tail < a->n - head && tail < b->n - head &&
	       same(&a->line[a->n - 1 - tail], &b->line[b->n - 1 - tail]))
		tail++;
	for (size_t i = 0; i < head; i++)
		add(s, ' ', &a->line[i]);
	middle(s, a->line + head, a->n - head - tail, b->line + head, b->n - head - tail);
	for (size_t i = a->n - tail; i < a->n; i++)
		add(s, ' ', &a->line[i]);
}

/* End of the hunk that begins with the change at @at: no change in 2 * CONTEXT lines behind it. */
static size_t hunk_end(const struct script *s, size_t at)
{
	size_t last = at;

	for (size_t i = at; i < s->n && i <= last + 2 * CONTEXT; i++)
		if (s->edit[i].kind != ' ')
			last = i;
	return last + 1 + CONTEXT < s->n ? last + 1 + CONTEXT : s->n;
}

static void range(struct pp_buf *ret, char sign, size_t before, size_t count)
{
	size_t first = count ? before + 1 : before;

	if (count == 1)
		pp_buf_printf(ret, "%c%zu", sign, first);
	else
		pp_buf_printf(ret, "%c%zu,%zu", sign, first, count);
}

static void hunk(struct pp_buf *ret, const struct script *s, size_t from, size_t end,
		 size_t old_before, size_t new_before)
{
	size_t old = 0, new = 0;

	for (size_t i = from; i < end; i++) {
		old += s->edit[i].kind != '+';
		new += s->edit[i].kind != '-';
	}
	pp_buf_str(ret, "@@ ");
	range(ret, '-', old_before, old);
	pp_buf_char(ret, ' ');
	range(ret, '+', new_before, new);
	pp_buf_str(ret, " @@\n");
	for (size_t i = from; i < end; i++) {
		const struct line *l = s->edit[i].line;

		pp_buf_char(ret, s->edit[i].kind);
		pp_buf_add(ret, l->at, l->len);
		if (l->at[l->len - 1] != '\n')
			pp_buf_str(ret, "\n\\ No newline at end of file\n");
	}
}

static void hunks(struct pp_buf *ret, const struct script *s)
{
	size_t old = 0, new = 0, done = 0, from, end;

	for (size_t i = 0; i < s->n;) {
		if (s->edit[i].kind == ' ') {
			i++;
			continue;
		}
		from = i > done + CONTEXT ? i - CONTEXT : done;
		end = hunk_end(s, i);
		for (; done < from; done++) {
			old++; /* only kept lines lie between hunks */
			new ++;
		}
		hunk(ret, s, from, end, old, new);
		for (; done < end; done++) {
			old += s->edit[done].kind != '+';
			new += s->edit[done].kind != '-';
		}
		i = end;
	}
}

void pp_difference(const char *old_name, const char *old, const char *new_name, const char *new,
		   struct pp_buf *ret)
{
	struct lines a = {0}, b = {0};
	struct script s = {0};

	if (!strcmp(old, new))
		return;
	if (split(old, &a) && split(new, &b) && (s.edit = calloc(a.n + b.n + 1, sizeof(*s.edit)))) {
		edits(&s, &a, &b);
		pp_buf_printf(ret, "--- %s\n+++ %s\n", old_name ? old_name : "/dev/null",
			      new_name ? new_name : "/dev/null");
		hunks(ret, &s);
	} else {
		ret->failed = -ENOMEM;
	}
	free(a.line);
	free(b.line);
	free(s.edit);
}
