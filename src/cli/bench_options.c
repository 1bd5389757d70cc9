/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/parse.h"
#include "cli/session.h"
#include "mem/memory.h"
#include "base/banned.h"

static const char *const fail_on_words[] = {"degraded", "fail", NULL};
static const char *const memory_words[] = {"cuda", "cuda-vmm", NULL};
static const char *const pattern_words[] = {"pairs", "ring", "all-to-all", "incast", NULL};
static const char *const rails_words[] = {"first", "all", NULL};

const struct pp_option pp_bench_options_table[] = {
	{"listen", 0, NULL, "wait for others' runs and be their other end", NULL},
	{"once", 0, NULL, "--listen: end after one run", NULL},
	{"here", 0, NULL, "both ends on this machine", NULL},
	{"simulate", 0, NULL, "on the software device; with --here unless a HOST is given", NULL},
	{"port", 'p', "PORT", "of the control channel (18516)", NULL},
	{"token-file", 0, "FILE", "the run's shared secret; else PEERPATH_TOKEN", NULL},
	{"device", 'd', "HCA", "BDF or name of the hca; else each GPU's rail", NULL},
	{"ib-port", 'i', "N", "port of the hca; else the first that is ACTIVE", NULL},
	{"gid-index", 'x', "N", "index in the port's GID table; else a RoCE v2 one", NULL},
	{"gpu", 0, "BDF", "GPU at each end; else each hca's nearest", NULL},
	{"rails", 0, "WHICH", "first, or all: each alone, then all together", rails_words},
	{"pattern", 0, "PATTERN", "who sends to whom, over all nodes", pattern_words},
	{"rungs", 0, "LIST", "of tcp,host,dmabuf,peermem,data-direct,staged; else all", NULL},
	{"op", 0, "LIST", "of write,read,send; else write", NULL},
	{"measure", 0, "LIST", "of bandwidth,bidirectional,latency; else 1st and 3rd", NULL},
	{"size", 's', "LIST", "bytes of a message: 4K,1M or 4K:16M, each twice the last", NULL},
	{"all", 'a', NULL, "sizes 2 to 8M, as perftest", NULL},
	{"repeats", 0, "N", "of each figure, rungs in turn (6)", NULL},
	{"duration", 'D', "TIME", "of one repeat of bandwidth (200ms)", NULL},
	{"iters", 'n', "N", "messages of one repeat of latency (1000)", NULL},
	{"qp", 'q', "N", "queue pairs (1)", NULL},
	{"tx-depth", 't', "N", "requests that each has under way (128)", NULL},
	{"mtu", 'm', "BYTES", "path MTU; else the port's", NULL},
	{"sl", 'S', "N", "service level", NULL},
	{"tclass", 'T', "N", "traffic class (DSCP times 4)", NULL},
	{"pkey-index", 0, "N", "index in the port's table of partitions", NULL},
	{"rdma-cm", 'R', NULL, "connect by librdmacm", NULL},
	{"memory", 0, "KIND", "of the GPU: cuda (cuMemAlloc) or cuda-vmm", memory_words},
	{"segments", 0, "N", "cuda-vmm: allocations that the buffer lies in (1)", NULL},
	{"inside", 0, "SIZE", "the buffer begins so far inside its allocation", NULL},
	{"negative", 0, NULL, "also: are wrong keys, ranges and rights refused?", NULL},
	{"second-witness", 0, NULL, "also: what perftest measures, where it is installed", NULL},
	{"busy-ok", 0, NULL, "though others use the hca or the GPU (recorded)", NULL},
	{"no-probes", 0, NULL, "look at registrations without a probe in the kernel", NULL},
	{"keep", 0, "DIR", "each node's bundle into DIR", NULL},
	{"html", 0, "FILE", "a page with plots; - is standard output", NULL},
	{"force", 0, NULL, "replace an existing file", NULL},
	{"policy", 0, "FILE", "the site's margins", NULL},
	{"fail-on", 0, "VERDICT", "verdict from which on the exit status is 1", fail_on_words},
	{NULL},
};

/* A comma separates; each word sets one of @n flags by its name. */
static int read_words(const struct pp_args *args, const char *option,
		      const char *(*name)(unsigned int), unsigned int n, bool *set)
{
	const char *text = pp_args_get(args, option);
	struct pp_near near;
	char word[64];
	size_t len;

	while (text) {
		unsigned int i = 0;

		len = strcspn(text, ",");
		(void)snprintf(word, sizeof(word), "%.*s", (int)(len < 60 ? len : 60), text);
		near = PP_NEAR(word);
		while (i < n && strcmp(name(i), word) != 0)
			pp_near_offer(&near, name(i++));
		if (i == n)
			return pp_complain(args, PP_EXIT_USAGE, "--%s does not take '%s'%s%s%s",
					   option, word, near.best ? ", did you mean '" : "",
					   near.best ? near.best : "", near.best ? "'" : "");
		set[i] = true;
		text = text[len] ? text + len + 1 : NULL;
	}
	return 0;
}

static const char *rung(unsigned int i)
{
	return pp_rung_name((enum pp_rung)i);
}

static const char *operation(unsigned int i)
{
	return pp_operation_name((enum pp_operation)i);
}

static const char *measure(unsigned int i)
{
	return pp_measure_name((enum pp_measure)i);
}

static void all_of(bool *set, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		set[i] = true;
}

static int read_lists(const struct pp_args *args, struct pp_bench_options *o)
{
	int r = read_words(args, "rungs", rung, PP_RUNGS, o->rung);

	if (!r && !pp_args_has(args, "rungs"))
		all_of(o->rung, PP_RUNGS);
	r = r ? r : read_words(args, "op", operation, PP_OPERATIONS, o->op);
	if (!r && !pp_args_has(args, "op"))
		o->op[PP_WRITE] = true;
	r = r ? r : read_words(args, "measure", measure, PP_MEASURES, o->measure);
	if (!r && !pp_args_has(args, "measure"))
		o->measure[PP_BANDWIDTH] = o->measure[PP_LATENCY] = true;
	return r;
}

static const uint64_t SIZE_MOST = (uint64_t)1 << 30;

static int add_size(const struct pp_args *args, struct pp_bench_options *o, uint64_t size)
{
	if (o->n_sizes == PP_BENCH_SIZES)
		return pp_complain(args, PP_EXIT_USAGE, "--size: more than %d sizes",
				   PP_BENCH_SIZES);
	o->size[o->n_sizes++] = size;
	return 0;
}

static int bad_size(const struct pp_args *args, const char *word)
{
	return pp_complain(args, PP_EXIT_USAGE,
			   "--size does not take '%s': 1 to 1G, as 4096, 64K, 1M, or 4K:16M", word);
}

/* "64K", or "4K:16M" for each power of two times the first. */
static int read_size(const struct pp_args *args, char *word, struct pp_bench_options *o)
{
	char *colon = strchr(word, ':');
	uint64_t from, to;
	int r = 0;

	if (colon)
		*colon = '\0';
	if (pp_parse_size(word, SIZE_MOST, &from) || !from)
		return bad_size(args, word);
	to = from;
	if (colon && (pp_parse_size(colon + 1, SIZE_MOST, &to) || to < from))
		return bad_size(args, colon + 1);
	for (uint64_t size = from; !r && size <= to; size *= 2)
		r = add_size(args, o, size);
	return r;
}

static int read_sizes(const struct pp_args *args, struct pp_bench_options *o)
{
	const char *text = pp_args_has(args, "all") ? "2:8M" : pp_args_get(args, "size");
	char word[64];
	size_t len;
	int r = 0;

	if (pp_args_has(args, "all") && pp_args_has(args, "size"))
		return pp_complain(args, PP_EXIT_USAGE, "--all excludes --size");
	for (text = text ? text : "8,4K,64K,1M,4M"; !r && text;
	     text = text[len] ? text + len + 1 : NULL) {
		len = strcspn(text, ",");
		(void)snprintf(word, sizeof(word), "%.*s", (int)(len < 60 ? len : 60), text);
		r = read_size(args, word, o);
	}
	return r;
}

/* Numbers with a range; what is not given stays. */
static int read_numbers(const struct pp_args *args, struct pp_bench_options *o)
{
	const struct {
		const char *option;
		uint64_t least, most;
		void *to;
		bool is_signed;
	} numbers[] = {
		{"ib-port", 1, 255, &o->port, false},
		{"gid-index", 0, 65535, &o->gid_index, true},
		{"repeats", 1, 1000, &o->repeats, false},
		{"iters", 1, 1000000, &o->latency_messages, false},
		{"qp", 1, PP_ENDPOINT_QPS, &o->qps, false},
		{"tx-depth", 1, PP_ENDPOINT_DEPTH, &o->depth, false},
		{"mtu", 256, 4096, &o->mtu, false},
		{"sl", 0, 15, &o->sl, true},
		{"tclass", 0, 255, &o->traffic_class, true},
		{"pkey-index", 0, 65535, &o->pkey_index, true},
		{"segments", 1, PP_MEMORY_SEGMENTS, &o->segments, false},
	};
	uint64_t value;

	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		const char *text = pp_args_get(args, numbers[i].option);

		if (!text)
			continue;
		if (pp_parse_u64(text, numbers[i].least, numbers[i].most, &value))
			return pp_complain(
				args, PP_EXIT_USAGE, "--%s does not take '%s': %llu to %llu",
				numbers[i].option, text, (unsigned long long)numbers[i].least,
				(unsigned long long)numbers[i].most);
		if (numbers[i].is_signed)
			*(int *)numbers[i].to = (int)value;
		else
			*(unsigned int *)numbers[i].to = (unsigned int)value;
	}
	if (o->mtu & (o->mtu - 1))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--mtu does not take '%u': 256, 512, 1024, 2048 or 4096",
				   o->mtu);
	return 0;
}

static int read_rest(const struct pp_args *args, struct pp_bench_options *o)
{
	const char *each = pp_args_get(args, "duration"), *inside = pp_args_get(args, "inside");
	const char *memory = pp_args_get(args, "memory"), *pattern = pp_args_get(args, "pattern");
	const char *rails = pp_args_get(args, "rails");

	if (each && (pp_parse_duration(each, 3600 * PP_SECOND, &o->each) || !o->each))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--duration does not take '%s': a time such as 200ms, 5 or 5s",
				   each);
	if (inside && pp_parse_size(inside, SIZE_MOST, &o->inside))
		return pp_complain(args, PP_EXIT_USAGE, "--inside does not take '%s'", inside);
	o->gpu_memory = PP_MEMORY_CUDA;
	if (memory)
		(void)pp_memory_kind_parse(memory, &o->gpu_memory);
	if (pattern)
		(void)pp_pattern_parse(pattern, &o->pattern);
	o->all_rails = rails && !strcmp(rails, "all");
	o->device = pp_args_get(args, "device");
	o->gpu = pp_args_get(args, "gpu");
	o->negative = pp_args_has(args, "negative");
	o->second_witness = pp_args_has(args, "second-witness");
	o->busy_ok = pp_args_has(args, "busy-ok");
	o->simulate = pp_args_has(args, "simulate");
	o->no_probes = pp_args_has(args, "no-probes");
	o->cm = pp_args_has(args, "rdma-cm");
	return 0;
}

int pp_bench_options_read(const struct pp_args *args, struct pp_bench_options *ret)
{
	struct pp_bench_options o = {.gid_index = -1, .repeats = 6};
	int r = read_lists(args, &o);

	r = r ? r : read_sizes(args, &o);
	r = r ? r : read_numbers(args, &o);
	r = r ? r : read_rest(args, &o);
	if (!r)
		*ret = o;
	return r;
}

const char *pp_bench_variable(const char *name)
{
	return getenv(name);
}
