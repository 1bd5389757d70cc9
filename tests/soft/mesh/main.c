/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mesh [-n MEMBERS] [-q LANES] [-c MESSAGES] [-s BYTES] [-r RECEIVES] [-S SEED] [-w
 * polls|sleeps|mixed]
 *      [-t TIMEOUT] [-R RETRIES] [-k] [-i] [-D]
 *
 * -k: member 0, who held the UDP port first, is killed while traffic runs; all others must go on,
 * lose only what led to it, and a new member joins. -i: says "through" when all messages are, and
 * ends with its input: meanwhile the members can be looked at. -D: nobody may read the members'
 * memory, but who may read everybody's. Exit: 0 right, 1 not, 64 usage, 77
 * the port is another user's.
 */
#include "mesh.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 120, STEP_US = 5000, GO_ON = 20 };

static struct mesh_board *board;
static struct mesh_clock watch;
static bool secret;

static void start(unsigned int me)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		/* Whatever becomes of the parent. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (secret && prctl(PR_SET_DUMPABLE, 0))
			exit(1);
		exit(mesh_member_run(board, me));
	}
	board->card[me].pid = pid;
}

static void kill_all(void)
{
	for (unsigned int i = 0; i < MESH_MEMBERS_MAX; i++)
		if (board->card[i].pid > 0)
			(void)kill(board->card[i].pid, SIGKILL);
}

/* Takes in who ended; true: nobody failed. */
static bool reap(void)
{
	int status, worst = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned int i = 0; i < MESH_MEMBERS_MAX; i++) {
			struct mesh_card *card = &board->card[i];

			if (card->pid != pid)
				continue;
			card->pid = 0;
			if (status == 0 || atomic_load(&board->dead) >> i & 1)
				continue;
			printf("member %u: %s %d: %s\n", i, WIFEXITED(status) ? "exit" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
			       card->fault);
			worst = WIFEXITED(status) && WEXITSTATUS(status) == MESH_SKIP ? MESH_SKIP
										      : 1;
		}
	}
	if (worst) {
		kill_all();
		exit(worst);
	}
	return true;
}

static void nap(const char *what)
{
	(void)usleep(STEP_US);
	(void)reap();
	if (mesh_clock_s(&watch) < PATIENCE_S)
		return;
	printf("no end of waiting: %s\n", what);
	kill_all();
	exit(1);
}

static void wait_ready(unsigned int me)
{
	while (atomic_load(&board->card[me].state) == MESH_ABSENT)
		nap("for a member to be ready");
}

/* Each lane among them moves on by GO_ON messages from where it stands. */
static void wait_progress(uint32_t mask, const char *what)
{
	static uint64_t before[MESH_MEMBERS_MAX][MESH_MEMBERS_MAX][MESH_LANES_MAX];
	bool all;

	for (unsigned int a = 0; a < MESH_MEMBERS_MAX; a++)
		for (unsigned int b = 0; b < MESH_MEMBERS_MAX; b++)
			for (unsigned int q = 0; q < board->plan.lanes; q++)
				before[a][b][q] = atomic_load(&board->end[a][b][q].done);
	do {
		nap(what);
		all = true;
		for (unsigned int a = 0; a < MESH_MEMBERS_MAX; a++)
			for (unsigned int b = 0; b < MESH_MEMBERS_MAX; b++)
				for (unsigned int q = 0; a != b && q < board->plan.lanes; q++)
					if (mask >> a & 1 && mask >> b & 1)
						all &= atomic_load(&board->end[a][b][q].done) >=
						       before[a][b][q] + GO_ON;
	} while (!all);
}

/* Who was connected to the dead one hears of it, by exhausted retries and nothing else. */
static void wait_broken(unsigned int dead, unsigned int members)
{
	for (unsigned int a = 0; a < members; a++)
		for (unsigned int q = 0; a != dead && q < board->plan.lanes; q++) {
			struct mesh_end *end = &board->end[a][dead][q];

			while (!atomic_load(&end->broken))
				nap("for a lane to the dead member to fail");
			if (end->status == IBV_WC_RETRY_EXC_ERR && !end->later)
				continue;
			printf("member %u lane %u to the dead one: status %d, later %d\n", a, q,
			       end->status, end->later);
			kill_all();
			exit(1);
		}
}

static void kill_and_join(void)
{
	unsigned int members = board->plan.members;
	uint32_t all = (1u << members) - 1, living = all & ~1u;

	wait_progress(all, "for traffic of all");
	atomic_fetch_or(&board->dead, 1u);
	(void)kill(board->card[0].pid, SIGKILL);
	wait_progress(living, "for the others to go on");
	start(members);
	wait_ready(members);
	wait_progress(living | 1u << members, "for the new member's traffic");
	wait_broken(0, members);
	wait_progress(living | 1u << members, "for traffic after all that");
	printf("member 0 killed: %u lanes failed by exhausted retries, %u members went on, one "
	       "joined\n",
	       (members - 1) * board->plan.lanes, members - 1);
	atomic_store(&board->stop, true);
}

/* Until somebody who looks at the members closes our input. */
static void hold(void)
{
	char byte;

	for (unsigned int i = 0; i < board->plan.members; i++)
		while (atomic_load(&board->card[i].state) != MESH_DONE)
			nap("for all messages");
	puts("through");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	atomic_store(&board->hold, false);
}

static uint64_t total(uint64_t *ret_verified)
{
	uint64_t sum = 0, verified = 0;

	for (unsigned int a = 0; a < MESH_MEMBERS_MAX; a++)
		for (unsigned int b = 0; b < MESH_MEMBERS_MAX; b++)
			for (unsigned int q = 0; q < board->plan.lanes; q++) {
				sum += atomic_load(&board->end[a][b][q].done);
				verified += atomic_load(&board->end[a][b][q].verified);
			}
	*ret_verified = verified;
	return sum;
}

static bool number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return *text && !*end && !errno && *ret <= max;
}

static bool option(struct mesh_plan *p, int letter, const char *text)
{
	unsigned long n = 0;
	bool good = letter == 'w' || number(text, letter == 'S' ? UINT32_MAX : 1000000, &n);

	switch (good ? letter : 0) {
	case 'n':
		p->members = (unsigned int)n;
		return n >= 2 && n < MESH_MEMBERS_MAX;
	case 'q':
		p->lanes = (unsigned int)n;
		return n >= 1 && n <= MESH_LANES_MAX;
	case 'c':
		p->count = n;
		return true;
	case 's':
		p->size_max = (unsigned int)n;
		return n >= 64;
	case 'r':
		p->receives = (unsigned int)n;
		return n >= 1 && n <= MESH_RECEIVES;
	case 'S':
		p->seed = n;
		return true;
	case 't':
		p->timeout = (uint8_t)n;
		return n < 32;
	case 'R':
		p->retry_cnt = (uint8_t)n;
		return n < 8;
	case 'w':
		p->wait = *text == 'p' ? MESH_POLLS : *text == 's' ? MESH_SLEEPS : MESH_MIXED;
		return *text == 'p' || *text == 's' || *text == 'm';
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	struct mesh_plan plan = {.members = 2,
				 .lanes = 1,
				 .size_max = 16384,
				 .receives = 8,
				 .count = 200,
				 .timeout = 18,
				 .retry_cnt = 7,
				 .wait = MESH_MIXED};
	bool killing = false, holding = false;
	uint64_t verified, sum;
	int letter;

	while ((letter = getopt(argc, argv, "n:q:c:s:r:S:w:t:R:kiD")) != -1) {
		if (letter == 'k') {
			killing = true;
		} else if (letter == 'i') {
			holding = true;
		} else if (letter == 'D') {
			secret = true;
		} else if (!option(&plan, letter, optarg)) {
			(void)fprintf(stderr, "mesh: -%c?\n", letter);
			return 64;
		}
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		return 1;
	board->plan = plan;
	atomic_store(&board->hold, holding);
	if (killing)
		board->plan.count = 0;
	setvbuf(stdout, NULL, _IONBF, 0);
	for (unsigned int i = 0; i < plan.members; i++) {
		start(i);
		/* Member 0 holds the port before all others. */
		if (i == 0)
			wait_ready(i);
	}
	if (killing)
		kill_and_join();
	if (holding)
		hold();
	for (unsigned int i = 0; i < MESH_MEMBERS_MAX; i++)
		while (board->card[i].pid > 0)
			nap("for members to end");
	sum = total(&verified);
	printf("%llu messages of %u members over %u lanes each way, %llu of them received, all "
	       "verified\n",
	       (unsigned long long)sum, plan.members, plan.lanes, (unsigned long long)verified);
	return 0;
}
