/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line of one verb, by its table. Nothing is guessed: an unknown flag names the nearest
 * one, an argument outside its words is refused, and options keep their order.
 */
#include "cli/verb.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/near.h"
#include "base/parse.h"
#include "base/words.h"
#include "base/banned.h"

/* What the program itself may add: pp_args_imply(). */
enum { MAX_OPTIONS = 64, IMPLIED = 4 };

struct given {
	const struct pp_option *option;
	const char *value;
};

struct pp_args {
	const struct pp_verb *verb;
	struct given *given;
	size_t n_given;
	size_t n_implied;
	char *const *operands; /* borrowed from argv */
	size_t n_operands;
	char *const *raw; /* verb and all behind it; NULL-terminated */
};

/* The verb's options, then the common ones. */
static const struct pp_option *option_at(const struct pp_verb *verb, size_t i)
{
	const struct pp_option *o = verb->options;

	for (; o && o->name; o++)
		if (i-- == 0)
			return o;
	for (o = pp_common_options; o->name; o++)
		if (i-- == 0)
			return o;
	return NULL;
}

static int usage(const struct pp_verb *verb, const char *what, const char *word, const char *near)
{
	bool bare = !strcmp(verb->name, "show");
	char shown[128];

	(void)snprintf(shown, sizeof(shown), "%s", word);
	pp_sanitize(shown, false);
	(void)fprintf(stderr, "peerpath%s%s: %s '%s'%s%s%s; see 'peerpath%s%s --help'\n",
		      bare ? "" : " ", bare ? "" : verb->name, what, shown,
		      near ? ", did you mean '" : "", near ? near : "", near ? "'" : "",
		      bare ? "" : " ", bare ? "" : verb->name);
	return PP_EXIT_USAGE;
}

static int unknown_option(const struct pp_verb *verb, const char *text)
{
	const struct pp_option *o;
	char shown[72], bare[64];
	struct pp_near near;
	size_t len;

	while (*text == '-')
		text++;
	len = strcspn(text, "=");
	(void)snprintf(bare, sizeof(bare), "%.*s", (int)(len < 60 ? len : 60), text);
	near = PP_NEAR(bare);
	for (size_t i = 0; (o = option_at(verb, i)); i++)
		pp_near_offer(&near, o->name);
	if (near.best)
		(void)snprintf(shown, sizeof(shown), "--%s", near.best);
	return usage(verb, "unknown option", bare, near.best ? shown : NULL);
}

static int check_word(const struct pp_verb *verb, const struct pp_option *o, const char *value)
{
	struct pp_near near = PP_NEAR(value);
	char what[96];

	if (!o->words)
		return 0;
	for (const char *const *w = o->words; *w; w++) {
		if (!strcmp(*w, value))
			return 0;
		pp_near_offer(&near, *w);
	}
	(void)snprintf(what, sizeof(what), "--%s does not take", o->name);
	return usage(verb, what, value, near.best);
}

/* Tables for getopt_long; val 256 + i names option i, letters name themselves. */
static size_t getopt_tables(const struct pp_verb *verb, struct option *longs, char *letters)
{
	const struct pp_option *o;
	size_t n;

	*letters++ = ':'; /* a missing argument is told apart from an unknown option */
	for (n = 0; n < MAX_OPTIONS && (o = option_at(verb, n)); n++) {
		longs[n] = (struct option){o->name,
					   !o->arg	    ? no_argument
					   : *o->arg == '[' ? optional_argument
							    : required_argument,
					   NULL, 256 + (int)n};
		if (!o->letter)
			continue;
		*letters++ = o->letter;
		if (o->arg)
			*letters++ = ':';
	}
	*letters = '\0';
	longs[n] = (struct option){0};
	return n;
}

static const struct pp_option *option_of(const struct pp_verb *verb, size_t n, int c)
{
	const struct pp_option *o;

	if (c >= 256)
		return option_at(verb, (size_t)(c - 256));
	for (size_t i = 0; i < n; i++) {
		o = option_at(verb, i);
		if (o && o->letter == c)
			return o;
	}
	return NULL;
}

/* `peerpath --json check`: the options are the verb's own, so they stand behind it. */
static int misplaced_verb(const struct pp_args *a)
{
	char line[512];
	size_t len;

	len = (size_t)snprintf(line, sizeof(line), "peerpath %s", a->operands[0]);
	for (size_t i = 0; i < a->n_given && len < sizeof(line); i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, " --%s%s%s",
					a->given[i].option->name, a->given[i].value ? "=" : "",
					a->given[i].value ? a->given[i].value : "");
	pp_sanitize(line, false);
	(void)fprintf(stderr, "peerpath: the verb comes first: %s\n", line);
	return PP_EXIT_USAGE;
}

static int check_operands(const struct pp_args *a)
{
	if (a->n_operands && !strcmp(a->verb->name, "show") && pp_verb_find(a->operands[0]))
		return misplaced_verb(a);
	if (a->n_operands < a->verb->min_operands)
		return usage(a->verb, "missing operand", a->verb->operands, NULL);
	if (a->n_operands > a->verb->max_operands)
		return usage(a->verb, "unexpected operand", a->operands[a->verb->max_operands],
			     NULL);
	return 0;
}

static int parse_options(struct pp_args *a, int argc, char **argv)
{
	struct option longs[MAX_OPTIONS + 1];
	char letters[2 * MAX_OPTIONS + 2];
	size_t n = getopt_tables(a->verb, longs, letters);
	const struct pp_option *o;
	int c, r;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == '?')
			return unknown_option(a->verb, argv[optind - 1]);
		if (c == ':')
			return usage(a->verb, "missing argument of", argv[optind - 1], NULL);
		o = option_of(a->verb, n, c);
		assert(o);
		r = optarg ? check_word(a->verb, o, optarg) : 0;
		if (r)
			return r;
		a->given[a->n_given++] = (struct given){o, optarg};
	}
	a->operands = argv + optind;
	a->n_operands = (size_t)(argc - optind);
	return 0;
}

static bool holds(const struct pp_option *table, const struct pp_option *o)
{
	for (; table && table->name; table++)
		if (table == o)
			return true;
	return false;
}

/* Of the common options, which are found by name: each table of them has its own rows. */
static bool is_heeded(const struct pp_verb *verb, const struct pp_option *o)
{
	for (const struct pp_option *c = verb->common; c->name; c++)
		if (!strcmp(c->name, o->name))
			return true;
	return false;
}

/* An option that would say nothing is refused: whoever gave it expects that it does. */
static int check_ignored(const struct pp_args *a)
{
	static const char *const pairs[][2] = {{"root", "replay"},
					       {"no-bundle", "output"},
					       {"no-bundle", "force"},
					       {"no-bundle", "scrub"}};
	char what[64], option[64];

	for (size_t i = 0; i < PP_ARRAY_LEN(pairs); i++) {
		if (!pp_args_has(a, pairs[i][0]) || !pp_args_has(a, pairs[i][1]))
			continue;
		(void)snprintf(what, sizeof(what), "--%s excludes", pairs[i][0]);
		(void)snprintf(option, sizeof(option), "--%s", pairs[i][1]);
		return usage(a->verb, what, option, NULL);
	}
	for (size_t i = 0; i < a->n_given; i++) {
		const struct pp_option *o = a->given[i].option;

		if (holds(a->verb->options, o) || is_heeded(a->verb, o))
			continue;
		(void)snprintf(option, sizeof(option), "--%s", o->name);
		return usage(a->verb,
			     strcmp(o->name, "root") != 0 && strcmp(o->name, "replay") != 0
				     ? "prints no document, so it takes no"
				     : "reads no node, so it takes no",
			     option, NULL);
	}
	return 0;
}

/* Letters stand together in one word: each may be an option. */
static size_t most_given(int argc, char *const *argv)
{
	size_t n = 1 + IMPLIED;

	for (int i = 1; i < argc; i++)
		n += 1 + strlen(argv[i]);
	return n;
}

int pp_args_parse(const struct pp_verb *verb, int argc, char **argv, struct pp_args **ret)
{
	struct pp_args *a = calloc(1, sizeof(*a));
	int r = PP_EXIT_INTERNAL;

	if (a)
		a->given = calloc(most_given(argc, argv), sizeof(*a->given));
	if (!a || !a->given) {
		(void)fprintf(stderr, "peerpath: out of memory\n");
		pp_args_free(a);
		return r;
	}
	a->verb = verb;
	a->raw = argv;
	r = parse_options(a, argc, argv);
	if (!r && pp_args_has(a, "help")) {
		pp_help_verb(verb);
		r = -1;
	}
	r = r ? r : check_operands(a);
	r = r ? r : check_ignored(a);
	if (r) {
		pp_args_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct pp_args *pp_args_free(struct pp_args *a)
{
	if (!a)
		return NULL;
	free(a->given);
	free(a);
	return NULL;
}

void pp_args_imply(struct pp_args *a, const char *name, const char *value)
{
	const struct pp_option *o;

	for (size_t i = 0; (o = option_at(a->verb, i)); i++)
		if (!strcmp(o->name, name))
			break;
	assert(o && a->n_implied < IMPLIED);
	a->n_implied++;
	a->given[a->n_given++] = (struct given){o, value};
}

const char *pp_args_nth(const struct pp_args *a, const char *name, size_t i)
{
	for (size_t k = 0; k < a->n_given; k++)
		if (!strcmp(a->given[k].option->name, name) && i-- == 0)
			return a->given[k].value;
	return NULL;
}

size_t pp_args_count(const struct pp_args *a, const char *name)
{
	size_t n = 0;

	for (size_t k = 0; k < a->n_given; k++)
		n += !strcmp(a->given[k].option->name, name);
	return n;
}

bool pp_args_has(const struct pp_args *a, const char *name)
{
	return pp_args_count(a, name) > 0;
}

const char *pp_args_get(const struct pp_args *a, const char *name)
{
	size_t n = pp_args_count(a, name);

	return n ? pp_args_nth(a, name, n - 1) : NULL;
}

size_t pp_args_operands(const struct pp_args *a)
{
	return a->n_operands;
}

const char *pp_args_operand(const struct pp_args *a, size_t i)
{
	return i < a->n_operands ? a->operands[i] : NULL;
}

const char *pp_args_verb(const struct pp_args *a)
{
	return a->verb->name;
}

bool pp_args_knows(const struct pp_args *a, const char *name)
{
	const struct pp_option *o;

	for (size_t i = 0; (o = option_at(a->verb, i)); i++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

char *const *pp_args_raw(const struct pp_args *a)
{
	return a->raw;
}
