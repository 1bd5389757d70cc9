/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "judge/explain.h"

static struct pp_known_set *known;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_explain *e = NULL;
	struct pp_explanation x;
	struct pp_error err;
	size_t half = size / 2;

	if (!known && pp_known_load(PEERPATH_SOURCE_DATADIR "/explain", &known, &err))
		abort();
	if (pp_explain_new(known, &e))
		abort();
	/* In two pieces: a line may be cut anywhere. */
	pp_explain_push(e, (const char *)data, half);
	pp_explain_push(e, (const char *)data + half, size - half);
	if (pp_explain_finish(e, NULL, &x))
		abort();
	assert(x.bytes == size);
	for (size_t i = 0; i < x.n; i++) {
		assert(x.list[i].n_evidence > 0 && x.list[i].n_evidence <= PP_DIAGNOSIS_EVIDENCE);
		for (unsigned int k = 0; k < x.list[i].n_evidence; k++) {
			assert(x.list[i].evidence[k]->line <= x.lines);
			assert(strlen(x.list[i].evidence[k]->text) < PP_EVIDENCE_TEXT);
		}
	}
	pp_explanation_done(&x);
	pp_explain_free(e);
	return 0;
}
