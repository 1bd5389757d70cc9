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
	const struct pp_transfer *transfer;    /* of a run for gate 2; borrowed; NULL none */
	const struct pp_gate_library *library; /* of a job for gate 3; borrowed; NULL none */
	struct pp_gates gates;
	pp_ns judged; /* wall clock */
};

/*
 * 0, or an exit code after one line on stderr; pp_proof_done() frees either way. @ret is zeroed but
 * for @transfer and @library.
 */
int pp_proof_judge(struct pp_session *s, enum pp_gate through, struct pp_proof *ret);
/*
 * By which rules and policy it was judged: object "rule_set" in JSON; in text a line, only where
 * they are not the program's own. The caller places it.
 */
void pp_proof_rules(struct pp_out *o, const struct pp_proof *p);
void pp_proof_done(struct pp_proof *p);

#endif
