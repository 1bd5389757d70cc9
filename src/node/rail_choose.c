/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice among equals is a bipartite matching: as many gpus as can have an hca of their own
 * get one. Augmenting paths, free hcas first, so that bus order is kept where nothing forces a
 * change.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "node/rail.h"
#include "base/banned.h"

enum { MAX_NAMED = 3 };

static const struct pp_rail_rank *rank(const struct pp_rails *r, unsigned int gpu, unsigned int nic)
{
	return &r->rank[(size_t)gpu * r->n_nics + nic];
}

static bool is_candidate(const struct pp_rails *r, unsigned int gpu, unsigned int nic)
{
	return !r->nic[nic].dropped && rank(r, gpu, nic)->distance != PP_DISTANCE_UNKNOWN;
}

/* Index of the first best hca of a gpu, -1 none. */
static int best_of(const struct pp_rails *r, unsigned int gpu)
{
	int best = -1;

	for (unsigned int i = 0; i < r->n_nics; i++)
		if (is_candidate(r, gpu, i) &&
		    (best < 0 ||
		     pp_rail_compare(rank(r, gpu, i), rank(r, gpu, (unsigned int)best)) < 0))
			best = (int)i;
	return best;
}

static bool is_equal(const struct pp_rails *r, unsigned int gpu, unsigned int nic, int best)
{
	return best >= 0 && is_candidate(r, gpu, nic) &&
	       !pp_rail_compare(rank(r, gpu, nic), rank(r, gpu, (unsigned int)best));
}

struct matching {
	const struct pp_rails *r;
	const int *best;
	int *owner; /* per nic: the gpu, -1 free */
	bool *seen; /* per nic, of one search */
};

static bool take(struct matching *m, unsigned int gpu, unsigned int nic)
{
	m->owner[nic] = (int)gpu;
	return true;
}

/* Depth is bounded: each level marks one more hca as seen. */
static bool augment(struct matching *m, unsigned int gpu)
{
	for (unsigned int i = 0; i < m->r->n_nics; i++)
		if (m->owner[i] < 0 && is_equal(m->r, gpu, i, m->best[gpu]))
			return take(m, gpu, i);
	for (unsigned int i = 0; i < m->r->n_nics; i++) {
		if (m->seen[i] || !is_equal(m->r, gpu, i, m->best[gpu]))
			continue;
		m->seen[i] = true;
		if (augment(m, (unsigned int)m->owner[i]))
			return take(m, gpu, i);
	}
	return false;
}

/* All equals are taken: the one with the fewest gpus. */
static int least_loaded(const struct pp_rails *r, unsigned int gpu, int best)
{
	int least = -1;

	for (unsigned int i = 0; i < r->n_nics; i++)
		if (is_equal(r, gpu, i, best) && (least < 0 || r->nic[i].gpus < r->nic[least].gpus))
			least = (int)i;
	return least;
}

static void assign(struct pp_rails *r, const int *best, int *owner, bool *seen)
{
	struct matching m = {r, best, owner, seen};

	for (unsigned int i = 0; i < r->n_nics; i++)
		owner[i] = -1;
	for (unsigned int g = 0; g < r->n_gpus; g++) {
		r->choice[g] = -1;
		for (unsigned int i = 0; i < r->n_nics; i++)
			seen[i] = false;
		if (best[g] >= 0)
			(void)augment(&m, g);
	}
	for (unsigned int i = 0; i < r->n_nics; i++) {
		if (owner[i] < 0)
			continue;
		r->choice[owner[i]] = (int)i;
		r->nic[i].gpus = 1;
	}
	for (unsigned int g = 0; g < r->n_gpus; g++) {
		if (r->choice[g] >= 0 || best[g] < 0)
			continue;
		r->choice[g] = least_loaded(r, g, best[g]);
		r->nic[r->choice[g]].gpus++;
	}
}

int pp_rails_choose(struct pp_rails *r)
{
	int *PP_AUTO_FREE best = calloc(r->n_gpus + 1u, sizeof(*best));
	int *PP_AUTO_FREE owner = calloc(r->n_nics + 1u, sizeof(*owner));
	bool *PP_AUTO_FREE seen = calloc(r->n_nics + 1u, sizeof(*seen));

	if (!best || !owner || !seen)
		return -ENOMEM;
	for (unsigned int g = 0; g < r->n_gpus; g++)
		best[g] = best_of(r, g);
	assign(r, best, owner, seen);
	return 0;
}

/* The other hcas that are equal, and whose they are. */
static size_t name_equals(const struct pp_rails *r, unsigned int gpu, unsigned int nic, char *text,
			  size_t size)
{
	unsigned int equals = 0;
	size_t len = 0;

	for (unsigned int i = 0; i < r->n_nics; i++) {
		if (i == nic || !is_equal(r, gpu, i, (int)nic))
			continue;
		if (equals++ < MAX_NAMED && len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%s (%s)",
						equals == 1 ? "; equal: " : ", ", r->nic[i].o->id,
						r->nic[i].gpus ? "another gpu's rail" : "free");
	}
	if (equals > MAX_NAMED && len < size)
		len += (size_t)snprintf(text + len, size - len, " and %u more", equals - MAX_NAMED);
	return len < size ? len : size - 1;
}

static const char *why_chosen(const struct pp_rails *r, unsigned int gpu, unsigned int nic,
			      char *text, size_t size)
{
	const struct pp_rail_nic *n = &r->nic[nic];
	unsigned int candidates = 0;
	size_t len;

	for (unsigned int i = 0; i < r->n_nics; i++)
		candidates += is_candidate(r, gpu, i);
	len = (size_t)snprintf(text, size, "%s, best of %u",
			       pp_distance_name(rank(r, gpu, nic)->distance), candidates);
	if (len < size)
		len += name_equals(r, gpu, nic, text + len, size - len);
	if (n->gpus > 1 && len < size)
		len += (size_t)snprintf(text + len, size - len,
					"; shared by %u gpus: no equal one is free", n->gpus);
	if (n->unknown && len < size)
		(void)snprintf(text + len, size - len, "; not known: %s", n->unknown);
	return text;
}

const char *pp_rail_why(const struct pp_rails *r, unsigned int gpu, unsigned int nic, char *text,
			size_t size)
{
	const struct pp_rail_rank *mine = rank(r, gpu, nic), *best;
	int choice = r->choice[gpu];

	(void)snprintf(text, size, "no rail");
	if (choice == (int)nic)
		return why_chosen(r, gpu, nic, text, size);
	if (r->nic[nic].dropped)
		(void)snprintf(text, size, "%s", r->nic[nic].dropped);
	else if (mine->distance == PP_DISTANCE_UNKNOWN)
		(void)snprintf(text, size, "distance unknown");
	if (r->nic[nic].dropped || mine->distance == PP_DISTANCE_UNKNOWN || choice < 0)
		return text;
	best = rank(r, gpu, (unsigned int)choice);
	if (mine->distance != best->distance)
		(void)snprintf(text, size, "farther: %s, the rail is %s",
			       pp_distance_name(mine->distance), pp_distance_name(best->distance));
	else if (mine->functions != best->functions)
		(void)snprintf(text, size, "%d bridges on the way, to the rail %d", mine->functions,
			       best->functions);
	else if (mine->is_virtual != best->is_virtual)
		(void)snprintf(text, size, "a virtual function, the rail is physical");
	else if (mine->usable_mbytes != best->usable_mbytes)
		(void)snprintf(text, size, "%" PRId64 " MB/s usable, the rail has %" PRId64,
			       mine->usable_mbytes, best->usable_mbytes);
	else
		(void)snprintf(text, size, "equal; %s",
			       r->nic[nic].gpus ? "another gpu's rail"
						: "free, later in bus order");
	return text;
}
