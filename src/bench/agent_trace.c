/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: what the kernel shows of the memory that other agents of this node have registered.
 *
 * Another agent looks, since a look forks helpers and an agent that has memory registered may not
 * fork, and since the node's process calls nothing that could block it. It is a fresh one that
 * never opens a device: it is none of the processes that are looked at, and ends with its look.
 *
 * Answers what pp_evidence_write() writes.
 */
#include <errno.h>

#include "bench/agent_state.h"
#include "base/banned.h"

static int look(const struct pp_trace_command *t, const struct pp_trace_registry *registry,
		struct pp_json *out, struct pp_error *err)
{
	const struct pp_evidence_options options = {
		.pid = t->pid, .n_pids = t->n_pids, .probe = t->probes, .registry = registry};
	struct pp_source *src;
	struct pp_evidence e;
	int r = pp_source_live(&src, err);

	if (r)
		return r;
	r = pp_evidence_look(src, &options, &e);
	if (r) {
		r = pp_error_set(err, r, "out of memory");
	} else {
		pp_evidence_write(out, &e);
		pp_evidence_done(&e);
	}
	pp_source_free(src);
	return r;
}

int pp_agent_trace(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		   struct pp_error *err)
{
	struct pp_trace_registry registry = {.n = 0};
	int r;

	if (a->open)
		return pp_error_set(err, -EBUSY, "trace: something is open");
	if (!c->trace.software)
		return look(&c->trace, NULL, out, err);
	if (!a->options || !a->options->registry)
		return pp_error_set(err, -EOPNOTSUPP,
				    "nobody here asks the software device's registry");
	if (a->options->registry(&registry))
		return pp_error_set(err, -ENOMEM, "out of memory");
	r = look(&c->trace, &registry, out, err);
	pp_arena_done(&registry.arena);
	return r;
}
