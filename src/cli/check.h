/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of peerpath check: what the probe found, and the page that people read.
 */
#ifndef PP_CLI_CHECK_H
#define PP_CLI_CHECK_H

#include "cli/proof.h"
#include "mem/probe.h"

struct pp_check {
	struct pp_session s;
	struct pp_proof proof;
	struct pp_probe *probe; /* NULL without --probe */
	const struct pp_prerequisites *needs;
	enum pp_verdict verdict; /* of the gates, which know what the probe found */
};

/*
 * Probes every hca and adds what was found to the node's facts, before they are judged. 0, or an
 * exit code after one line on stderr.
 */
int pp_check_probe(struct pp_check *c);
void pp_check_probe_out(struct pp_out *o, const struct pp_probe *probe);

/* Text: findings by rule, open facts, notes; with @details cause, fix and source of each. */
void pp_check_text(const struct pp_check *c, bool details);

#endif
