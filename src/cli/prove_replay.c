/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_replay.h"

#include <jansson.h>

#include "base/banned.h"

struct pp_bundle *pp_prove_replay_open(const struct pp_args *args)
{
	const char *path = pp_args_get(args, "replay");
	struct pp_bundle *b = NULL;
	struct pp_error err = {0};

	return path && !pp_bundle_open(path, &b, &err) ? b : NULL;
}

bool pp_prove_replay_through(const struct pp_bundle *b, enum pp_gate *ret)
{
	const struct pp_bundle_file *f = b ? pp_bundle_file(b, "result.json") : NULL;
	json_t *top = f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *through = json_string_value(json_object_get(top, "through"));
	bool said = through && !pp_gate_parse(through, ret);

	json_decref(top);
	return said;
}
