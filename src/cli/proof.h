/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_proof: rules, policy, findings and gates of one collected node, as the verbs that
 * judge need them. Options --rules, --policy and --keep-going are taken where the verb has them.
 */
#ifndef PP_CLI_PROOF_H
#define PP_CLI_PROOF_H

#include "cli/session.h"
#include "judge/gate.h"

struct pp_proof {
	struct pp_rules *rules;
	struct pp_policy *policy;
	struct pp_findings findings;
	struct pp_gate_runs runs; /* for gates 2 to 4; borrowed */
	bool keep_going;	  /* beside --keep-going: the run that is replayed did */
	struct pp_gates gates;
	pp_ns judged; /* wall clock */
};

/*
 * 0, or an exit code after one line on stderr; pp_proof_done() frees either way. @ret is zeroed but
 * for @runs and @keep_going.
 */
int pp_proof_judge(struct pp_session *s, enum pp_gate through, struct pp_proof *ret);
/*
 * By which rules and policy it was judged: object "rule_set" in JSON; in text a line, only where
 * they are not the program's own. The caller places it.
 */
void pp_proof_rules(struct pp_out *o, const struct pp_proof *p);
/* Driver calls that did not return: array "stuck" in JSON; in text one line each, if any. */
void pp_proof_stuck(struct pp_out *o, const struct pp_session *s);
void pp_proof_done(struct pp_proof *p);

#endif
