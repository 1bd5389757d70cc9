/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dense table of byte classes: one load per byte of text. The bit above the state's number says
 * that literals end in it, so that the common byte touches nothing else.
 */
#include "judge/automaton.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { STATES_MAX = 0x3ffff, ENDS = STATES_MAX + 1, NONE = 0xffff, SHORT = 3 };

struct literal {
	char *text; /* owned, folded */
	size_t len;
};

struct pp_automaton {
	struct literal list[PP_LITERALS_MAX];
	size_t n;
	uint16_t slots[2 * PP_LITERALS_MAX]; /* by hash: a literal's number + 1; 0 free */
	uint8_t class[256];		     /* 0: in no literal */
	unsigned int classes;
	uint32_t *next;	   /* owned: [states][classes] */
	uint16_t *literal; /* owned: the one that ends in a state, or NONE */
	uint32_t *shorter; /* owned: nearest state on the way of suffixes where one ends; 0 none */
	size_t states;
};

static unsigned char fold(unsigned char c)
{
	if (c == '_')
		return '-';
	if (c == '"' || c == '`')
		return '\'';
	return isspace(c) ? ' ' : (unsigned char)tolower(c);
}

int pp_automaton_new(struct pp_automaton **ret)
{
	struct pp_automaton *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->classes = 1;
	*ret = a;
	return 0;
}

struct pp_automaton *pp_automaton_free(struct pp_automaton *a)
{
	if (!a)
		return NULL;
	for (size_t i = 0; i < a->n; i++)
		free(a->list[i].text);
	free(a->next);
	free(a->literal);
	free(a->shorter);
	free(a);
	return NULL;
}

size_t pp_automaton_literals(const struct pp_automaton *a)
{
	return a->n;
}

size_t pp_automaton_length(const struct pp_automaton *a, unsigned int literal)
{
	return a->list[literal].len;
}

const char *pp_automaton_text(const struct pp_automaton *a, unsigned int literal)
{
	return a->list[literal].text;
}

static size_t fold_text(const char *text, char folded[PP_LITERAL_LONGEST + 1])
{
	size_t n = 0;

	for (; *text && n < PP_LITERAL_LONGEST; text++) {
		folded[n] = (char)fold((unsigned char)*text);
		n += !(folded[n] == ' ' && n && folded[n - 1] == ' ');
	}
	folded[n] = '\0';
	return *text ? 0 : n;
}

/* Where a literal's number stands, or is to stand. */
static uint16_t *slot_of(struct pp_automaton *a, const char *folded, size_t len)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)folded[i]) * 16777619U;
	for (;; h++) {
		uint16_t *slot = &a->slots[h % (2 * PP_LITERALS_MAX)];
		const struct literal *l = *slot ? &a->list[*slot - 1] : NULL;

		if (!l || (l->len == len && !memcmp(l->text, folded, len)))
			return slot;
	}
}

int pp_automaton_add(struct pp_automaton *a, const char *literal, unsigned int *ret,
		     struct pp_error *err)
{
	char folded[PP_LITERAL_LONGEST + 1];
	size_t len = fold_text(literal, folded);
	unsigned char c;
	uint16_t *slot;

	if (!len)
		return pp_error_set(err, -EINVAL, "a literal has 1 to %d bytes",
				    PP_LITERAL_LONGEST);
	slot = slot_of(a, folded, len);
	if (*slot) {
		*ret = *slot - 1U;
		return 0;
	}
	if (a->n == PP_LITERALS_MAX)
		return pp_error_set(err, -EFBIG, "more than %d literals", PP_LITERALS_MAX);
	a->list[a->n] = (struct literal){strdup(folded), len};
	if (!a->list[a->n].text)
		return pp_error_set(err, -ENOMEM, "out of memory for literals");
	for (size_t i = 0; i < len; i++) {
		c = (unsigned char)folded[i];
		if (!a->class[c])
			a->class[c] = (uint8_t)a->classes++;
	}
	*ret = (unsigned int)a->n++;
	*slot = (uint16_t)a->n;
	return 0;
}

/* Every byte that folds to one that is used has its class. */
static void spread_classes(struct pp_automaton *a)
{
	for (unsigned int c = 0; c < 256; c++)
		a->class[c] = a->class[fold((unsigned char)c)];
}

static void insert(struct pp_automaton *a, unsigned int id)
{
	const struct literal *l = &a->list[id];
	size_t s = 0;

	for (size_t i = 0; i < l->len; i++) {
		uint32_t *to = &a->next[s * a->classes + a->class[(unsigned char)l->text[i]]];

		if (!*to)
			*to = (uint32_t)a->states++;
		s = *to;
	}
	a->literal[s] = (uint16_t)id;
}

/* Breadth first: a state's suffix is always nearer to the root, hence already complete. */
static int link_suffixes(struct pp_automaton *a)
{
	uint32_t *queue = calloc(a->states, sizeof(*queue));
	uint32_t *suffix = calloc(a->states, sizeof(*suffix));
	size_t head = 0, tail = 0;

	if (!queue || !suffix) {
		free(queue);
		free(suffix);
		return -ENOMEM;
	}
	for (unsigned int c = 0; c < a->classes; c++)
		if (a->next[c])
			queue[tail++] = a->next[c];
	while (head < tail) {
		size_t s = queue[head++], f = suffix[s];

		a->shorter[s] = a->literal[f] != NONE ? (uint32_t)f : a->shorter[f];
		for (unsigned int c = 0; c < a->classes; c++) {
			uint32_t *to = &a->next[s * a->classes + c];

			if (*to) {
				suffix[*to] = a->next[f * a->classes + c];
				queue[tail++] = *to;
			} else {
				*to = a->next[f * a->classes + c];
			}
		}
	}
	free(queue);
	free(suffix);
	return 0;
}

static void mark_ends(struct pp_automaton *a)
{
	for (size_t i = 0; i < a->states * a->classes; i++) {
		size_t s = a->next[i];

		if (a->literal[s] != NONE || a->shorter[s])
			a->next[i] |= ENDS;
	}
}

int pp_automaton_build(struct pp_automaton *a, struct pp_error *err)
{
	size_t states = 1;

	for (size_t i = 0; i < a->n; i++)
		states += a->list[i].len;
	if (states > STATES_MAX)
		return pp_error_set(err, -EFBIG, "literals are longer than %d bytes together",
				    STATES_MAX);
	spread_classes(a);
	a->next = calloc(states * a->classes, sizeof(*a->next));
	a->literal = malloc(states * sizeof(*a->literal));
	a->shorter = calloc(states, sizeof(*a->shorter));
	if (!a->next || !a->literal || !a->shorter)
		return pp_error_set(err, -ENOMEM, "out of memory for literals");
	memset(a->literal, 0xff, states * sizeof(*a->literal));
	a->states = 1;
	for (size_t i = 0; i < a->n; i++)
		insert(a, (unsigned int)i);
	if (link_suffixes(a))
		return pp_error_set(err, -ENOMEM, "out of memory for literals");
	mark_ends(a);
	return 0;
}

/*
 * @end: behind the literal's last byte in the text. Blanks may have been skipped inside it, so its
 * start is known only where it has none; a literal that begins with a digit has none in front.
 */
static bool whole_word(const struct literal *l, const char *text, size_t end, size_t len)
{
	bool inner_blank = memchr(l->text, ' ', l->len) != NULL;

	if (isdigit((unsigned char)l->text[l->len - 1]) && end < len &&
	    isdigit((unsigned char)text[end]))
		return false;
	if (isdigit((unsigned char)l->text[0]) && !inner_blank && end > l->len &&
	    isdigit((unsigned char)text[end - l->len - 1]))
		return false;
	if (l->len > SHORT || inner_blank || !isalpha((unsigned char)l->text[0]))
		return true;
	return (end == len || !isalpha((unsigned char)text[end])) &&
	       (end == l->len || !isalnum((unsigned char)text[end - l->len - 1]));
}

void pp_hits_add(struct pp_hits *hits, unsigned int literal)
{
	if (pp_hits_have(hits, literal))
		return;
	hits->set[literal / 64] |= (uint64_t)1 << (literal % 64);
	if (hits->n == sizeof(hits->list) / sizeof(hits->list[0]))
		return;
	hits->end[hits->n] = 0;
	hits->list[hits->n++] = (uint16_t)literal;
}

static void collect(const struct pp_automaton *a, size_t s, const char *text, size_t end,
		    size_t len, struct pp_hits *hits)
{
	for (; s; s = a->shorter[s]) {
		unsigned int id = a->literal[s];

		if (id == NONE || pp_hits_have(hits, id) ||
		    !whole_word(&a->list[id], text, end, len))
			continue;
		hits->set[id / 64] |= (uint64_t)1 << (id % 64);
		if (hits->n == sizeof(hits->list) / sizeof(hits->list[0]))
			continue;
		hits->end[hits->n] = (uint32_t)end;
		hits->list[hits->n++] = (uint16_t)id;
	}
}

static void empty(const struct pp_automaton *a, struct pp_hits *hits)
{
	memset(hits->set, 0, (a->n + 63) / 64 * sizeof(hits->set[0]));
	hits->n = 0;
}

bool pp_automaton_scan(const struct pp_automaton *a, const char *text, size_t len,
		       struct pp_hits *hits)
{
	const uint32_t *next = a->next;
	const uint8_t *class = a->class;
	unsigned int blank = class[' '], classes = a->classes;
	size_t s = 0;

	empty(a, hits);
	for (size_t i = 0; i < len; i++) {
		unsigned int c = class[(unsigned char)text[i]];

		s = next[s * classes + c];
		if (s & ENDS) {
			s &= STATES_MAX;
			collect(a, s, text, i + 1, len, hits);
		}
		/* the others of a run of blanks */
		while (c == blank && c && i + 1 < len && class[(unsigned char)text[i + 1]] == c)
			i++;
	}
	return hits->n > 0;
}
