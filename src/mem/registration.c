/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/registration.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mem/budget.h"
#include "mem/way.h"
#include "base/banned.h"

enum { MOST_WAYS = 3 };

static const struct pp_way *const ways[] = {
	[PP_REGISTERED_HOST] = &pp_way_host,
	[PP_REGISTERED_DMABUF] = &pp_way_dmabuf,
	[PP_REGISTERED_PEERMEM] = &pp_way_peermem,
	[PP_REGISTERED_DATA_DIRECT] = &pp_way_data_direct,
};

/* What `auto` tries, by kind of memory. */
static const struct {
	unsigned int n;
	enum pp_registration how[MOST_WAYS];
} orders[] = {
	[PP_MEMORY_HOST] = {1, {PP_REGISTERED_HOST}},
	[PP_MEMORY_CUDA] = {3,
			    {PP_REGISTERED_DATA_DIRECT, PP_REGISTERED_DMABUF,
			     PP_REGISTERED_PEERMEM}},
	[PP_MEMORY_CUDA_VMM] = {3,
				{PP_REGISTERED_DATA_DIRECT, PP_REGISTERED_DMABUF,
				 PP_REGISTERED_PEERMEM}},
	[PP_MEMORY_SIM] = {2, {PP_REGISTERED_DMABUF, PP_REGISTERED_HOST}},
};

/* Deregisters; the first error. */
static int undo(struct pp_registered *r)
{
	int first = 0, error;

	for (unsigned int i = 0; i < r->n; i++) {
		errno = 0;
		error = r->verbs->dereg_mr(r->mr[i]);
		if (error && !first)
			first = error > 0 ? error : errno ? errno : EIO;
		r->mr[i] = NULL;
	}
	r->n = 0;
	return first;
}

static int within_budget(struct pp_registering *g, const struct pp_way *way)
{
	const struct pp_memory *m = g->memory;
	struct pp_attempt *a;
	uint64_t need = 0;
	int r;

	for (unsigned int i = 0; i < m->n_segments; i++)
		need += way->window(&m->segment[i]);
	r = pp_budget_check(m, need, g->err);
	if (r) {
		a = pp_attempt_begin(g, "BAR1 budget", "%llu bytes: nothing was called",
				     (unsigned long long)need);
		pp_attempt_end(g, a, -r);
	}
	return r;
}

/* One way, all segments. */
static int try(struct pp_registering *g)
{
	struct pp_registered *ret = g->result;
	const struct pp_way *way = ways[g->how];
	int r = way->ready(g);

	if (!r)
		r = within_budget(g, way);
	for (unsigned int i = 0; i < g->memory->n_segments && !r; i++) {
		r = way->segment(g, i, &ret->key[i], &ret->mr[i]);
		if (!r)
			ret->n = i + 1;
	}
	if (r) {
		(void)undo(ret);
		return r;
	}
	ret->how = g->how;
	return 0;
}

/*
 * Copies that say to be done are done for a NIC too. Not settable on memory of cuMemCreate; our
 * own copies there end by events, which need it not.
 */
static int sync_memops(struct pp_registering *g)
{
	const struct pp_cuda *c = g->memory->cuda;
	const unsigned int on = 1;
	struct pp_attempt *a;
	int code;

	if (!c)
		return 0;
	pp_cuda_enter(c);
	a = pp_attempt_begin(g, "cuPointerSetAttribute", "SYNC_MEMOPS 1, address 0x%llx",
			     (unsigned long long)g->memory->at);
	code = c->call.pointer_set(&on, PP_CUDA_SYNC_MEMOPS, g->memory->at);
	pp_attempt_end_cuda(g, a, code);
	g->result->sync_memops = !code;
	return code && g->memory->options.kind == PP_MEMORY_CUDA
		       ? pp_cuda_fail(c, "cuPointerSetAttribute(SYNC_MEMOPS)", code, g->err)
		       : 0;
}

/* Puts what a further way met behind the first's line. */
static void also(struct pp_error *all, const struct pp_registering *g, const struct pp_error *one,
		 int r)
{
	char text[sizeof(all->text)];

	if (!all->code) {
		*all = *one;
		all->code = r;
		return;
	}
	memcpy(text, all->text, sizeof(text));
	if (snprintf(all->text, sizeof(all->text), "%.360s; %s: %.130s", text,
		     pp_registration_name(g->how), one->text) < 0)
		all->text[0] = '\0';
}

static int choose(struct pp_registering *g, struct pp_error *err)
{
	unsigned int n = orders[g->memory->options.kind].n;
	struct pp_error one, all = {0};
	int r = -EOPNOTSUPP;

	for (unsigned int i = 0; i < n; i++) {
		one = (struct pp_error){0};
		g->err = &one;
		g->how = orders[g->memory->options.kind].how[i];
		r = try(g);
		g->err = err;
		if (!r)
			return 0;
		/* A node without data-direct is the usual one. */
		if (g->how == PP_REGISTERED_DATA_DIRECT && r == -EOPNOTSUPP)
			continue;
		also(&all, g, &one, r);
	}
	*err = all;
	return all.code ? all.code : r;
}

static void note_flush(struct pp_registering *g)
{
	const char *did = "";
	struct pp_error dropped;

	if (pp_memory_flush(g->memory, &did, &dropped))
		did = "cuFlushGPUDirectRDMAWrites failed";
	(void)snprintf(g->result->flush, sizeof(g->result->flush), "%s", did);
}

int pp_register(const struct pp_verbs *v, struct ibv_pd *pd, struct pp_memory *m,
		const struct pp_registration_options *options, struct pp_registered *ret,
		struct pp_error *err)
{
	struct pp_registering g = {.verbs = v,
				   .pd = pd,
				   .memory = m,
				   .options = options,
				   .access = options->access,
				   .software = pp_verbs_are_software(v),
				   .result = ret,
				   .how = options->automatic ? PP_REGISTERED_DMABUF : options->how,
				   .err = err};
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->verbs = v;
	ret->simulated = m->simulated || g.software;
	if (options->relaxed)
		g.access |= IBV_ACCESS_RELAXED_ORDERING;
	if (!options->automatic && ((size_t)g.how >= PP_ARRAY_LEN(ways) || !ways[g.how]))
		return pp_error_set(err, -EINVAL, "%s is seen, not asked for: it is peermem's call",
				    pp_registration_name(g.how));
	r = sync_memops(&g);
	if (!r)
		r = options->automatic ? choose(&g, err) : try(&g);
	if (!r)
		note_flush(&g);
	return r;
}

int pp_unregister(struct pp_registered *r, struct pp_error *err)
{
	char name[96];
	int error = undo(r);

	return error ? pp_error_set(err, -error, "ibv_dereg_mr: %s",
				    pp_errno_text(error, name, sizeof(name)))
		     : 0;
}

const struct pp_key *pp_registered_key(const struct pp_registered *r, uint64_t start, uint64_t len)
{
	for (unsigned int i = 0; i < r->n; i++) {
		const struct pp_key *k = &r->key[i];

		if (start >= k->start && start - k->start <= k->length &&
		    len <= k->length - (start - k->start) && start - k->start < k->length)
			return k;
	}
	return NULL;
}
