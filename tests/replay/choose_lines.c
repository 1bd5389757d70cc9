/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pp_choose() says of a recorded machine, for choose.py:
 *
 *	choose_lines RECORDING rails [LISTED...]
 *	choose_lines RECORDING one DEVICE GPU PORT [LISTED...]     "-" for none, 0 for the port
 *
 * A line a choice: gpu, id, device, port, NUMA node, CPUs, netdev, software or hardware, why;
 * tabs between. Of an error: its name and line, exit 1.
 */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "bundle/replay.h"
#include "rdma/choose.h"
#include "base/banned.h"

enum { MOST = 64 };

static void line(const struct pp_choice *c)
{
	(void)printf("%s\t%s\t%s\t%u\t%d\t%s\t%s\t%s\t%s\n", c->gpu ? c->gpu->id : "-", c->id,
		     c->device, c->number, c->numa, c->cpus ? c->cpus : "-",
		     c->netdev ? c->netdev : "-", c->simulated ? "software" : "hardware", c->why);
}

static int say(const struct pp_error *err)
{
	(void)printf("%s\t%s\n", pp_errno_name(err->code), err->text);
	return 1;
}

static const char *word(const char *text)
{
	return strcmp(text, "-") != 0 ? text : NULL;
}

static int choose(const struct pp_node *n, int argc, char **argv)
{
	bool one = !strcmp(argv[2], "one");
	struct pp_choose_options o = {0};
	struct pp_choice c[MOST];
	struct pp_error err;
	unsigned int count = 1;
	uint64_t port = 0;
	int rest = one ? 6 : 3, r;

	if (one && (argc < 6 || pp_parse_u64(argv[5], 0, 255, &port)))
		return 2;
	if (one) {
		o.device = word(argv[3]);
		o.gpu = word(argv[4]);
		o.port = (unsigned int)port;
	}
	if (argc > rest)
		o.listed = (const char *const *)argv + rest;
	r = one ? pp_choose(n, &o, c, &err) : pp_choose_rails(n, &o, c, MOST, &count, &err);
	if (r)
		return say(&err);
	for (unsigned int i = 0; i < count; i++)
		line(&c[i]);
	return 0;
}

int main(int argc, char **argv)
{
	struct pp_source *src = NULL;
	struct pp_node *n = NULL;
	struct pp_error err;
	int r;

	if (argc < 3)
		return 2;
	if (pp_replay_open(argv[1], &src, &err) || pp_node_collect(src, &n, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		pp_source_free(src);
		return 2;
	}
	r = choose(n, argc, argv);
	pp_node_free(n);
	pp_source_free(src);
	return r;
}
