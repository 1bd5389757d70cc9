/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe of one GPU's memory with several hcas: the question, and what its answer says of each
 * row. Private to mem/.
 */
#ifndef PP_MEM_PROBE_PAIRS_H
#define PP_MEM_PROBE_PAIRS_H

#include "mem/probe.h"
#include "node/source.h"

struct pp_probe_pairs {
	const char *gpu; /* BDF */
	struct pp_source *source;
	pp_ns deadline, end;	      /* of a call; of all, monotonic */
	struct pp_probe_result **row; /* of this GPU: two a hca, one behind the other; borrowed */
	size_t n;
};

/* Fills every row. An hca in whose call the helper got stuck is left out of a second try. */
void pp_probe_pairs_ask(struct pp_probe_pairs *p);

#endif
