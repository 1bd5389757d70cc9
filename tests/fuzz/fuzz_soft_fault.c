/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults as text, and the message in which a process gets them: whatever is taken means the same
 * when it is read again, and stays within its bounds.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "soft/fault/request.h"
#include "soft/fault/set.h"

static void check(const struct soft_fault_spec *s)
{
	struct soft_fault_spec again;
	struct soft_fault_set set = {0};
	struct pp_error err = {0};
	uint64_t random = 1;

	assert(s->noun < SOFT_FAULT_NOUNS && strlen(s->text) < SOFT_FAULT_TEXT_MAX);
	assert(s->when.first >= 1 && s->when.first <= s->when.last && s->when.every >= 1 &&
	       s->when.ppm <= SOFT_FAULT_MILLION);
	if (s->noun < SOFT_FAULT_CALLS && !s->off)
		assert(s->error > 0 && s->error <= 4095);
	assert(soft_fault_spec_parse(s->text, &again, &err) == 0 && again.noun == s->noun);
	assert(soft_fault_set_add(&set, s, &err) == 0 && set.num == (s->off ? 0 : 1));
	if (s->noun < SOFT_FAULT_CALLS)
		assert(soft_fault_set_call(&set, s->noun, &random) >= 0);
	(void)soft_fault_which_is(&s->which, 0x11, 0x60);
}

static int each(void *arg, const struct soft_fault_spec *s, struct pp_error *err)
{
	(void)arg;
	(void)err;
	check(s);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct soft_fault_request *q = calloc(1, sizeof(*q));
	struct soft_fault_spec spec;
	struct pp_error err = {0};

	assert(text && q);
	if (!soft_fault_spec_parse(text, &spec, &err))
		check(&spec);
	else
		assert(err.text[0]);
	err = (struct pp_error){0};
	assert(soft_fault_specs_parse(text, each, NULL, &err) == 0 || err.text[0]);
	err = (struct pp_error){0};
	if (soft_fault_request_parse((const char *)data, size, q, &err)) {
		assert(err.text[0]);
	} else {
		assert(q->clear ? q->num == 0 : q->num > 0 && q->num <= SOFT_FAULT_REQUEST_SPECS);
		for (unsigned int i = 0; i < q->num; i++)
			check(&q->specs[i]);
	}
	free(q);
	free(text);
	return 0;
}
