/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_known_set: known problems and how texts show them, as data (docs: peerpath-rules(5)).
 *
 * A known problem is one cause. Several may have the same text: facts, other lines and the weight
 * of what was seen rank them. Its rule part is that of `check`: "requires" are conditions that the
 * cause cannot do without, "excludes" rule it out, and an unknown fact leaves it open.
 */
#ifndef PP_JUDGE_KNOWN_H
#define PP_JUDGE_KNOWN_H

#include "judge/component.h"
#include "judge/rule.h"
#include "judge/shape.h"
#include "judge/signature.h"

enum pp_certainty { PP_POSSIBLE, PP_LIKELY, PP_CERTAIN };

enum pp_known_kind {
	PP_KNOWN_PROBLEM,
	PP_KNOWN_CONSEQUENCE, /* of something earlier, often on another rank */
	PP_KNOWN_STATE,	      /* how the text says things run: nothing failed by it alone */
	PP_KNOWN_HARMLESS,
	PP_KNOWN_FORMAT, /* not a problem: a text that is understood */
	PP_KNOWN_ALARM,	 /* a line that complains; unexplained unless another one fits it */
	PP_KNOWN_KINDS
};

/* Any of list: a line of the text fits one of these signatures. */
struct pp_clue {
	unsigned int first, n; /* in the set's signatures */
};

enum { PP_KNOWN_CLUES = 16, PP_KNOWN_NAMES = 8, PP_KNOWN_WATCHED = 128 };

struct pp_known {
	struct pp_rule rule; /* when: requires; unless: excludes; verdict is not used */
	enum pp_known_kind kind;
	enum pp_certainty alone;     /* from the text alone */
	enum pp_certainty hinted;    /* when a hint stands in the text */
	enum pp_certainty confirmed; /* when all facts are known and agree */
	const char *not_text;	     /* what it is easily taken for; NULL none */
	const char *control;	     /* the one cheap change that must cure it; NULL none */
	struct pp_clue match;	     /* the lines that show it */
	struct pp_clue with[PP_KNOWN_CLUES], without, hint[PP_KNOWN_CLUES];
	unsigned int n_with, n_hint;
	const char *beats[PP_KNOWN_NAMES];	   /* ids that it explains better */
	const char *follows[PP_KNOWN_NAMES];	   /* ids of which it is a consequence */
	const char *templates[PP_RULE_CONDITIONS]; /* conditions that name {driver}; excludes */
	unsigned int n_templates;
	struct pp_range ranges[PP_RANGES]; /* of versions: each is a condition */
	unsigned int n_ranges;
	bool last; /* only where nothing else fits its lines */
};

struct pp_known_set {
	struct pp_arena arena;
	struct pp_known *list; /* owned */
	size_t n, cap;
	struct pp_signature *signatures; /* owned */
	unsigned int *owner;		 /* owned: the problem that a signature belongs to */
	size_t n_signatures, signature_cap;
	struct pp_automaton *automaton;
	/* By literal: signatures that are anchored on it, index[literal] .. index[literal + 1]. */
	unsigned int *index, *anchored; /* owned */
	/*
	 * PyTorch and XLA repeat NCCL's last warning without its head: a line that they announce is
	 * read as if it had it.
	 */
	unsigned int warning[2], announce[2];
	/* Literals of lines that are read beyond signatures. */
	unsigned int watched[PP_KNOWN_WATCHED];
	struct pp_shapes shapes;
	unsigned int n_watched, first_component; /* words of components come last */
};

enum { PP_KNOWN_MAX = 1024, PP_SIGNATURES_MAX = 8192 };

int pp_known_new(struct pp_known_set **ret); /* -ENOMEM */
struct pp_known_set *pp_known_free(struct pp_known_set *k);

/* As pp_rules_parse(); no id twice. */
int pp_known_parse(struct pp_known_set *k, const char *name, const char *text, size_t len,
		   struct pp_error *err);
/* After the last file: names that are referred to must exist. */
int pp_known_finish(struct pp_known_set *k, struct pp_error *err);

/*
 * Every *.rules file of @dir; NULL: of $PEERPATH_EXPLAIN, else the installed ones, else those of
 * the source tree.
 */
int pp_known_load(const char *dir, struct pp_known_set **ret, struct pp_error *err);

const struct pp_known *pp_known_find(const struct pp_known_set *k, const char *id);
const char *pp_certainty_name(enum pp_certainty c);
const char *pp_known_kind_name(enum pp_known_kind k);

#endif
