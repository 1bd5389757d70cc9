/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded answer: hostile JSON where a driver's answer is expected. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pp_question question = {.name = "seed"};
	struct pp_record *record = NULL;
	struct pp_source *source = NULL;
	struct pp_answer answer;
	struct pp_error err = {0};
	int64_t i;
	bool yes;

	if (pp_record_new((size_t)4 << 20, &record))
		abort();
	if (pp_record_put(record, PP_ENTRY_ANSWER, "seed", data, size, 0) ||
	    pp_source_replay_record(record, &source, &err))
		abort();
	if (pp_ask(source, &question, &answer))
		abort();
	assert(json_is_object(answer.data));
	assert(answer.answered || answer.detail[0]);
	assert(answer.took >= 0);
	(void)pp_answer_str(answer.data, "text");
	(void)pp_answer_i64(answer.data, "n", &i);
	(void)pp_answer_bool(answer.data, "yes", &yes);
	pp_answer_done(&answer);
	pp_source_free(source);
	return 0;
}
