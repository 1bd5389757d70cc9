/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_replay.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

struct pp_bundle *pp_prove_replay_open(const struct pp_args *args)
{
	const char *path = pp_args_get(args, "replay");
	struct pp_bundle *b = NULL;
	struct pp_error err = {0};

	return path && !pp_bundle_open(path, &b, &err) ? b : NULL;
}

/* Made by who wrote the bundle: nothing of it moves a terminal. */
static void take_why(const json_t *top, const char *gate, const char *member, char *ret,
		     size_t size)
{
	const char *why = json_string_value(json_object_get(json_object_get(top, gate), member));

	(void)snprintf(ret, size, "%s", why ? why : "");
	pp_sanitize(ret, false);
}

void pp_prove_replay_read(const struct pp_bundle *b, struct pp_prove_told *ret)
{
	const struct pp_bundle_file *f = b ? pp_bundle_file(b, "result.json") : NULL;
	json_t *top = f ? json_loadb(f->data, f->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *through = json_string_value(json_object_get(top, "through"));
	const char *word = json_string_value(json_object_get(top, "simulation"));

	*ret = (struct pp_prove_told){
		.keep_going = json_is_true(json_object_get(top, "keep_going")),
		.simulated = json_is_true(json_object_get(top, "simulated")),
		.not_run = word && !strcmp(word, "not run"),
	};
	ret->has_through = through && !pp_gate_parse(through, &ret->through);
	take_why(top, "memory", "not_measured", ret->no_memory, sizeof(ret->no_memory));
	take_why(top, "library", "not_observed", ret->no_library, sizeof(ret->no_library));
	json_decref(top);
}
