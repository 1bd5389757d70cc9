/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma_check [OPTION...] [HOST]: without HOST the server, which waits for one client and takes its
 * plan. Exit: 0 every case right, 1 not, 2 it could not be run, 64 usage.
 */
#include "check.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

enum { PP_LIFE_S = 300, PP_MEMORY_MAX = 512 << 20, PP_ROUNDS_MAX = 1000 };

struct pp_options {
	const char *device, *host;
	uint64_t gid, port, tcp;
	bool calls;
	struct pp_plan plan;
};

static const char pp_usage[] =
	"usage: rdma_check [-d DEVICE] [-i PORT] [-g GID-INDEX] [-p TCP-PORT]\n"
	"                  [-o OP,...] [-s SIZE,...] [-q QPS] [-n ROUNDS] [-S SEED] [-w] [HOST]\n"
	"Without HOST the server, which takes ops, sizes and numbers from its client.\n"
	"With -w this end posts by ibv_wr_*(), without by ibv_post_send().\n";

/* Cuts the next word of a list off; NULL at its end. */
static char *pp_next(char **list)
{
	return *list && **list ? strsep(list, ",") : NULL;
}

static int pp_ops_parse(char *text, uint64_t *ret_ops)
{
	uint64_t ops = 0, bit;

	for (char *name = pp_next(&text); name; name = pp_next(&text)) {
		bit = pp_cases_op(name, strlen(name));
		if (!bit) {
			fprintf(stderr, "rdma_check: no op '%s'\n", name);
			return -EINVAL;
		}
		ops |= bit;
	}
	*ret_ops = ops;
	return 0;
}

static int pp_sizes_parse(char *text, struct pp_plan *plan)
{
	plan->sizes_len = 0;
	for (char *word = pp_next(&text); word; word = pp_next(&text)) {
		if (plan->sizes_len == PP_SIZES_MAX)
			return -E2BIG;
		if (pp_parse_u64(word, 0, PP_SIZE_MAX, &plan->sizes[plan->sizes_len++]))
			return -EINVAL;
	}
	return 0;
}

static int pp_option(struct pp_options *options, int letter, char *text)
{
	struct pp_plan *plan = &options->plan;

	switch (letter) {
	case 'd':
		options->device = text;
		return 0;
	case 'i':
		return pp_parse_u64(text, 1, 255, &options->port);
	case 'g':
		return pp_parse_u64(text, 0, 255, &options->gid);
	case 'p':
		return pp_parse_u64(text, 1, 65535, &options->tcp);
	case 'o':
		return pp_ops_parse(text, &plan->ops);
	case 's':
		return pp_sizes_parse(text, plan);
	case 'q':
		return pp_parse_u64(text, 1, PP_QPS_MAX, &plan->qps);
	case 'n':
		return pp_parse_u64(text, 1, PP_ROUNDS_MAX, &plan->rounds);
	case 'S':
		return pp_parse_u64(text, 0, UINT64_MAX, &plan->seed);
	case 'w':
		options->calls = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int pp_options_parse(struct pp_options *options, int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "d:i:g:p:o:s:q:n:S:w")) != -1)
		if (pp_option(options, letter, optarg)) {
			fputs(pp_usage, stderr);
			return -EINVAL;
		}
	options->host = optind < argc ? argv[optind] : NULL;
	if (optind + 1 < argc) {
		fputs(pp_usage, stderr);
		return -EINVAL;
	}
	return 0;
}

/* The largest message; 0: a plan that this end does not run. */
static size_t pp_plan_largest(const struct pp_plan *plan)
{
	size_t largest = 64;

	if (!plan->qps || plan->qps > PP_QPS_MAX || !plan->rounds || plan->rounds > PP_ROUNDS_MAX ||
	    plan->sizes_len > PP_SIZES_MAX || plan->ops & ~pp_cases_all())
		return 0;
	for (size_t i = 0; i < plan->sizes_len; i++) {
		if (plan->sizes[i] > PP_SIZE_MAX)
			return 0;
		if (plan->sizes[i] > largest)
			largest = plan->sizes[i];
	}
	return largest * 2 * plan->qps <= PP_MEMORY_MAX ? largest : 0;
}

static int pp_fail(const char *what, int err)
{
	fprintf(stderr, "rdma_check: %s: %s\n", what, strerror(-err));
	return 2;
}

static int pp_run(struct pp_options *options, struct pp_end *end, int fd)
{
	const bool client = options->host;
	struct pp_plan far;
	const struct pp_plan *plan = client ? &options->plan : &far;
	struct pp_count count = {0};
	size_t largest;
	int err = pp_talk_words(fd, (const uint64_t *)&options->plan, (uint64_t *)&far,
				sizeof(far) / sizeof(uint64_t));

	if (err)
		return pp_fail("no plan from the other end", err);
	largest = pp_plan_largest(plan);
	if (!largest)
		return pp_fail("the client's plan", -ERANGE);
	err = pp_end_reserve(end, (unsigned int)plan->qps, largest);
	if (err)
		return pp_fail("cannot register memory", err);
	err = pp_cases_run(end, fd, plan, client, "client", &count);
	if (!err)
		err = pp_cases_run(end, fd, plan, !client, "server", &count);
	printf("%u ok, %u bad, %u skipped\n", count.ok, count.bad, count.skipped);
	for (unsigned int i = 0; i < count.bad && i < PP_BAD_KEPT; i++)
		printf("bad: %s\n", count.first_bad[i]);
	if (err)
		return pp_fail("the ends lost each other", err);
	return count.bad || !count.ok;
}

int main(int argc, char **argv)
{
	struct pp_options options = {
		.port = 1,
		.tcp = 18600,
		.plan = {pp_cases_all(), 1, 1, 1, 9, {0, 1, 3, 4, 1023, 1024, 1025, 4096, 65537}},
	};
	struct pp_end end = {0};
	int fd = -1, err, status;

	if (pp_options_parse(&options, argc, argv))
		return 64;
	alarm(PP_LIFE_S); /* every wait has its deadline; this one is for a device that hangs */
	err = pp_end_open(&end, options.device, (uint8_t)options.port, (uint8_t)options.gid);
	end.calls = options.calls;
	if (err) {
		status = pp_fail(options.device ? options.device : "the first device", err);
	} else {
		err = options.host ? pp_talk_connect(options.host, (uint16_t)options.tcp, &fd)
				   : pp_talk_listen((uint16_t)options.tcp, &fd);
		status = err ? pp_fail("no other end", err) : pp_run(&options, &end, fd);
	}
	if (fd >= 0)
		close(fd);
	pp_end_done(&end);
	return status;
}
