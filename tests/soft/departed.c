/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fifty peers, one after the other, each killed in the middle of large WRITEs both ways, with a
 * survivor that keeps its device open. Its requests fail by exhausted retries and nothing else; its
 * memory holds what a peer wrote and nothing of where the peer's memory was; and in the end it has
 * no descriptor and no mapping more than after the first few.
 */
#include "client.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ROUNDS = 50,
	SETTLED = 25, /* rounds after which nothing grows any more: each sending socket has been
			 used */
	BYTES = 1 << 20,
	OPEN = 4,
	TIMEOUT = 13, /* the survivor's: 34 ms */
	RETRIES = 2,
	PATIENT = 20, /* the victim's: on a busy machine the survivor may have to wait to be run */
	SURVIVOR = 0,
	VICTIM = 1,
};

static struct board {
	struct client_peer peer[2];
	_Atomic int ready[2], connected[2]; /* the round, from 1 */
	_Atomic int over;		    /* the round that the survivor has done with */
} * board;

static void wait_for(_Atomic int *round, int want)
{
	struct client_patience patience = client_patience();

	while (atomic_load(round) < want) {
		(void)usleep(200);
		if (client_patience_ends(&patience))
			client_fault("the other process does not come to round %d", want);
	}
}

static void join(struct client *c, struct ibv_qp *qp, unsigned int me, int round)
{
	board->peer[me] = client_self(c);
	board->peer[me].qpn = qp->qp_num;
	atomic_store(&board->ready[me], round);
	wait_for(&board->ready[!me], round);
	client_connect(qp, &board->peer[!me], me == VICTIM ? PATIENT : TIMEOUT, RETRIES);
	atomic_store(&board->connected[me], round);
	wait_for(&board->connected[!me], round);
}

/* The first half is written by the peer, the second is what is sent. */
static void post(struct client *c, struct ibv_qp *qp, unsigned int me)
{
	if (client_write(c, qp, 0, BYTES, BYTES, &board->peer[!me], 0))
		client_fault("ibv_post_send");
}

static void be_victim(int round)
{
	struct client c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(&c, 2 * BYTES);
	memset(c.memory + BYTES, round, BYTES);
	join(&c, c.qp, VICTIM, round);
	for (int i = 0; i < OPEN; i++)
		post(&c, c.qp, VICTIM);
	for (;;) {
		if (client_wait(c.cq).status != IBV_WC_SUCCESS)
			client_fault("the victim's request failed before it was killed");
		post(&c, c.qp, VICTIM);
	}
}

static unsigned int entries(const char *folder)
{
	unsigned int n = 0;
	DIR *d = opendir(folder);

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

static unsigned int lane_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "peerpath-soft-lane") != NULL;
	if (f)
		(void)fclose(f);
	return n;
}

/* Until the peer is gone: how many requests went through before. */
static unsigned int transfer(struct client *c, struct ibv_qp *qp)
{
	unsigned int through = 0, failed = 0;

	for (int i = 0; i < OPEN; i++)
		post(c, qp, SURVIVOR);
	while (failed < OPEN) {
		struct ibv_wc wc = client_wait(c->cq);

		if (wc.status == IBV_WC_SUCCESS) {
			through++;
			post(c, qp, SURVIVOR);
		} else if (wc.status != (failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR)) {
			client_fault("failed by %s", ibv_wc_status_str(wc.status));
		} else {
			failed++;
		}
	}
	return through;
}

static void survive(void)
{
	unsigned int through = 0, descriptors = 0, mappings = 0;
	struct client c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(&c, 2 * BYTES);
	memset(c.memory, 0, 2 * BYTES);
	for (int round = 1; round <= ROUNDS; round++) {
		struct ibv_qp *qp = client_qp(&c, c.cq);

		join(&c, qp, SURVIVOR, round);
		through += transfer(&c, qp);
		for (size_t i = 0; i < BYTES; i++)
			if (c.memory[i] != round && c.memory[i] != round - 1)
				client_fault("round %d: byte %zu is %u", round, i, c.memory[i]);
		memset(c.memory, round, BYTES);
		if (ibv_destroy_qp(qp))
			client_fault("ibv_destroy_qp");
		if (round == SETTLED) {
			descriptors = entries("/proc/self/fd");
			mappings = lane_mappings();
		}
		atomic_store(&board->over, round);
	}
	/* The last victim's lanes end as those of the others did, when the thread hears of it. */
	for (int i = 0;
	     i < 5000 && (entries("/proc/self/fd") > descriptors || lane_mappings() > mappings);
	     i++)
		(void)usleep(1000);
	if (entries("/proc/self/fd") > descriptors)
		client_fault("%u descriptors, %u after round %d", entries("/proc/self/fd"),
			     descriptors, SETTLED);
	if (lane_mappings() > mappings)
		client_fault("%u lanes are mapped, %u after round %d", lane_mappings(), mappings,
			     SETTLED);
	client_close(&c);
	printf("%d peers killed, %u MiB through before; %u descriptors, %u mappings of lanes\n",
	       ROUNDS, through, descriptors, mappings);
	(void)fflush(stdout);
}

static pid_t start(void (*child)(int), int arg)
{
	pid_t pid = fork();

	if (pid < 0)
		client_fault("fork");
	if (pid == 0) {
		(void)alarm(140);
		child(arg);
		exit(0);
	}
	return pid;
}

static void run_survivor(int none)
{
	(void)none;
	survive();
}

static int finish(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		client_fault("waitpid");
	return status;
}

int main(void)
{
	pid_t survivor;
	int status;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		client_fault("mmap");
	survivor = start(run_survivor, 0);
	for (int round = 1; round <= ROUNDS; round++) {
		pid_t victim = start(be_victim, round);

		while (atomic_load(&board->connected[VICTIM]) < round) {
			(void)usleep(1000);
			if (waitpid(survivor, &status, WNOHANG) == survivor)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		}
		/* From before the first byte to well into it. */
		(void)usleep((unsigned int)(round * 7919 % 12000));
		(void)kill(victim, SIGKILL);
		status = finish(victim);
		if (!WIFSIGNALED(status))
			return WIFEXITED(status) && WEXITSTATUS(status) == 77 ? 77 : 1;
		wait_for(&board->over, round);
	}
	status = finish(survivor);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
