/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nccl_perf_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "base/parse.h"
#include "cli/bench_options.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "base/banned.h"

static const uint64_t SIZE_MOST = (uint64_t)1 << 40;

static int wrong_value(const struct pp_nccl_perf_options *r, const char *option, const char *what)
{
	return pp_complain(r->args, PP_EXIT_USAGE, "--%s does not take '%s': %s", option,
			   pp_args_get(r->args, option), what);
}

/* @ret is left alone where the option is not given. */
static int read_number(const struct pp_nccl_perf_options *r, const char *option, uint64_t min,
		       uint64_t max, unsigned int *ret)
{
	const char *text = pp_args_get(r->args, option);
	char what[64];
	uint64_t n;

	if (!text)
		return 0;
	(void)snprintf(what, sizeof(what), "%" PRIu64 " to %" PRIu64, min, max);
	if (pp_parse_u64(text, min, max, &n))
		return wrong_value(r, option, what);
	*ret = (unsigned int)n;
	return 0;
}

static int read_size(const struct pp_nccl_perf_options *r, const char *option, uint64_t *ret)
{
	const char *text = pp_args_get(r->args, option);

	if (text && (pp_parse_size(text, SIZE_MOST, ret) || !*ret))
		return wrong_value(r, option, "a size such as 8, 64K, 1M, 4G");
	return 0;
}

static int read_time(const struct pp_nccl_perf_options *r, const char *option, pp_ns *ret)
{
	const char *text = pp_args_get(r->args, option);

	if (text && (pp_parse_duration(text, 86400 * PP_SECOND, ret) || *ret <= 0))
		return wrong_value(r, option, "a time such as 60, 500ms, 5m");
	return 0;
}

static int read_list(struct pp_nccl_perf_options *r, const char *list)
{
	char word[32];
	size_t len;

	if (pp_args_has(r->args, "minbytes") || pp_args_has(r->args, "maxbytes") ||
	    pp_args_has(r->args, "stepbytes") || pp_args_has(r->args, "stepfactor"))
		return pp_complain(r->args, PP_EXIT_USAGE, "--sizes excludes -b, -e, -i and -f");
	for (const char *p = list; p; p = p[len] ? p + len + 1 : NULL) {
		uint64_t *at = &r->size[r->options.n_sizes];

		len = strcspn(p, ",");
		(void)snprintf(word, sizeof(word), "%.*s", (int)(len < 31 ? len : 31), p);
		if (r->options.n_sizes == PP_PERF_SIZES || pp_parse_size(word, SIZE_MOST, at) ||
		    !*at || (r->options.n_sizes && at[0] <= at[-1]))
			return wrong_value(r, "sizes", "sizes that grow, such as 8,1M,256M");
		r->options.n_sizes++;
	}
	return 0;
}

/* From -b to -e by -f or -i. */
static int read_range(struct pp_nccl_perf_options *r)
{
	uint64_t least = 8, most = (uint64_t)4 << 30, step = 0;
	unsigned int factor = 2;
	int code = read_size(r, "minbytes", &least);

	r->options.may_shrink = !pp_args_has(r->args, "maxbytes");
	code = code ? code : read_size(r, "maxbytes", &most);
	code = code ? code : read_size(r, "stepbytes", &step);
	code = code ? code : read_number(r, "stepfactor", 2, 1024, &factor);
	if (code)
		return code;
	if (step && pp_args_has(r->args, "stepfactor"))
		return pp_complain(r->args, PP_EXIT_USAGE, "-i excludes -f");
	if (least > most)
		return pp_complain(r->args, PP_EXIT_USAGE,
				   "-b is more than -e: no size is between them");
	for (uint64_t size = least; size <= most; size = step ? size + step : size * factor) {
		if (r->options.n_sizes == PP_PERF_SIZES)
			return pp_complain(r->args, PP_EXIT_USAGE, "more than %d sizes",
					   PP_PERF_SIZES);
		r->size[r->options.n_sizes++] = size;
	}
	return 0;
}

static int read_collectives(struct pp_nccl_perf_options *r)
{
	struct pp_perf_options *o = &r->options;
	size_t n = pp_args_operands(r->args);

	if (n < 2)
		o->collective[o->n_collectives++] = PP_NCCL_ALL_REDUCE;
	for (size_t i = 1; i < n; i++) {
		const char *word = pp_args_operand(r->args, i);
		struct pp_near near = PP_NEAR(word);
		enum pp_collective c = PP_NCCL_ALL_REDUCE;

		for (unsigned int k = 0; k < PP_COLLECTIVES; k++)
			pp_near_offer(&near, pp_collective_name((enum pp_collective)k));
		if (pp_collective_parse(word, &c))
			return pp_complain(r->args, PP_EXIT_USAGE,
					   "no collective '%s'%s%s%s: all_reduce, reduce_scatter, "
					   "all_gather, all_to_all, send_recv",
					   word, near.best ? ", did you mean '" : "",
					   near.best ? near.best : "", near.best ? "'" : "");
		for (unsigned int k = 0; k < o->n_collectives; k++)
			if (o->collective[k] == c)
				return pp_complain(r->args, PP_EXIT_USAGE, "'%s' twice", word);
		o->collective[o->n_collectives++] = c;
	}
	return 0;
}

static int read_numbers(struct pp_nccl_perf_options *r)
{
	struct pp_perf_options *o = &r->options;
	const char *word;
	int code = read_number(r, "iters", 1, 100000, &o->iterations);

	code = code ? code : read_number(r, "agg-iters", 1, 1000, &o->aggregate);
	code = code ? code : read_number(r, "warmup-iters", 0, 100000, &o->warmups);
	code = code ? code : read_number(r, "check", 0, 1000, &o->checks);
	code = code ? code : read_time(r, "timeout", &o->limit);
	code = code ? code : read_time(r, "deadline", &o->deadline);
	if (code)
		return code;
	word = pp_args_get(r->args, "nthreads");
	if (word && strcmp(word, "1") != 0)
		return wrong_value(r, "nthreads",
				   "each rank is a process of its own, so that one that is stuck "
				   "can be ended; -g N or a launcher makes more of them");
	word = pp_args_get(r->args, "datatype");
	if (word)
		(void)pp_element_parse(word, &o->element);
	word = pp_args_get(r->args, "op");
	if (word)
		(void)pp_reduction_parse(word, &o->reduction);
	/* nccl-tests' letter; the verb has it for run's --output */
	word = pp_args_get(r->args, "output");
	if (word && pp_reduction_parse(word, &o->reduction))
		return pp_complain(
			r->args, PP_EXIT_USAGE,
			"-o does not take '%s': sum, prod, max, min or avg; a file is -J", word);
	word = pp_args_get(r->args, "memory");
	o->busy_ok = pp_args_has(r->args, "busy-ok");
	o->vmm = word && !strcmp(word, "cuda-vmm");
	return 0;
}

/* How many ranks, and on which GPUs. */
static int read_ranks(struct pp_nccl_perf_options *r)
{
	struct pp_perf_options *o = &r->options;
	unsigned int gpus = 0, ranks = 0;
	int code = read_number(r, "gpus", 1, 64, &gpus);

	code = code ? code : read_number(r, "ranks", 1, 64, &ranks);
	if (code)
		return code;
	o->one_gpu = pp_args_has(r->args, "one-gpu");
	o->apart = o->one_gpu || pp_args_has(r->args, "apart");
	o->gpu = pp_args_get(r->args, "gpu");
	if (r->launched && (gpus > 1 || ranks))
		return pp_complain(r->args, PP_EXIT_USAGE,
				   "%s started %u processes: each is one rank, and --%s is none of "
				   "theirs",
				   r->launch.by, r->launch.size, ranks ? "ranks" : "gpus");
	if (gpus && (ranks || o->one_gpu))
		return pp_complain(r->args, PP_EXIT_USAGE, "-g excludes --ranks and --one-gpu");
	if (ranks > 1 && !o->one_gpu)
		return pp_complain(r->args, PP_EXIT_USAGE,
				   "--ranks goes with --one-gpu; -g %u takes a GPU for each",
				   ranks);
	if (!r->launched && !gpus && !ranks)
		return pp_complain(
			r->args, PP_EXIT_USAGE,
			"how many ranks? -g N for N GPUs here, --ranks N --one-gpu, or a "
			"launcher (srun, mpirun) that starts one process a rank");
	r->local = gpus ? gpus : ranks;
	if (o->gpu && !o->one_gpu && (r->launched || r->local > 1))
		return pp_complain(r->args, PP_EXIT_USAGE, "--gpu goes with --one-gpu or one rank");
	return 0;
}

static int find_token(struct pp_nccl_perf_options *r)
{
	const char *file = pp_args_get(r->args, "token-file");
	struct pp_error err = {0};
	int e = r->launched ? pp_token_find(file, &r->launch, r->token, &err) : 0;

	return e ? pp_complain(r->args, PP_EXIT_USAGE, "%s", err.text) : 0;
}

/* A run is not lost to a file that was there before. */
static int check_output(const struct pp_nccl_perf_options *r)
{
	const char *file = pp_args_get(r->args, "output-file");

	if (file && !strcmp(file, "-"))
		return pp_complain(r->args, PP_EXIT_USAGE,
				   "-J wants a file; --json writes to standard output");
	if (file && !access(file, F_OK) && !pp_args_has(r->args, "force"))
		return pp_complain(r->args, PP_EXIT_USAGE, "'%s' exists; --force replaces it",
				   file);
	return 0;
}

int pp_nccl_perf_options_read(const struct pp_args *args, struct pp_nccl_perf_options *r)
{
	const char *sizes = pp_args_get(args, "sizes");
	struct pp_error err = {0};
	int code;

	*r = (struct pp_nccl_perf_options){.args = args,
					   .options = {.element = PP_FLOAT,
						       .reduction = PP_SUM,
						       .warmups = 5,
						       .iterations = 20,
						       .aggregate = 1,
						       .checks = 1,
						       .limit = 60 * PP_SECOND,
						       .library = pp_args_get(args, "library"),
						       .stopped = pp_interrupted}};
	r->options.size = r->size;
	if (pp_launch_read(pp_bench_variable, &r->launch, &err))
		return pp_complain(args, PP_EXIT_USAGE, "%s", err.text);
	r->launched = r->launch.by && r->launch.size > 1;
	code = read_collectives(r);
	code = code ? code : sizes ? read_list(r, sizes) : read_range(r);
	code = code ? code : read_numbers(r);
	code = code ? code : read_ranks(r);
	code = code ? code : check_output(r);
	return code ? code : find_token(r);
}
