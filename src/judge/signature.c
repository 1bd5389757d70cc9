/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/signature.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "judge/condition.h"
#include "base/compiler.h"
#include "base/banned.h"

enum { ALTERNATIVES = 24, LONGEST = 1024 };

struct parser {
	struct pp_arena *arena;
	struct pp_automaton *automaton;
	struct pp_error *err;
	uint16_t literals[ALTERNATIVES * 3];
	unsigned int n_literals;
	int64_t numbers[ALTERNATIVES];
	unsigned int n_numbers;
};

static int add_literal(struct parser *p, const char *text)
{
	unsigned int id;
	int r = pp_automaton_add(p->automaton, text, &id, p->err);

	if (r)
		return r;
	if (p->n_literals == PP_ARRAY_LEN(p->literals))
		return pp_error_set(p->err, -EINVAL, "more than %d alternatives", ALTERNATIVES);
	p->literals[p->n_literals++] = (uint16_t)id;
	return 0;
}

static int add_number(struct parser *p, enum pp_field field, const char *text)
{
	const char *spelling;
	int64_t value;
	char buf[64];
	int r = 0;

	if (pp_field_number(field, text, &value))
		return pp_error_set(p->err, -EINVAL, "'%s' is no value of '%s'", text,
				    pp_field_name(field));
	if (p->n_numbers == ALTERNATIVES)
		return pp_error_set(p->err, -EINVAL, "more than %d alternatives", ALTERNATIVES);
	p->numbers[p->n_numbers++] = value;
	for (unsigned int i = 0; !r && (spelling = pp_field_spelling(field, value, i, buf)); i++)
		r = add_literal(p, spelling);
	return r;
}

/* The longest piece of a glob that has to stand in the line as it is. */
static int add_glob(struct parser *p, const char *glob)
{
	const char *at = glob, *best = glob;
	char piece[PP_LITERAL_LONGEST];
	size_t n, longest = 0;

	for (; *at; at += n + (at[n] != '\0')) {
		n = strcspn(at, "*?:");
		if (n > longest && n < sizeof(piece)) {
			longest = n;
			best = at;
		}
	}
	if (longest < 3)
		return pp_error_set(p->err, -EINVAL, "'%s' has no piece of 3 bytes", glob);
	memcpy(piece, best, longest);
	piece[longest] = '\0';
	return add_literal(p, piece);
}

static int add_alternative(struct parser *p, const struct pp_term *t, const char *text)
{
	if (!*text)
		return pp_error_set(p->err, -EINVAL, "an alternative is empty");
	if (!t->is_field)
		return add_literal(p, text);
	if (!pp_field_is_word(t->field))
		return add_number(p, t->field, text);
	return pp_field_is_literal(t->field) ? add_glob(p, text) : 0;
}

/* "a|b|c" */
static int alternatives(struct parser *p, struct pp_term *t, const char *text)
{
	char copy[LONGEST], *at = copy, *bar;
	int r = 0;

	(void)memccpy(copy, text, '\0', sizeof(copy));
	copy[sizeof(copy) - 1] = '\0';
	p->n_literals = p->n_numbers = 0;
	while (!r && at) {
		bar = strchr(at, '|');
		if (bar)
			*bar++ = '\0';
		r = add_alternative(p, t, at);
		at = bar;
	}
	if (r)
		return r;
	if (t->is_field && pp_field_is_word(t->field))
		t->glob = pp_arena_str(p->arena, text);
	t->literals = pp_arena_array(p->arena, p->n_literals, sizeof(*t->literals));
	t->numbers = pp_arena_array(p->arena, p->n_numbers, sizeof(*t->numbers));
	if (p->arena->failed)
		return pp_error_set(p->err, -ENOMEM, "out of memory for signatures");
	t->n_literals = p->n_literals;
	t->n_numbers = p->n_numbers;
	memcpy((void *)(uintptr_t)t->literals, p->literals, p->n_literals * sizeof(*t->literals));
	memcpy((void *)(uintptr_t)t->numbers, p->numbers, p->n_numbers * sizeof(*t->numbers));
	return 0;
}

/* One term at *at, in a text that may be changed; advances behind it. */
static int term(struct parser *p, char **at, struct pp_term *t)
{
	char *start = *at, *end;

	*t = (struct pp_term){.negated = *start == '!'};
	start += t->negated;
	if (*start == '"') {
		end = strchr(++start, '"');
		if (!end)
			return pp_error_set(p->err, -EINVAL, "no '\"' at the end of: %s", start);
	} else {
		size_t n = strcspn(start, "= \t");

		if (start[n] != '=' || pp_field_parse(start, n, &t->field))
			return pp_error_set(p->err, -EINVAL,
					    "expected \"text\" or field=value at '%s'", start);
		t->is_field = true;
		start += n + 1;
		end = start + strcspn(start, " \t");
	}
	*at = end + (*end != '\0');
	*end = '\0';
	return alternatives(p, t, start);
}

/* How rare a line with this term is likely to be: the length of its shortest literal. */
static size_t rarity(const struct pp_automaton *a, const struct pp_term *t)
{
	size_t least = SIZE_MAX, len;

	if (t->negated || !t->n_literals)
		return 0;
	for (unsigned int i = 0; i < t->n_literals; i++) {
		len = pp_automaton_length(a, t->literals[i]);
		if (len < least)
			least = len;
	}
	return least;
}

int pp_signature_parse(struct pp_arena *arena, struct pp_automaton *a, const char *text,
		       struct pp_signature *ret, struct pp_error *err)
{
	struct parser p = {.arena = arena, .automaton = a, .err = err};
	struct pp_signature s = {0};
	char copy[LONGEST], *at = copy;
	size_t best = 0, rare;
	int r;

	if (strlen(text) >= sizeof(copy))
		return pp_error_set(err, -EINVAL, "signature is longer than %d bytes", LONGEST - 1);
	memcpy(copy, text, strlen(text) + 1);
	s.text = pp_arena_str(arena, text);
	s.terms = pp_arena_array(arena, PP_SIGNATURE_TERMS, sizeof(*s.terms));
	if (arena->failed)
		return pp_error_set(err, -ENOMEM, "out of memory for signatures");
	for (at += strspn(at, " \t"); *at; at += strspn(at, " \t")) {
		if (s.n == PP_SIGNATURE_TERMS)
			return pp_error_set(err, -EINVAL, "more than %d terms", PP_SIGNATURE_TERMS);
		r = term(&p, &at, &s.terms[s.n]);
		if (r)
			return r;
		rare = rarity(a, &s.terms[s.n]);
		if (rare > best) {
			best = rare;
			s.anchor = s.n;
		}
		s.n++;
	}
	if (!best)
		return pp_error_set(err, -EINVAL, "no term says what a line must hold: %s", text);
	*ret = s;
	return 0;
}

static bool literal_holds(const struct pp_term *t, const struct pp_line *line)
{
	for (unsigned int i = 0; i < t->n_literals; i++)
		if (pp_hits_have(line->hits, t->literals[i]))
			return true;
	return false;
}

/* "NAME" of a setting matches whatever its value. */
static bool word_matches(const struct pp_term *t, const char *word)
{
	char name[PP_FIELD_WORD];

	if (pp_glob_match(t->glob, word))
		return true;
	if (t->field != PP_FIELD_ENV)
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, ":"), word);
	return pp_glob_match(t->glob, name);
}

static bool field_holds(const struct pp_term *t, struct pp_line *line)
{
	const struct pp_fields *f = line->fields;

	if (!line->has_fields) {
		pp_fields_begin(line->text, line->len, line->fields);
		line->has_fields = true;
	}
	pp_fields_need(line->fields, t->field);
	for (unsigned int i = 0; i < f->n[t->field]; i++) {
		if (t->glob && word_matches(t, f->words[t->field][i]))
			return true;
		for (unsigned int k = 0; k < t->n_numbers; k++)
			if (f->numbers[t->field][i] == t->numbers[k])
				return true;
	}
	return false;
}

static bool term_holds(const struct pp_term *t, struct pp_line *line)
{
	if (t->n_literals && !literal_holds(t, line))
		return t->negated;
	if (!t->is_field)
		return !t->negated;
	return field_holds(t, line) != t->negated;
}

bool pp_signature_test(const struct pp_signature *s, struct pp_line *line)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (!term_holds(&s->terms[i], line))
			return false;
	return true;
}
