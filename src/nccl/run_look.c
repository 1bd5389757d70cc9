/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "nccl/run_tree.h"
#include "trace/evidence.h"
#include "base/banned.h"

/* The first look; each next one as soon while none or more regions are seen, for a while: a short
 * job has them for a moment only; then twice as late each time, up to a bound. */
static const pp_ns FIRST = 200 * PP_MILLISECOND, RAREST = 15 * PP_SECOND;
enum { LOOKS_SOON = 32 };
static const pp_ns LOOK_LIMIT = 3 * PP_SECOND;
/* Looks at the kernel that ask all processes' descriptors. */
enum { LOOKS_MOST = 64 };

struct pp_nccl_looker *pp_nccl_looker_new(const struct pp_nccl_watch_options *o)
{
	struct pp_nccl_looker *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->o = o;
	l->pause = FIRST;
	l->next = pp_clock_monotonic() + FIRST;
	if (o->node_wide)
		pp_peermem_read(o->src, &l->before);
	return l;
}

static bool grew(int64_t before, int64_t now)
{
	return before >= 0 && now > before;
}

static void look_at_peermem(const struct pp_nccl_looker *l, struct pp_nccl_run_node *n)
{
	struct pp_peermem now;

	pp_peermem_read(l->o->src, &now);
	n->peermem_known = now.n > 0 || now.references >= 0;
	n->peermem = now.n || now.loaded ? PP_NCCL_PRESENT
		     : now.report.state == PP_SURFACE_READ || now.report.state == PP_SURFACE_ABSENT
			     ? PP_NCCL_ABSENT
			     : PP_NCCL_PRESENCE_UNKNOWN;
	n->peermem_moved |= grew(l->before.references, now.references);
	for (unsigned int i = 0; i < now.n && i < l->before.n; i++) {
		const struct pp_peer_client *was = &l->before.client[i], *is = &now.client[i];

		if (!strcmp(was->name, is->name))
			n->peermem_moved |= grew(was->alloc_mrs, is->alloc_mrs) ||
					    grew(was->reg_bytes, is->reg_bytes);
	}
}

/* Regions on the software device that are of these processes: then all of theirs are. */
static bool is_software(const pid_t *pid, size_t n, const struct pp_trace_registry *registry)
{
	for (size_t i = 0; i < registry->n; i++)
		for (size_t k = 0; k < n; k++)
			if (registry->item[i].pid == pid[k])
				return true;
	return false;
}

static void say_why(const struct pp_trace_table *t, struct pp_nccl_run_registered *k)
{
	const char *why = NULL;

	for (size_t i = 0; i < t->n && !why; i++)
		if (!t->region[i].known)
			why = t->region[i].why;
	for (size_t i = 0; i < t->n_processes && !why; i++)
		if (t->process[i].why && *t->process[i].why)
			why = t->process[i].why;
	(void)snprintf(k->why, sizeof(k->why), "%s", why ? why : "no region of it was seen");
	pp_sanitize(k->why, false);
}

/* The look that saw most is kept: regions come as connections do, and go before the end. */
static void take(struct pp_nccl_looker *l, const struct pp_trace_table *t,
		 struct pp_nccl_run_node *n)
{
	struct pp_nccl_run_registered k = {0};
	uint64_t unknown = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct pp_region *r = &t->region[i];

		if (r->known)
			k.made[r->registration]++;
		k.gpu_unknown += !r->known && r->gpu_memory;
		unknown += !r->known;
		l->simulated |= r->simulated;
	}
	l->grew = t->n > l->most;
	if (l->asked && t->n < l->most)
		return;
	/* What was not seen is known only where all that is there was. */
	if (unknown || !t->n)
		say_why(t, &k);
	l->most = t->n;
	n->kernel = k;
}

static void look_at_regions(struct pp_nccl_looker *l, const pid_t *pid, size_t n_pids,
			    struct pp_nccl_run_node *n)
{
	struct pp_evidence_options options = {
		.pid = pid, .n_pids = n_pids, .probe = true, .deadline = LOOK_LIMIT};
	struct pp_trace_registry registry = {.arena = PP_ARENA(0)};
	struct pp_evidence e;
	bool asked = l->o->registry && !l->o->registry(&registry);

	if (asked && is_software(pid, n_pids, &registry))
		options.registry = &registry;
	/* On a machine without hcas there is nothing to ask the kernel for. */
	if ((options.registry || pp_source_exists(l->o->src, "/sys/class/infiniband")) &&
	    !pp_evidence_look(l->o->src, &options, &e)) {
		take(l, &e.look.table, n);
		l->asked = true;
		pp_evidence_done(&e);
	}
	pp_arena_done(&registry.arena);
}

void pp_nccl_looker_look(struct pp_nccl_looker *l, pid_t guard, struct pp_nccl_run_node *n)
{
	static pid_t pid[PP_NCCL_TREE];
	pp_ns now = pp_clock_monotonic();
	size_t n_pids;

	if (now < l->next || l->looks >= LOOKS_MOST)
		return;
	n_pids = pp_nccl_tree(guard, pid, PP_NCCL_TREE);
	for (size_t i = 0; i < n_pids; i++)
		pp_nccl_libraries_look(&l->libraries, l->o->src, pid[i]);
	if (l->o->node_wide) {
		look_at_peermem(l, n);
		if (l->o->top)
			n_pids = pp_nccl_tree(l->o->top, pid, PP_NCCL_TREE);
		if (l->libraries.n_pids || l->libraries.verbs)
			look_at_regions(l, pid, n_pids, n);
	}
	l->looks++;
	if ((l->most && !l->grew) || l->looks > LOOKS_SOON)
		l->pause = 2 * l->pause < RAREST ? 2 * l->pause : RAREST;
	l->next = pp_clock_monotonic() + l->pause;
}

void pp_nccl_looker_tell(struct pp_nccl_looker *l, struct pp_nccl_run *r,
			 struct pp_nccl_run_node *n)
{
	pp_nccl_libraries_tell(&l->libraries, r);
	n->ranks = l->libraries.n_pids;
	n->n_mapped = l->libraries.n;
	if (l->libraries.n)
		(void)snprintf(n->mapped, sizeof(n->mapped), "%.255s", l->libraries.item[0].path);
	n->simulated = n->simulated || l->simulated;
	if (!l->o->node_wide) {
		(void)snprintf(n->kernel.why, sizeof(n->kernel.why),
			       "another process of this node looks");
		return;
	}
	look_at_peermem(l, n);
	/* A software device takes no GPU's address, whatever the kernel has for others. */
	if (l->simulated) {
		n->peermem = PP_NCCL_ABSENT;
		n->peermem_known = n->peermem_moved = false;
	}
	if (!l->asked && !*n->kernel.why)
		(void)snprintf(n->kernel.why, sizeof(n->kernel.why),
			       !l->looks ? "it ended before the first look"
			       : l->libraries.verbs || l->libraries.n_pids
				       ? "there is no hca to ask the kernel for"
				       : "no process of it had libnccl or libibverbs at %u looks",
			       l->looks);
}
