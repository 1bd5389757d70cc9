/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that is gone, and one that says nothing.
 *
 * - A killed peer: a work request posted afterwards fails by exhausted retries, not before
 *   (retry_cnt + 1) intervals of 4.096 us * 2^timeout have passed, and the next one is flushed.
 * - A peer that is stopped for less than that: the request goes through.
 * - A receiver that never calls the library but looks at its memory, and a sender that posts and
 *   then does the same: all bytes come, in order of messages.
 */
#include "client.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 16384, MESSAGES = 400 };

static struct board {
	struct client_peer peer[2];
	_Atomic bool ready[2], connected[2];
	_Atomic unsigned int seen; /* messages that the silent receiver found right */
} * board;

static void wait_for(_Atomic bool *flag)
{
	struct client_patience patience = client_patience();

	while (!atomic_load(flag)) {
		(void)usleep(200);
		if (client_patience_ends(&patience))
			client_fault("the other process does not come");
	}
}

static void join(struct client *c, unsigned int me, uint8_t timeout, uint8_t retry_cnt)
{
	client_open(c, 2 * BYTES);
	board->peer[me] = client_self(c);
	atomic_store(&board->ready[me], true);
	wait_for(&board->ready[!me]);
	client_connect(c->qp, &board->peer[!me], timeout, retry_cnt);
	atomic_store(&board->connected[me], true);
	wait_for(&board->connected[!me]);
}

static pid_t start(void (*child)(uint8_t, uint8_t), uint8_t timeout, uint8_t retry_cnt)
{
	pid_t pid = fork();

	if (pid < 0)
		client_fault("fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)alarm(4 * CLIENT_WAIT_S);
		child(timeout, retry_cnt);
		exit(0);
	}
	return pid;
}

static void finish(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		client_fault("waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	if (status)
		client_fault("a process ended with status %#x", (unsigned int)status);
}

static void reset_board(void)
{
	memset(board, 0, sizeof(*board));
}

/* ── gone ── */

static _Atomic(pid_t) *victim;

static void be_victim(uint8_t timeout, uint8_t retry_cnt)
{
	struct client c;

	join(&c, 0, timeout, retry_cnt);
	for (;;)
		(void)pause();
}

static void expect(struct client *c, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = client_wait(c->cq);

	if (wc.wr_id != id || wc.status != status)
		client_fault("request %d: %s, not %s", (int)wc.wr_id, ibv_wc_status_str(wc.status),
			     ibv_wc_status_str(status));
}

static void survive(uint8_t timeout, uint8_t retry_cnt)
{
	int64_t want = (int64_t)(retry_cnt + 1) * (INT64_C(4096) << timeout), start, took;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct client c;

	join(&c, 1, timeout, retry_cnt);
	for (uint64_t i = 0; i < 20; i++) {
		if (client_write(&c, c.qp, i, 0, BYTES, &board->peer[0], 0))
			client_fault("ibv_post_send");
		expect(&c, i, IBV_WC_SUCCESS);
	}
	/* Shorter than what is allowed: nobody notices. */
	if (retry_cnt)
		(void)kill(*victim, SIGSTOP);
	if (client_write(&c, c.qp, 20, 0, BYTES, &board->peer[0], 0))
		client_fault("ibv_post_send");
	(void)usleep((unsigned int)(want / 1000 / 4));
	(void)kill(*victim, SIGCONT);
	expect(&c, 20, IBV_WC_SUCCESS);

	(void)kill(*victim, SIGKILL);
	start = client_now_ns();
	if (client_write(&c, c.qp, 21, 0, BYTES, &board->peer[0], 0) ||
	    client_write(&c, c.qp, 22, 0, BYTES, &board->peer[0], 0))
		client_fault("ibv_post_send");
	expect(&c, 21, IBV_WC_RETRY_EXC_ERR);
	took = client_now_ns() - start;
	if (took < want)
		client_fault("failed after %lld us, before %lld us", (long long)took / 1000,
			     (long long)want / 1000);
	expect(&c, 22, IBV_WC_WR_FLUSH_ERR);
	if (ibv_query_qp(c.qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_ERR)
		client_fault("the queue pair is not in error");
	client_close(&c);
	printf("timeout %u, retry_cnt %u: failed after %lld ms, at least %lld\n", timeout,
	       retry_cnt, (long long)took / 1000000, (long long)want / 1000000);
	(void)fflush(stdout);
}

static void kill_peer(uint8_t timeout, uint8_t retry_cnt)
{
	pid_t survivor;
	int status;

	reset_board();
	atomic_store(victim, start(be_victim, timeout, retry_cnt));
	survivor = start(survive, timeout, retry_cnt);
	finish(survivor);
	if (waitpid(*victim, &status, 0) != *victim || !WIFSIGNALED(status))
		client_fault("the victim ended by itself");
}

/* ── silent ── */

static size_t length_of(unsigned int message)
{
	static const size_t lengths[] = {16, 64, 1024, 1032, 4096, 5000, 16384};

	return lengths[message % (sizeof(lengths) / sizeof(lengths[0]))];
}

/*
 * What is polled. That message i + 1 comes after this has read message i is
 * known by way of the sender, where no sanitizer can see it.
 */
__attribute__((no_sanitize_thread)) static uint64_t number_at(const unsigned char *at)
{
	return atomic_load_explicit((const _Atomic uint64_t *)(const void *)at,
				    memory_order_acquire);
}

/* NULL, or the first byte that is wrong. */
__attribute__((no_sanitize_thread)) static const unsigned char *
wrong_byte(const unsigned char *memory, size_t len, unsigned int message)
{
	for (size_t k = 0; k < len; k++)
		if (memory[k] != (unsigned char)(message + k))
			return memory + k;
	return NULL;
}

/* The last eight bytes are the message's number; they must be there last. */
static void receive_silently(uint8_t timeout, uint8_t retry_cnt)
{
	struct client c;

	join(&c, 0, timeout, retry_cnt);
	for (unsigned int i = 1; i <= MESSAGES; i++) {
		size_t len = length_of(i);
		const unsigned char *wrong;
		struct client_patience patience = client_patience();

		while (number_at(c.memory + len - 8) != i)
			if (client_patience_ends(&patience))
				client_fault("message %u does not come", i);
		wrong = wrong_byte(c.memory, len - 8, i);
		if (wrong)
			client_fault("message %u: byte %td is %02x", i, wrong - c.memory, *wrong);
		atomic_store(&board->seen, i);
	}
	client_close(&c);
}

static void send_silently(uint8_t timeout, uint8_t retry_cnt)
{
	struct client c;

	join(&c, 1, timeout, retry_cnt);
	for (unsigned int i = 1; i <= MESSAGES; i++) {
		size_t len = length_of(i);
		uint64_t number = i;
		struct client_patience patience = client_patience();

		for (size_t k = 0; k < len - 8; k++)
			c.memory[k] = (unsigned char)(i + k);
		memcpy(c.memory + len - 8, &number, sizeof(number));
		if (client_write(&c, c.qp, i, 0, len, &board->peer[0], 0))
			client_fault("ibv_post_send");
		/* Not a call of the library until it has arrived. */
		while (atomic_load(&board->seen) != i)
			if (client_patience_ends(&patience))
				client_fault("message %u is not seen", i);
		expect(&c, i, IBV_WC_SUCCESS);
	}
	client_close(&c);
	printf("%d messages to a receiver that never polls\n", MESSAGES);
	(void)fflush(stdout);
}

int main(void)
{
	pid_t receiver, sender;

	board = mmap(NULL, sizeof(*board) + sizeof(*victim), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	victim = (_Atomic(pid_t) *)(void *)(board + 1);
	kill_peer(/* timeout= */ 16, /* retry_cnt= */ 3);
	kill_peer(/* timeout= */ 18, /* retry_cnt= */ 0);
	kill_peer(/* timeout= */ 15, /* retry_cnt= */ 7);
	reset_board();
	receiver = start(receive_silently, 18, 7);
	sender = start(send_silently, 18, 7);
	finish(sender);
	finish(receiver);
	return 0;
}
