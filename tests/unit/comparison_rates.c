/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a comparison is right, by 2,000 made comparisons for each row: whole trials, as canary
 * writes them, through pp_comparison_make(). Prints the table of docs/compare.md; check_rates.py
 * says whether the page has it.
 *
 * Spread 1 % of a run; a margin of 3 %; draws by xorshift64* and Box and Muller, so that no run
 * differs from another.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "judge/comparison.h"

enum { COMPARISONS = 2000, RUNS = 20, PAIRS = 2 };

static const char file[] = "[workload]\nname = made\n"
			   "[metric speed]\npattern = ([0-9.]+)\ndirection = higher\n"
			   "margin = %s\n";

struct arm {
	struct pp_trial t;
	struct pp_trial_node node;
	struct pp_trial_run run[RUNS];
};

static uint64_t seed = 20261130;

static double uniform(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (double)((seed * 0x2545f4914f6cdd1dULL) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* A tail to one side, as latencies have; its standard deviation is 1. */
static double skewed(void)
{
	return (exp(normal()) - exp(0.5)) / sqrt((exp(1) - 1) * exp(1));
}

static int make(struct arm *a, const char *node, size_t n, const char *margin)
{
	struct pp_error err = {0};
	char text[256];
	int len = snprintf(text, sizeof(text), file, margin);

	memset(a, 0, sizeof(*a));
	if (pp_canary_parse("made", text, (size_t)len, &a->t.canary, &err))
		return 1;
	a->node = (struct pp_trial_node){.id = node, .topology_class = "c1"};
	a->t.node = &a->node;
	a->t.n_nodes = 1;
	a->t.run = a->run;
	a->t.n_runs = n;
	return 0;
}

static void draw(struct arm *a, double (*spread)(void), double base, double shift)
{
	for (size_t i = 0; i < a->t.n_runs; i++)
		a->run[i] = (struct pp_trial_run){
			.took = PP_SECOND, .value = {base * (1 + shift) * (1 + 0.01 * spread())}};
}

struct row {
	const char *margin;
	size_t n, pairs;
	double shift; /* of the truth, a share of the figure */
	double (*spread)(void);
};

/* Whether each set of nodes has a level of its own does not matter: here they differ by 20 %. */
static int count(const struct row *r, int ret[PP_CHANGES])
{
	struct arm arm[2][PAIRS];
	const struct pp_trial *list[2][PAIRS];
	static const char *const node[PAIRS] = {"a", "b"};
	int bad = 0;

	for (int side = 0; side < 2; side++)
		for (size_t p = 0; p < r->pairs; p++) {
			bad |= make(&arm[side][p], node[p], r->n, r->margin);
			list[side][p] = &arm[side][p].t;
		}
	memset(ret, 0, sizeof(*ret) * PP_CHANGES);
	for (int k = 0; !bad && k < COMPARISONS; k++) {
		struct pp_comparison c;

		for (size_t p = 0; p < r->pairs; p++) {
			double base = 1000 * (1 + 0.2 * normal() / 3);

			draw(&arm[0][p], r->spread, base, 0);
			draw(&arm[1][p], r->spread, base, r->shift);
		}
		bad = pp_comparison_make(list[0], r->pairs, list[1], r->pairs, &c);
		if (!bad) {
			ret[c.row[0].change]++;
			pp_comparison_done(&c);
		}
	}
	for (int side = 0; side < 2; side++)
		for (size_t p = 0; p < r->pairs; p++)
			pp_canary_done(&arm[side][p].t.canary);
	return bad;
}

static double percent(int n)
{
	return 100.0 * n / COMPARISONS;
}

/* 0.0001 %: a margin that is none, so that whatever is found to differ is said to. */
static int no_difference(void)
{
	static const size_t sizes[] = {5, 10, 20};
	int n[PP_CHANGES], bad = 0;

	printf("| runs an arm | pairs | spread | better or worse, no margin | with a margin of 3 "
	       "%% "
	       "|\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < PP_ARRAY_LEN(sizes); i++)
		for (size_t pairs = 1; pairs <= PAIRS; pairs++)
			for (int skew = 0; skew < 2; skew++) {
				struct row r = {"0.0001%", sizes[i], pairs, 0,
						skew ? skewed : normal};
				double none, some;

				bad |= count(&r, n);
				none = percent(n[PP_CHANGE_BETTER] + n[PP_CHANGE_WORSE]);
				r.margin = "3%";
				bad |= count(&r, n);
				some = percent(n[PP_CHANGE_BETTER] + n[PP_CHANGE_WORSE]);
				printf("| %zu | %zu | %s | %.1f %% | %.1f %% |\n", sizes[i], pairs,
				       skew ? "skewed" : "normal", none, some);
			}
	return bad;
}

static int power(void)
{
	static const struct {
		const char *margin;
		double shift;
	} width[] = {{"1%", 0.01}, {"2%", 0.02}, {"3%", 0.03}};
	static const size_t sizes[] = {5, 10, 20};
	int n[PP_CHANGES], bad = 0;

	printf("\n| margin / spread | runs an arm | no shift: same | shift of the margin: told | "
	       "of twice the margin: better |\n|---|---|---|---|---|\n");
	for (size_t w = 0; w < PP_ARRAY_LEN(width); w++)
		for (size_t i = 0; i < PP_ARRAY_LEN(sizes); i++) {
			struct row r = {width[w].margin, sizes[i], 1, 0, normal};
			double same, at, twice;

			bad |= count(&r, n);
			same = percent(n[PP_CHANGE_SAME]);
			r.shift = width[w].shift;
			bad |= count(&r, n);
			at = percent(n[PP_CHANGE_SAME] + n[PP_CHANGE_BETTER] + n[PP_CHANGE_WORSE]);
			r.shift = 2 * width[w].shift;
			bad |= count(&r, n);
			twice = percent(n[PP_CHANGE_BETTER]);
			printf("| %zu | %zu | %.1f %% | %.1f %% | %.1f %% |\n", w + 1, sizes[i],
			       same, at, twice);
		}
	return bad;
}

int main(void)
{
	return no_difference() || power();
}
