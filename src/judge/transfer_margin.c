/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Margins of one rung: repeats alike, GPU memory beside host memory, and both beside the narrowest
 * hop. One remark a margin: the cell that misses it most.
 */
#include <math.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

static const char NEXT_REPEAT[] = "peerpath bench PEER --repeats 20",
		  NEXT_SIZES[] = "peerpath bench PEER --size 1M,4M,16M",
		  NEXT_HOP[] = "peerpath topo";

/* Of the judged cells of a rung, the one that each margin is nearest to, or beyond. */
struct worst {
	const struct pp_figure *spread, *host, *hop;
	unsigned int n, few, no_host, no_hop;
};

static bool lower(double a, double b)
{
	return !isnan(a) && (isnan(b) || a < b);
}

static struct worst worst_of(const struct pp_transfer_case *c, enum pp_rung rung)
{
	struct worst w = {0};

	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];
		const struct pp_figure *f = pp_figure_of(c, cell);

		if (cell->rung != rung || !f || !pp_cell_is_judged(c, cell))
			continue;
		w.n++;
		w.few += cell->n_samples < PP_TRANSFER_REPEATS || isnan(f->spread);
		w.no_host += isnan(f->host);
		w.no_hop += isnan(f->hop);
		if (!w.spread || lower(w.spread->spread, f->spread))
			w.spread = f;
		if (!w.host || lower(f->host, w.host->host))
			w.host = f;
		if (!w.hop || lower(f->hop, w.hop->hop))
			w.hop = f;
	}
	return w;
}

static void spread(struct pp_transfer_case *c, enum pp_rung rung, const struct worst *w)
{
	bool host = rung == PP_RUNG_HOST, fabric = host && !c->simulated;

	if (w->few)
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SPEED, NEXT_REPEAT,
			  "fewer than %d repeats: whether it is stable is not known",
			  PP_TRANSFER_REPEATS);
	if (isnan(w->spread->spread) || w->spread->spread <= c->margins->spread)
		return;
	pp_remark(c, rung, fabric ? PP_FAIL : PP_DEGRADED, PP_REMARK_SPEED, NEXT_REPEAT,
		  "%s: repeats of %s at %s differ by %.1f %%, %.1f %% allowed",
		  fabric ? "fabric" : "unstable", host ? "host memory" : "GPU memory",
		  pp_size_text(c->arena, w->spread->cell->size), 100 * w->spread->spread,
		  100 * c->margins->spread);
	c->rung[rung].fabric |= fabric;
}

/* The host is as slow at the same size: whatever limits, it is not the registration. */
static bool host_alike(const struct pp_transfer_case *c, const struct pp_figure *f)
{
	const struct pp_bench_cell *cell = pp_cell_like(c, f->cell, PP_RUNG_HOST);
	const struct pp_figure *host = cell ? pp_figure_of(c, cell) : NULL;

	return host && host->hop < c->margins->hop && f->host >= c->margins->gpu_host;
}

static void hop(struct pp_transfer_case *c, enum pp_rung rung, const struct worst *w)
{
	const struct pp_figure *f = w->hop;
	const char *name = NULL;
	double cap = pp_hop_narrowest(c, rung, &name);
	bool alike;

	if (w->no_hop && !c->simulated)
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SPEED, "peerpath identity --facts",
			  "neither the port's speed nor a PCIe link's is known: what should be "
			  "reached is not known");
	if (c->simulated || isnan(f->hop) || f->hop >= c->margins->hop)
		return;
	alike = rung != PP_RUNG_HOST && host_alike(c, f);
	pp_remark(c, rung, PP_DEGRADED, PP_REMARK_SPEED, NEXT_HOP,
		  "%s%.2f of the narrowest hop (%s, %.0f MB/s) at %s, %.2f wanted",
		  alike ? "as slow as host memory, so not the registration: " : "", f->hop, name,
		  cap, pp_size_text(c->arena, f->cell->size), c->margins->hop);
	if (!c->rung[rung].hop)
		c->rung[rung].hop = name;
}

static void beside_host(struct pp_transfer_case *c, enum pp_rung rung, const struct worst *w)
{
	const struct pp_figure *f = w->host;
	const char *found;

	if (w->no_host)
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, "peerpath bench PEER",
			  "host memory was not measured beside it");
	if (isnan(f->host) || f->host >= c->margins->gpu_host)
		return;
	found = pp_hop_of_gpu(c, f->median, f->median / f->host);
	pp_remark(c, rung, PP_DEGRADED, PP_REMARK_SPEED, NEXT_HOP,
		  "%.2f of host memory's bandwidth at %s, %.2f wanted; hop: %s", f->host,
		  pp_size_text(c->arena, f->cell->size), c->margins->gpu_host, found);
	c->rung[rung].hop = found;
	/* P15: a stack that copies behind the caller's back reaches a small part only */
	if (f->host < 0.1 && c->p->rung[rung].memory == PP_MEMORY_CUDA_VMM && c->known &&
	    pp_known_find(c->known, "silent-slow-vmm"))
		c->rung[rung].cause = "silent-slow-vmm";
}

void pp_transfer_margins(struct pp_transfer_case *c, enum pp_rung rung)
{
	struct worst w = worst_of(c, rung);

	if (!c->rung[rung].moved)
		return;
	if (!w.n) {
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SPEED, NEXT_SIZES,
			  "no bandwidth of %s or more was measured",
			  pp_size_text(c->arena, c->margins->from));
		return;
	}
	spread(c, rung, &w);
	if (rung != PP_RUNG_HOST)
		beside_host(c, rung, &w);
	hop(c, rung, &w);
}
