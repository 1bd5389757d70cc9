/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nccl_perf_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/statistics.h"
#include "base/banned.h"

enum { CELL = 16, RANKS_SHOWN = 32 };

/* As many decimals, two at most, as fit into @width. */
static const char *number(double value, int width, char text[CELL])
{
	for (int decimals = 2; decimals >= 0; decimals--)
		if (snprintf(text, CELL, "%*.*f", width, decimals, value) <= width)
			return text;
	(void)snprintf(text, CELL, "%*.1e", width, value);
	return text;
}

/* "0000:3b:00.0" as nccl-tests has it, without the function. */
static int slot(const char *bdf)
{
	return bdf ? (int)strcspn(bdf, ".") : 0;
}

static void print_ranks(const struct pp_perf *p)
{
	for (unsigned int i = 0; i < p->n_ranks; i++) {
		const struct pp_perf_rank_info *r = &p->rank[i];

		(void)printf("#  Rank %2u Group %2d Pid %6" PRId64 " on %10.*s device %2" PRId64
			     " [%.*s] %s\n",
			     i, 0, r->pid, (int)strcspn(r->host, "."), r->host, r->device,
			     slot(r->gpu), r->gpu ? r->gpu : "", r->gpu_name ? r->gpu_name : "");
	}
}

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static void print_libraries(const struct pp_perf *p)
{
	const struct pp_perf_rank_info *first = &p->rank[0], *r;

	(void)printf("# NCCL %u.%u.%u of %s, found by %s\n", first->major, first->minor,
		     first->patch, first->library ? first->library : "?",
		     first->library_by ? first->library_by : "?");
	if (first->library_other)
		(void)printf("# Programs of Python load another: %s (--library takes it)\n",
			     first->library_other);
	for (unsigned int i = 1; i < p->n_ranks; i++) {
		r = &p->rank[i];
		if (r->number != first->number || !same(r->library, first->library))
			(void)printf("# Rank %u has another: NCCL %u.%u.%u of %s\n", i, r->major,
				     r->minor, r->patch, r->library ? r->library : "?");
	}
}

static void print_settings(const struct pp_perf *p)
{
	static const char *const words[] = {
		("whether MPS runs is unknown: without it ranks of one GPU take turns, and no "
		 "speed "
		 "means anything"),
		"MPS does not run: ranks of one GPU take turns, and no speed means anything",
		"MPS runs: the ranks' work is side by side on it"};
	const struct pp_perf_rank_info *r = &p->rank[p->n_ranks - 1];

	if (r->hostid)
		(void)printf(
			"# NCCL_HOSTID is set, another for each rank (%s): NCCL takes each for "
			"a host\n",
			r->hostid);
	if (p->options.one_gpu && p->n_ranks > 1)
		(void)printf("# One GPU: %s\n", words[r->mps < 0 ? 0 : 1 + (r->mps != 0)]);
	if (p->shrunk)
		(void)printf("# %s\n", p->shrunk);
}

/* How the sizes go on, where that can be said in one number. */
static void print_step(const struct pp_perf_options *o)
{
	uint64_t first = o->size[0], last = o->size[o->n_sizes - 1];
	uint64_t next = o->n_sizes > 1 ? o->size[1] : first;
	bool factor = first && next % first == 0 && next > first;

	for (unsigned int i = 1; factor && i < o->n_sizes; i++)
		factor = o->size[i] == o->size[i - 1] * (next / first);
	(void)printf("# nThread 1 nGpus 1 minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
		     "(%s) warmup iters: %u iters: %u agg iters: %u validation: "
		     "%u graph: 0\n",
		     first, last, factor ? next / first : next - first, factor ? "factor" : "bytes",
		     o->warmups, o->iterations, o->aggregate, o->checks);
}

void pp_perf_text_begin(void *arg, const struct pp_perf *p, const struct pp_perf_run *r)
{
	static const char *const half = "  %7s  %6s  %6s  %6s";

	(void)arg;
	(void)printf("# Collective test starting: %s_perf (peerpath nccl perf %s, columns of "
		     "nccl-tests)\n",
		     pp_collective_name(r->collective), PEERPATH_VERSION);
	print_step(&p->options);
	(void)printf("#\n");
	print_libraries(p);
	print_settings(p);
	(void)printf("# Using devices\n");
	print_ranks(p);
	(void)printf("#\n# %10s  %12s  %8s  %6s  %6s  %31s  %31s\n", "", "", "", "", "",
		     "out-of-place          ", "in-place            ");
	(void)printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
	for (int i = 0; i < 2; i++)
		(void)printf(half, "time", "algbw", "busbw", "#wrong");
	(void)printf("\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
	for (int i = 0; i < 2; i++)
		(void)printf(half, "(us)", "(GB/s)", "(GB/s)", "");
	(void)printf("\n");
	(void)fflush(stdout);
}

static void print_place(const struct pp_perf_place *p)
{
	char time[CELL], alg[CELL], bus[CELL];

	(void)printf("  %7s  %6s  %6s", number(p->time_us, 7, time), number(p->alg_gbps, 6, alg),
		     number(p->bus_gbps, 6, bus));
	if (p->verified)
		(void)printf("  %6" PRIu64, p->wrong);
	else
		(void)printf("  %6s", "N/A");
}

void pp_perf_text_row(void *arg, const struct pp_perf *p, const struct pp_perf_row *row)
{
	const struct pp_perf_run *run = &p->run[p->n_runs - 1];
	const char *op = pp_collective_reduces(run->collective)
				 ? pp_reduction_name(p->options.reduction)
				 : "none";

	(void)arg;
	(void)printf("%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6d", row->shape.bytes,
		     row->shape.count, pp_element_name(p->options.element), op, -1);
	print_place(&row->place[PP_PERF_OUT_OF_PLACE]);
	print_place(&row->place[PP_PERF_IN_PLACE]);
	(void)printf("\n");
	(void)fflush(stdout);
}

/* The rank that came last most: by the median of how late it was. */
static unsigned int latest(const struct pp_perf *p, const struct pp_perf_row *row)
{
	unsigned int worst = 0;

	for (unsigned int i = 1; row->skew && i < p->n_ranks; i++)
		if (row->skew[i].p50_us > row->skew[worst].p50_us)
			worst = i;
	return worst;
}

static void print_details(const struct pp_perf *p, const struct pp_perf_run *run)
{
	char a[CELL], b[CELL], c[CELL], d[CELL], e[CELL];

	(void)printf("#\n# One operation at a time, out of place: time at its slowest rank; which "
		     "rank entered latest,\n# so much behind the first; processor time of all "
		     "ranks (back to back)\n");
	(void)printf("# %10s  %8s  %8s  %8s  %6s  %8s  %8s  %8s\n", "size", "samples", "p50", "p99",
		     "latest", "by p50", "by max", "cpu");
	(void)printf("# %10s  %8s  %8s  %8s  %6s  %8s  %8s  %8s\n", "(B)", "", "(us)", "(us)",
		     "(rank)", "(us)", "(us)", "(s/GB)");
	for (unsigned int i = 0; i < run->n; i++) {
		const struct pp_perf_row *row = &run->row[i];
		unsigned int r = latest(p, row);

		if (!row->samples || !row->skew)
			continue;
		(void)printf("# %10" PRIu64 "  %8u  %8s  %8s  %6u  %8s  %8s  %8s\n",
			     row->shape.bytes, row->samples, number(row->p50_us, 8, a),
			     number(row->p99_us, 8, b), r, number(row->skew[r].p50_us, 8, c),
			     number(row->skew[r].max_us, 8, d),
			     number(row->place[PP_PERF_OUT_OF_PLACE].cpu_s_per_gb, 8, e));
	}
}

/* Over all sizes, so that a rank that always lags is seen. */
static void print_stragglers(const struct pp_perf *p, const struct pp_perf_run *run)
{
	double *PP_AUTO_FREE us = calloc(run->n ? run->n : 1, sizeof(*us));
	char a[CELL], b[CELL];

	if (!us)
		return;
	(void)printf("#\n# How late each rank was, over all sizes\n");
	for (unsigned int i = 0; i < p->n_ranks && i < RANKS_SHOWN; i++) {
		double most = 0;
		unsigned int n = 0;

		for (unsigned int k = 0; k < run->n; k++) {
			if (!run->row[k].skew)
				continue;
			us[n++] = run->row[k].skew[i].p50_us;
			most = fmax(most, run->row[k].skew[i].max_us);
		}
		if (n)
			(void)printf("#   rank %-4u p50 %s us, max %s us\n", i,
				     number(pp_median(us, n), 8, a), number(most, 8, b));
	}
	if (p->n_ranks > RANKS_SHOWN)
		(void)printf("#   %u more ranks: --json\n", p->n_ranks - RANKS_SHOWN);
}

static void print_wrong(const struct pp_perf_run *run)
{
	for (unsigned int i = 0; i < run->n; i++)
		for (unsigned int k = 0; k < PP_PERF_PLACES; k++) {
			const struct pp_perf_place *place = &run->row[i].place[k];

			if (place->wrong)
				(void)printf("# Wrong: %" PRIu64 " of %" PRIu64
					     " elements at %" PRIu64 " bytes %s; first at rank %d, "
					     "element %" PRIu64 "\n",
					     place->wrong, place->checked, run->row[i].shape.bytes,
					     k ? "in place" : "out of place", place->wrong_rank,
					     place->wrong_at);
		}
}

void pp_perf_text_end(void *arg, const struct pp_perf *p, const struct pp_perf_run *r)
{
	(void)arg;
	/* nccl-tests says OK also of what it did not check */
	(void)printf("# Out of bounds values : %" PRIu64 " %s\n", r->out_of_bounds,
		     r->out_of_bounds	 ? "FAILED"
		     : p->options.checks ? "OK"
					 : "(not verified)");
	(void)printf("# Avg bus bandwidth    : %g\n", r->average_bus_gbps);
	print_wrong(r);
	print_details(p, r);
	print_stragglers(p, r);
	(void)printf("#\n# Collective test concluded: %s_perf\n",
		     pp_collective_name(r->collective));
	(void)fflush(stdout);
}

void pp_perf_text_log(void *arg, unsigned int rank, const char *text)
{
	(void)arg;
	(void)rank;
	(void)fputs(text, stdout);
	if (*text && text[strlen(text) - 1] != '\n')
		(void)fputc('\n', stdout);
}

static void print_clocks(const struct pp_perf *p)
{
	double worst = 0;
	unsigned int others = 0;

	for (unsigned int i = 0; i < p->n_ranks; i++) {
		others += !p->rank[i].same_clock;
		worst = fmax(worst, p->rank[i].error_ns);
	}
	if (!others)
		(void)printf("# Clocks: all ranks are of one kernel and read one clock\n");
	else
		(void)printf(
			"# Clocks: those of %u ranks were compared over the control channel (the "
			"shortest of 16\n# exchanges, before and after): wrong by %.0f us at "
			"most, and what is less means nothing\n",
			others, worst / 1e3);
}

void pp_perf_text_notes(const struct pp_perf *p)
{
	if (p->began && !p->ended)
		print_clocks(p);
	if (p->simulated)
		(void)printf("# Simulated: NCCL has loaded the software RDMA device: the chain is "
			     "exercised, nothing is proven\n");
	if (!p->options.checks)
		(void)printf(
			"# Nothing was verified (--check=0): this is no proof that data arrived "
			"right\n");
	if (p->ended)
		(void)printf("# Ended early: %s\n", p->ended);
	(void)fflush(stdout);
}
