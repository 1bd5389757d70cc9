/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rung's memory is registered, by whom that is known: by our own attempts, or by records of
 * the kernel (about registration). Records may take a verdict down; nothing of them raises one.
 *
 *   proven     every region of the memory, at both ends, is proven by the kernel to be what the
 *              way is called; for memory of a GPU, to be memory of one
 *   refuted    one region is proven to be something else
 *   unproven   all else; and everything that is simulated
 */
#include <string.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

static const char NEXT_TRACE[] = "sudo peerpath trace";

/* One end's records: of regions that are the memory's, or may be. */
struct view {
	unsigned int regions, same; /* all; those that are surely what the way is called */
	int64_t wanted;		    /* regions that the memory has, at least */
	bool looked, simulated;
	/* The first of each kind; NULL: none. Of a process it says why there is no region. */
	const struct pp_bench_evidence *right, *against, *unsure, *process;
};

static const char *expected(enum pp_rung rung)
{
	static const enum pp_registration ways[PP_RUNGS] = {
		[PP_RUNG_HOST] = PP_REGISTERED_HOST,
		[PP_RUNG_STAGED] = PP_REGISTERED_HOST,
		[PP_RUNG_DMABUF] = PP_REGISTERED_DMABUF,
		[PP_RUNG_PEERMEM] = PP_REGISTERED_PEERMEM,
		[PP_RUNG_DATA_DIRECT] = PP_REGISTERED_DATA_DIRECT,
	};

	return pp_registration_name(ways[rung]);
}

static bool is_of_gpu(const struct pp_bench_rung *r)
{
	return r->rung != PP_RUNG_STAGED &&
	       (r->memory == PP_MEMORY_CUDA || r->memory == PP_MEMORY_CUDA_VMM);
}

/* Does this record say for sure that the region is registered in some way? */
static bool is_sure(const struct pp_bench_evidence *e)
{
	if (!e->registration)
		return false;
	return e->simulated || (e->witness == PP_BY_KERNEL && e->state == PP_PROVEN);
}

static void note(const struct pp_bench_evidence **at, const struct pp_bench_evidence *e)
{
	*at = *at ? *at : e;
}

static void take(struct view *v, const struct pp_bench_rung *r, const struct pp_bench_evidence *e)
{
	bool sure = is_sure(e);

	v->looked = true;
	v->simulated |= e->simulated;
	v->wanted = e->of_regions > v->wanted ? e->of_regions : v->wanted;
	if (e->scope != PP_OF_MR)
		return note(&v->process, e);
	if (e->other)
		return;
	v->regions++;
	if (sure && strcmp(e->registration, expected(r->rung)) != 0)
		return note(&v->against, e);
	if (!sure || (is_of_gpu(r) && !e->simulated && !e->gpu_memory))
		return note(&v->unsure, e);
	v->same++;
	note(&v->right, e);
}

static struct view view_of(const struct pp_bench_rung *r, unsigned int end)
{
	struct view v = {.wanted = 1};

	for (unsigned int i = 0; i < r->n_evidence; i++)
		if (r->evidence[i].end == end && r->evidence[i].about == PP_REGISTRATION)
			take(&v, r, &r->evidence[i]);
	return v;
}

/* All of the memory is seen, and surely what the way is called. */
static bool is_whole(const struct view *v)
{
	return !v->against && !v->unsure && v->same && (int64_t)v->same >= v->wanted;
}

static bool is_proven(const struct view *v)
{
	return is_whole(v) && !v->simulated;
}

/* Witnesses that suffice, and the exporter. */
static const char *by(struct pp_transfer_case *c, const struct pp_bench_evidence *e)
{
	const char *text = "";

	if (e->simulated)
		return "simulated";
	for (unsigned int i = 0; i < e->n_sightings; i++) {
		const struct pp_bench_sighting *s = &e->sightings[i];

		if (s->sufficient && s->surface && !strstr(text, s->surface))
			text = pp_arena_printf(c->arena, "%s%s%s", text, *text ? ", " : "",
					       s->surface);
	}
	if (e->exporter)
		text = pp_arena_printf(c->arena, "%s%s%s", text, *text ? "; " : "", e->exporter);
	return *text ? text : "no witness is named";
}

/* The surface that is the easiest to have, and how. */
static const char *how(struct pp_transfer_case *c, const struct pp_bench_evidence *e)
{
	static const enum pp_surface order[] = {PP_SURFACE_RESOURCES, PP_SURFACE_SELF_PROBE,
						PP_SURFACE_BTF, PP_SURFACE_BUFINFO,
						PP_SURFACE_PROCESSES};
	const struct pp_bench_missing *best = e->n_missing ? &e->missing[0] : NULL;
	size_t rank = PP_ARRAY_LEN(order);

	for (unsigned int i = 0; i < e->n_missing; i++) {
		const struct pp_bench_missing *m = &e->missing[i];

		if (m->state && !strcmp(m->state, pp_surface_state_name(PP_SURFACE_READ)))
			continue;
		for (size_t k = 0; k < rank; k++) {
			if (!m->surface || strcmp(m->surface, pp_surface_name(order[k])) != 0)
				continue;
			rank = k;
			best = m;
		}
	}
	if (!best || !best->surface)
		return "";
	return pp_arena_printf(c->arena, "; %s is %s%s%s%s%s%s", best->surface,
			       best->state ? best->state : "missing", best->why ? " (" : "",
			       best->why ? best->why : "", best->why ? ")" : "",
			       best->how ? "; to have it: " : "", best->how ? best->how : "");
}

static const char *open_text(struct pp_transfer_case *c, const struct view *v)
{
	const struct pp_bench_evidence *e = v->unsure ? v->unsure : v->process;

	if (v->same && !v->unsure)
		return pp_arena_printf(c->arena, "%s for %u of %lld regions, unknown of the others",
				       v->right->registration, v->same, (long long)v->wanted);
	if (!e)
		return "unknown: no record of it";
	return pp_arena_printf(c->arena, "%s%s: %s%s",
			       e->registration ? e->registration : "unknown",
			       e->registration ? ", not proven" : "",
			       e->why ? e->why : "no reason given", how(c, e));
}

static const char *end_text(struct pp_transfer_case *c, const struct view *v)
{
	const struct pp_bench_evidence *e = v->against ? v->against : v->right;

	if (!v->looked)
		return "not looked at";
	if (!v->against && !is_whole(v))
		return open_text(c, v);
	return pp_arena_printf(c->arena, "%s (%s)", e->registration, by(c, e));
}

static const char *seen_text(struct pp_transfer_case *c, const struct view v[2])
{
	const char *who = v[0].simulated || v[1].simulated ? "software device" : "kernel";
	const char *text[2] = {end_text(c, &v[0]), end_text(c, &v[1])};

	if (!strcmp(text[0], text[1]))
		return pp_arena_printf(c->arena, "%s, at both ends: %s", who, text[0]);
	return pp_arena_printf(c->arena, "%s: at %s %s; at %s %s", who, pp_end_name(c, 0), text[0],
			       pp_end_name(c, 1), text[1]);
}

static void contradict(struct pp_transfer_case *c, enum pp_rung rung, unsigned int end,
		       const struct pp_bench_evidence *e)
{
	struct pp_remarks *m = &c->rung[rung];
	bool still_gpu = pp_rung_is_direct(rung) &&
			 strcmp(e->registration, pp_registration_name(PP_REGISTERED_HOST)) != 0;

	pp_remark(c, rung, still_gpu ? PP_DEGRADED : PP_FAIL, PP_REMARK_SOUND, NEXT_TRACE,
		  "registration refuted: %s was asked for, and %s shows %s at %s", expected(rung),
		  e->simulated ? "the software device" : "the kernel", e->registration,
		  pp_end_name(c, end));
	m->claim = PP_REFUTED;
	m->witness = pp_witness_name(e->simulated ? PP_BY_LIBRARY : PP_BY_KERNEL);
	if (pp_rung_is_direct(rung))
		m->mechanism = still_gpu ? e->registration : "undetermined";
}

void pp_transfer_registration(struct pp_transfer_case *c, enum pp_rung rung)
{
	const struct pp_bench_rung *r = &c->p->rung[rung];
	struct pp_remarks *m = &c->rung[rung];
	struct view v[2];

	m->mechanism = !pp_rung_is_direct(rung)	     ? "n/a"
		       : r->state == PP_BENCH_FAILED ? "failed"
						     : "undetermined";
	if (rung == PP_RUNG_TCP || (r->state != PP_BENCH_RUN && !r->n_evidence))
		return;
	m->registered = true;
	m->claim = PP_UNPROVEN;
	m->witness = pp_witness_name(PP_BY_MEASUREMENT);
	if (pp_rung_is_direct(rung) && r->state == PP_BENCH_RUN)
		m->mechanism = expected(rung);
	if (!r->n_evidence)
		return;
	for (unsigned int e = 0; e < 2; e++)
		v[e] = view_of(r, e);
	m->seen = seen_text(c, v);
	if (is_proven(&v[0]) && is_proven(&v[1])) {
		m->claim = PP_PROVEN;
		m->witness = pp_witness_name(PP_BY_KERNEL);
	}
	for (unsigned int e = 0; e < 2; e++)
		if (v[e].against)
			contradict(c, rung, e, v[e].against);
}
