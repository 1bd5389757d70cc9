/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_findings: rules applied to the facts of a node.
 *
 * A finding is a rule that fired on an object, or one that an unknown fact leaves open there: its
 * verdict is then `unknown`. Advice is said, and counts for nothing. Findings about an hca that is
 * no gpu's rail are said too, but judge the node only while some gpu has no rail.
 */
#ifndef PP_JUDGE_FINDING_H
#define PP_JUDGE_FINDING_H

#include "judge/policy.h"
#include "judge/rule.h"

struct pp_finding {
	const struct pp_rule *rule; /* borrowed */
	const struct pp_object *of; /* borrowed */
	enum pp_truth state;	    /* PP_TRUE fired, PP_OPEN undecided */
	enum pp_verdict verdict;    /* PP_PASS for advice */
	bool counts;		    /* judges the node: no advice, no bystander */
	const char *what;	    /* title, "{fact}" in it replaced by what was seen */
	const char *blocked;	    /* site policy's reason against the fix, else NULL; borrowed */
};

struct pp_findings {
	struct pp_arena arena;	 /* holds texts of the findings */
	struct pp_finding *list; /* owned; worst first, then in the order of the rules */
	size_t n;
	size_t rules;		 /* rules that were applied */
	size_t disabled;	 /* rules that the site has disabled */
	enum pp_verdict verdict; /* worst that counts */
};

enum { PP_FINDINGS_MAX = 1 << 20 };

/* @policy may be NULL. -ENOMEM, -EFBIG. */
int pp_findings_judge(const struct pp_facts *facts, const struct pp_rules *rules,
		      const struct pp_policy *policy, struct pp_findings *ret);
void pp_findings_done(struct pp_findings *f);

/* Facts that the rule looked at on this object, each once; returns their number. */
struct pp_seen {
	const struct pp_object *of;
	const struct pp_fact *fact; /* NULL: never observed */
	enum pp_fact_id id;
};
unsigned int pp_finding_facts(const struct pp_facts *facts, const struct pp_finding *f,
			      struct pp_seen ret[PP_RULE_FACTS]);

/* Array @key of {rule, problem, state, verdict, counts, of, facts, cause, fix, blocked, ...}. */
void pp_findings_write(struct pp_json *j, const char *key, const struct pp_facts *facts,
		       const struct pp_findings *f);

#endif
