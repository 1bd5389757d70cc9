/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_rules: what is known to break or slow the path, as data (docs: peerpath-rules(5)).
 *
 * A rule fires on an object when every "when" holds and no "unless" does. It is open when an
 * unknown fact leaves that undecided. Taking a fact away can only turn "fires" or "does not fire"
 * into "open"; the loader refuses rules that would break this (see the flags below).
 */
#ifndef PP_JUDGE_RULE_H
#define PP_JUDGE_RULE_H

#include "base/words.h"
#include "judge/condition.h"

struct pp_rule {
	const char *id; /* [a-z0-9-]+ */
	const char *title;
	const char
		*problem; /* "P7 R4": numbers of the problem list and prerequisite matrix, or "-" */
	const char *cause;
	const char *decide; /* how to decide, or to confirm */
	const char *fix;
	const char *fix_id;  /* word that policy.conf can forbid; NULL: the fix changes nothing */
	const char *reverse; /* how to undo the fix; NULL only without fix_id */
	const char *next;    /* one command */
	const char *source;
	const char *reviewed; /* YYYY-MM-DD */
	const char *file;
	unsigned int line;
	unsigned int tier; /* directory it came from, in order of loading */
	enum pp_kind scope;
	enum pp_verdict verdict; /* when it fires; PP_PASS for advice */
	bool advice;		 /* is said, judges nothing */
	bool disabled;		 /* by a later directory */
	struct pp_condition *when, *unless;
	unsigned int n_when, n_unless;
	const enum pp_fact_id *show; /* facts that explain, and decide nothing */
	unsigned int n_show;
};

struct pp_rules;

enum {
	PP_RULES_MAX = 1024,
	PP_RULE_CONDITIONS = 16,
	PP_RULE_SHOWN = 8,
	PP_RULE_FACTS = 2 * PP_RULE_CONDITIONS + PP_RULE_SHOWN,
	PP_RULES_FILE_MAX = 1 << 20
};

int pp_rules_new(struct pp_rules **ret); /* -ENOMEM */
struct pp_rules *pp_rules_free(struct pp_rules *r);

/*
 * Adds the rules of one file's text. Files of one @tier may not define an id twice; a higher tier
 * replaces a rule of that id, or disables it. On error nothing may be assumed of @r but that it
 * can be freed. -EINVAL (file:line in @err), -ENOMEM, -EFBIG.
 */
int pp_rules_parse(struct pp_rules *r, unsigned int tier, const char *name, const char *text,
		   size_t len, struct pp_error *err);

/* Every *.rules file of @dir in the order of names. -ENOENT when the directory does not exist. */
int pp_rules_load_dir(struct pp_rules *r, unsigned int tier, const char *dir, struct pp_error *err);

/*
 * The rules a program uses: those of @dir alone when given, or of the directory that
 * $PEERPATH_RULES names; else the installed ones (those of the source tree when none are
 * installed), then /etc/peerpath/rules.d over them.
 */
int pp_rules_load(const char *dir, struct pp_rules **ret, struct pp_error *err);

/* Which rules these are, for a result that is read elsewhere. */
struct pp_rules_origin {
	const char *where; /* "installed", "installed and rules.d", "source tree", or a directory's
			      last name; "-" when they come from no directory. Valid as @r. */
	bool own;	   /* the program's, unchanged by a site */
	char sha256[65];   /* of the text of all files, in the order of loading */
};
void pp_rules_origin(const struct pp_rules *r, struct pp_rules_origin *ret);

/* In order of loading; disabled ones too. */
const struct pp_rule *pp_rules_at(const struct pp_rules *r, size_t i); /* NULL past the end */
const struct pp_rule *pp_rules_find(const struct pp_rules *r, const char *id);

/*
 * On an object of the rule's scope. @ret_missing (may be NULL) receives up to @size facts that
 * leave it open, each once; returns the truth, *ret_n their number.
 */
enum pp_truth pp_rule_test(const struct pp_rule *rule, const struct pp_facts *facts,
			   const struct pp_object *o, enum pp_fact_id *ret_missing,
			   unsigned int size, unsigned int *ret_n);

#endif
