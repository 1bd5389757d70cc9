/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_explain: a text against the known problems, then against the facts of a node.
 *
 * Reading takes bounded memory and one pass. Ranking: what is more certain first; then what came
 * first, by its own time where the lines have one; then what more was seen of. A consequence never
 * stands above a cause. Two causes of one line are never both certain.
 */
#ifndef PP_JUDGE_EXPLAIN_H
#define PP_JUDGE_EXPLAIN_H

#include "judge/known.h"
#include "judge/message.h"
#include "judge/policy.h"

struct pp_explain; /* opaque: reads a text */

/* @known is borrowed. -ENOMEM. */
int pp_explain_new(const struct pp_known_set *known, struct pp_explain **ret);
struct pp_explain *pp_explain_free(struct pp_explain *e); /* returns NULL */
void pp_explain_push(struct pp_explain *e, const char *bytes, size_t len);

enum { PP_EVIDENCE_TEXT = 320, PP_DIAGNOSIS_EVIDENCE = 4, PP_UNEXPLAINED = 16 };

/* A line of the text that counts. */
struct pp_seen_line {
	uint64_t line, times; /* times: lines like it */
	struct pp_stamp stamp;
	char text[PP_EVIDENCE_TEXT];
};

struct pp_diagnosis {
	const struct pp_known *known;
	enum pp_certainty certainty;
	enum pp_truth facts;	       /* of requires and excludes; open when there are none */
	const struct pp_object *of;    /* the object that decided; NULL none */
	const struct pp_known *caused; /* the problem that this follows from; NULL none */
	unsigned int weight;
	const struct pp_seen_line *evidence[PP_DIAGNOSIS_EVIDENCE]; /* first of each clue */
	unsigned int n_evidence;
	const char *driver; /* of a provider that the text names; NULL none */
};

struct pp_explanation {
	struct pp_diagnosis *list; /* owned; best first; consequences, then harmless ones last */
	size_t n;
	uint64_t lines, bytes;
	const struct pp_known *formats[PP_UNEXPLAINED]; /* what the text was recognised as */
	unsigned int n_formats;
	struct pp_seen_line unexplained[PP_UNEXPLAINED]; /* complaints that nothing fits */
	unsigned int n_unexplained;
	uint64_t unexplained_lines;
	bool here;				/* as pp_explain_here() */
	const struct pp_components *components; /* versions that the text states; borrowed */
};

/* The facts are those of the failing process too: its limits, environment, libraries. */
void pp_explain_here(struct pp_explain *e);

/*
 * Ends the text. @facts NULL: nothing is known of the node. Borrows from @e and @facts. -ENOMEM.
 */
int pp_explain_finish(struct pp_explain *e, const struct pp_facts *facts,
		      struct pp_explanation *ret);
void pp_explanation_done(struct pp_explanation *x);

/* Exit code: 1 a problem, 0 nothing wrong in a text that is understood, 2 not known. */
enum pp_exit pp_explanation_exit(const struct pp_explanation *x);

/* Members of the document: "diagnoses", "unexplained", ... @facts and @policy may be NULL. */
void pp_explanation_write(struct pp_json *j, const struct pp_explanation *x,
			  const struct pp_facts *facts, const struct pp_policy *policy);

#endif
