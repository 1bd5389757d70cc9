/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes and memory of a GPU, on whatever RDMA device comes first:
 *
 *	gpu_traffic [-s KIND] [-t KIND] [-l BYTES] [-i BYTES] [-n COUNT] [-u] [-g] [-c CALL]
 *		    bytes|speed|call|ends|rules|lines|regions|self
 *
 * -s, -t: memory of the first process, and of the second: host, alloc, vmm, vmm2 (two segments);
 * -i: so far inside the allocation; -u: an unreliable connection; -g: the second process has the
 *second GPU; -c: a call's name, what ends first, or "fork" for speed.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	traffic_fn *run;
} kinds[] = {
	{"bytes", traffic_bytes},     {"speed", traffic_speed}, {"call", traffic_call},
	{"ends", traffic_ends},	      {"rules", traffic_rules}, {"lines", traffic_lines},
	{"regions", traffic_regions}, {"self", traffic_self},
};

static enum gpu_kind kind_of(const char *word)
{
	for (int i = 0; i < GPU_KINDS; i++)
		if (!strcmp(word, gpu_kind_names[i]))
			return (enum gpu_kind)i;
	end_fault("no such kind of memory: %s", word);
}

static struct traffic parse(int argc, char **argv)
{
	struct traffic t = {.source = GPU_ALLOC,
			    .target = GPU_ALLOC,
			    .len = 4 << 20,
			    .rounds = 1,
			    .type = IBV_QPT_RC,
			    .call = "-"};
	int c;

	while ((c = getopt(argc, argv, "s:t:l:i:n:ugc:")) != -1) {
		switch (c) {
		case 's':
			t.source = kind_of(optarg);
			break;
		case 't':
			t.target = kind_of(optarg);
			break;
		case 'l':
			t.len = strtoul(optarg, NULL, 0);
			break;
		case 'i':
			t.inside = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			t.rounds = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'u':
			t.type = IBV_QPT_UC;
			break;
		case 'g':
			t.two = true;
			break;
		case 'c':
			t.call = optarg;
			break;
		default:
			exit(64);
		}
	}
	return t;
}

static int run(traffic_fn *fn, const struct traffic *t, int talk, bool first)
{
	struct end e;

	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu_open(t->two && !first);
	end_open(&e, talk, t->type);
	fn(&e, first, t);
	return 0;
}

int main(int argc, char **argv)
{
	struct traffic t = parse(argc, argv);
	traffic_fn *fn = NULL;
	int talk[2], status, mine;
	pid_t child;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && optind < argc; i++)
		if (!strcmp(argv[optind], kinds[i].name))
			fn = kinds[i].run;
	if (!fn || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk))
		end_fault("what?");
	child = fork();
	if (child == 0) {
		close(talk[0]);
		return run(fn, &t, talk[1], /* first= */ false);
	}
	close(talk[1]);
	mine = run(fn, &t, talk[0], /* first= */ true);
	if (waitpid(child, &status, 0) != child)
		return 1;
	if (WIFSIGNALED(status))
		return t.call[0] == 'r' && WTERMSIG(status) == 9 ? 0 : 1;
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : mine;
}
