/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads of one process at once: queue pairs posted to by two threads, one completion queue
 * polled by two, objects that come and go, devices opened and closed, threads that sleep in
 * ibv_get_async_event() and ibv_get_cq_event(); and forks in the middle of it, whose children open
 * devices of their own: a lock that a thread held at the fork must not be held in the child.
 */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POSTERS = 2, QPS = 2, BYTES = 2048, PER_THREAD = 400, FORKS = 60, SLOTS = POSTERS * QPS };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
/*
 * The thread sanitizer refuses threads in the child of a process that has some; the address
 * sanitizer's allocator may be left locked there by one of
 * them. Built plainly, children are tried.
 */
static const bool forks = false;
#else
static const bool forks = true;
#endif

static struct client client;
static struct ibv_cq *shared_cq;
static struct ibv_qp *qps[QPS];
static _Atomic unsigned int posted, completed, objects, contexts, events;
static _Atomic int under_way[SLOTS]; /* by poster and queue pair */
static _Atomic bool stop;

/* Each poster writes from a place of its own to a place of its own, one at a time on each QP. */
static void *post_loop(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	struct client_peer to = client_self(&client);

	for (unsigned int i = 0; i < PER_THREAD; i++) {
		for (unsigned int q = 0; q < QPS; q++) {
			unsigned int slot = me * QPS + q;
			size_t at = (size_t)slot * BYTES;
			int rc;

			while (atomic_load(&under_way[slot]))
				(void)usleep(20);
			if (i && memcmp(client.memory + at, client.memory + SLOTS * BYTES + at,
					BYTES) != 0)
				client_fault("thread %u: the copy of message %u differs", me,
					     i - 1);
			memset(client.memory + at, (int)(i + slot), BYTES);
			atomic_store(&under_way[slot], 1);
			rc = client_write(&client, qps[q], slot, at, BYTES, &to,
					  SLOTS * BYTES + at);
			if (rc)
				client_fault("ibv_post_send: %s", strerror(rc));
			atomic_fetch_add(&posted, 1);
		}
	}
	return NULL;
}

static void *poll_loop(void *arg)
{
	struct ibv_wc wc;
	int n;

	(void)arg;
	while (!atomic_load(&stop)) {
		n = ibv_poll_cq(shared_cq, 1, &wc);
		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			client_fault("a completion: %s", ibv_wc_status_str(wc.status));
		if (n != 1)
			continue;
		atomic_store(&under_way[wc.wr_id], 0);
		atomic_fetch_add(&completed, 1);
	}
	return NULL;
}

static void *object_loop(void *arg)
{
	unsigned char *memory = malloc(BYTES);

	(void)arg;
	while (!atomic_load(&stop)) {
		struct ibv_cq *cq = ibv_create_cq(client.context, 8, NULL, client.channel, 0);
		struct ibv_mr *mr = memory ? ibv_reg_mr(client.pd, memory, BYTES, 0) : NULL;
		struct ibv_qp *qp = cq ? client_qp(&client, cq) : NULL;
		struct ibv_ah_attr attr = {
			.is_global = 1, .port_num = 1, .grh = {.dgid = client.gid, .hop_limit = 1}};
		struct ibv_ah *ah = ibv_create_ah(client.pd, &attr);

		if (!cq || !mr || !qp || !ah)
			client_fault("objects: %s", strerror(errno));
		if (ibv_destroy_ah(ah) || ibv_destroy_qp(qp) || ibv_dereg_mr(mr) ||
		    ibv_destroy_cq(cq))
			client_fault("an object is in use");
		atomic_fetch_add(&objects, 1);
	}
	free(memory);
	return NULL;
}

static void *context_loop(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		struct client c;

		/* Where there are two, its sockets come and go. */
		client_open_last(&c, BYTES);
		client_close(&c);
		atomic_fetch_add(&contexts, 1);
	}
	return NULL;
}

/* Sleeps until the queue pair of main() goes to error, at the end. */
static void *async_loop(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	if (ibv_get_async_event(client.context, &event))
		client_fault("ibv_get_async_event: %s", strerror(errno));
	ibv_ack_async_event(&event);
	return NULL;
}

/* A queue pair of its own, by events alone. */
static void *event_loop(void *arg)
{
	struct client c;
	struct client_peer self;
	struct ibv_wc wc;

	(void)arg;
	client_open(&c, 2 * BYTES);
	self = client_self(&c);
	client_connect(c.qp, &self, 18, 7);
	while (!atomic_load(&stop)) {
		struct ibv_cq *cq;
		void *context;
		int n;

		if (ibv_req_notify_cq(c.cq, 0) || client_write(&c, c.qp, 0, 0, BYTES, &self, BYTES))
			client_fault("notify or post");
		if (ibv_get_cq_event(c.channel, &cq, &context) || cq != c.cq)
			client_fault("ibv_get_cq_event: %s", strerror(errno));
		ibv_ack_cq_events(cq, 1);
		n = ibv_poll_cq(c.cq, 1, &wc);
		if (n != 1 || wc.status != IBV_WC_SUCCESS)
			client_fault("an event without a completion: %d", n);
		atomic_fetch_add(&events, 1);
	}
	client_close(&c);
	return NULL;
}

/* A copy of a socket that shares UDP 4791 and is not read would take what is others'. */
static void check_sockets(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_in6 at = {0};
		socklen_t len = sizeof(at);

		/* The port lies at the same place in both families. */
		if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 &&
		    (at.sin6_family == AF_INET || at.sin6_family == AF_INET6) &&
		    ntohs(at.sin6_port) == 4791)
			client_fault("a child has socket %d of its parent", fd);
	}
}

static void child(void)
{
	struct client c;
	struct client_peer self;
	struct ibv_wc wc;

	check_sockets();
	client_open(&c, 2 * BYTES);
	self = client_self(&c);
	client_connect(c.qp, &self, 18, 7);
	if (client_write(&c, c.qp, 5, 0, BYTES, &self, BYTES))
		client_fault("a child cannot post");
	wc = client_wait(c.cq);
	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != 5)
		client_fault("a child's request: %s", ibv_wc_status_str(wc.status));
	client_close(&c);
	(void)ibv_close_device(client.context);
	_exit(0);
}

static void fork_some(void)
{
	for (int i = 0; i < FORKS && forks; i++) {
		struct client_patience patience = client_patience();
		int status = 0;
		pid_t pid = fork(), got;

		if (pid < 0)
			client_fault("fork: %s", strerror(errno));
		if (pid == 0)
			child();
		while ((got = waitpid(pid, &status, WNOHANG)) == 0 &&
		       !client_patience_ends(&patience))
			(void)usleep(200);
		if (got != pid || status)
			client_fault("child %d: %s, status %#x", i, got ? "ended" : "hangs",
				     (unsigned int)status);
	}
}

static void open_shared(void)
{
	struct client_peer to;

	client_open(&client, 2 * SLOTS * BYTES);
	shared_cq = ibv_create_cq(client.context, 64, NULL, NULL, 0);
	if (!shared_cq)
		client_fault("ibv_create_cq");
	for (unsigned int q = 0; q < QPS; q++)
		qps[q] = client_qp(&client, shared_cq);
	for (unsigned int q = 0; q < QPS; q++) {
		to = client_self(&client);
		to.qpn = qps[q ^ 1]->qp_num;
		client_connect(qps[q], &to, 18, 7);
	}
	to = client_self(&client);
	client_connect(client.qp, &to, 18, 7);
}

/* A key that there is not: the queue pair as responder raises an event. */
static void raise_event(void)
{
	struct client_peer wrong = client_self(&client);

	wrong.rkey ^= 0x55555555;
	if (client_write(&client, client.qp, 1, 0, 8, &wrong, 0) ||
	    client_wait(client.cq).status == IBV_WC_SUCCESS)
		client_fault("a wrong key is taken");
}

int main(void)
{
	static void *(*const loops[])(void *) = {poll_loop,    poll_loop,  object_loop,
						 context_loop, event_loop, async_loop};
	enum { LOOPS = sizeof(loops) / sizeof(loops[0]) };
	pthread_t posters[POSTERS], others[LOOPS];

	open_shared();
	for (unsigned int i = 0; i < LOOPS; i++)
		if (pthread_create(&others[i], NULL, loops[i], NULL))
			return 1;
	for (unsigned int i = 0; i < POSTERS; i++)
		if (pthread_create(&posters[i], NULL, post_loop, (void *)(uintptr_t)i))
			return 1;
	fork_some();
	for (unsigned int i = 0; i < POSTERS; i++)
		pthread_join(posters[i], NULL);
	for (struct client_patience p = client_patience(); atomic_load(&completed) != posted;)
		if (client_patience_ends(&p))
			client_fault("%u of %u completions", completed, posted);
	raise_event();
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < LOOPS; i++)
		pthread_join(others[i], NULL);
	for (unsigned int q = 0; q < QPS; q++)
		if (ibv_destroy_qp(qps[q]))
			client_fault("ibv_destroy_qp");
	if (ibv_destroy_cq(shared_cq))
		client_fault("ibv_destroy_cq");
	client_close(&client);
	if (posted != POSTERS * QPS * PER_THREAD || !objects || !contexts || !events)
		client_fault("%u posted, %u objects, %u contexts, %u events", posted, objects,
			     contexts, events);
	printf("%u messages, %u sets of objects, %u contexts, %u events, %d forks\n", posted,
	       objects, contexts, events, forks ? FORKS : 0);
	return 0;
}
