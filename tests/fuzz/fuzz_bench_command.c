/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent is told by whoever has its channel: refused with a line, or within its bounds. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "bench/command.h"
#include "bench/witness.h"

static void within_bounds(const struct pp_command *c)
{
	struct pp_slots slots;
	struct pp_error err;

	assert(c->what < PP_DOS);
	if (c->what == PP_DO_OPEN) {
		assert(c->open.rung < PP_RUNGS && c->open.end <= 1);
		assert(c->open.qps >= 1 && c->open.qps <= PP_ENDPOINT_QPS);
		assert(c->open.size >= 1 && c->open.size <= (int64_t)1 << 40);
	}
	if (c->what == PP_DO_READY)
		assert(c->ready.size >= 1 && c->ready.role < PP_ROLES && c->ready.messages >= 1);
	if (c->what == PP_DO_CONNECT) {
		assert(c->connect.n_parts <= PP_SLOTS_PARTS);
		assert(c->connect.n_addresses <= PP_ENDPOINT_QPS);
		if (c->connect.n_parts &&
		    !pp_slots_lay(c->connect.part, c->connect.n_parts, c->connect.part,
				  c->connect.n_parts, 4096, &slots, &err))
			assert(slots.n >= 1 && slots.n <= PP_SLOTS_MOST);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_command c;
	struct pp_error err = {0};
	json_t *object = json_loadb((const char *)data, size, 0, NULL);
	char *text = pp_fuzz_text(data, size);
	double mbytes = 0;

	if (!pp_witness_parse(text, 65536, &mbytes))
		assert(mbytes > 0);
	free(text);
	if (!object)
		return 0;
	if (!pp_command_parse(object, &c, &err))
		within_bounds(&c);
	else
		assert(err.code == -EBADMSG && err.text[0]);
	json_decref(object);
	return 0;
}
