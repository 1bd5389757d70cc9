/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document of bench from a stranger's bundle: read, or refused with a place; and what is read
 * writes a document that reads and writes the same again.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "judge/transfer.h"

static char *written(const struct pp_bench *b)
{
	struct pp_buf text = PP_BUF(64 << 20);
	struct pp_json j = PP_JSON(&text, false);

	pp_json_object(&j, NULL);
	pp_bench_write(&j, b);
	pp_json_end_object(&j);
	assert(!text.failed);
	return text.data;
}

/* Whatever it holds, a verdict has a sentence, and what is marked as no hardware never passes. */
static void judged(const struct pp_bench *b)
{
	struct pp_transfer t;
	int r = pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t);

	assert(!r && t.sentence);
	assert(!t.simulated || t.verdict >= PP_UNKNOWN);
	assert(t.verdict != PP_PASS || (b->whole && b->n_pairs));
	for (unsigned int i = 0; i < t.n_rows; i++)
		assert(t.rows[i].sentence && (!b->simulated || t.rows[i].verdict != PP_PASS));
	pp_transfer_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *document = json_loadb((const char *)data, size, 0, NULL), *again;
	struct pp_bench *b = NULL, *back = NULL;
	struct pp_error err = {0};
	int r = pp_bench_read(document, &b, &err);
	char *first, *second;

	assert(!r == (b != NULL) && (!r || (err.code == r && err.text[0])));
	if (b) {
		judged(b);
		first = written(b);
		again = json_loads(first, 0, NULL);
		assert(again && !pp_bench_read(again, &back, &err));
		second = written(back);
		assert(!strcmp(first, second));
		json_decref(again);
		free(first);
		free(second);
	}
	json_decref(document);
	pp_bench_free(back);
	pp_bench_free(b);
	return 0;
}
