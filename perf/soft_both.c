/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soft_both verbs|tcp [MESSAGES]
 *
 * What a collective of two ranks does to a network: two processes, each of one thread that polls,
 * send to each other at once over four connections, messages of 512 KiB, eight under way on each.
 * By verbs a message is a WRITE and a WRITE_WITH_IMM behind it, as NCCL's are; by TCP it is bytes
 * on a socket that does not block, as those of NCCL's sockets are. Run the first under
 * 'peerpath soft -c ... --'. Prints speed, processor time, and whose it was.
 */
#include "../tests/soft/client.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 4, SLOTS = 8, BYTES = 512 * 1024, MESSAGES = 1000, THREADS = 512 };

#define HALF ((size_t)LANES * SLOTS * BYTES)

/* Of one rank, for who prints. */
struct account {
	double seconds, cpu;
	char threads[THREADS];
};

struct rank {
	int other; /* a socket pair, for what is agreed before and after */
	unsigned int number;
	uint64_t messages; /* on each lane, each way */
	uint64_t sent[LANES], received[LANES];
};

static void say(int fd, const void *what, size_t len)
{
	if (write(fd, what, len) != (ssize_t)len)
		client_fault("the other rank has gone");
}

static void hear(int fd, void *ret, size_t len)
{
	if (recv(fd, ret, len, MSG_WAITALL) != (ssize_t)len)
		client_fault("the other rank has gone");
}

static void meet(const struct rank *r)
{
	char byte = 0;

	say(r->other, &byte, 1);
	hear(r->other, &byte, 1);
}

static bool done(const struct rank *r)
{
	for (unsigned int i = 0; i < LANES; i++)
		if (r->sent[i] < r->messages || r->received[i] < r->messages)
			return false;
	return true;
}

/* ── verbs ── */

struct lane {
	struct ibv_qp *qp;
	struct client_peer peer;
	uint64_t posted;
};

static void post_receive(const struct client *c, struct ibv_qp *qp, unsigned int lane)
{
	struct ibv_recv_wr wr = {.wr_id = lane}, *bad;

	(void)c;
	if (ibv_post_recv(qp, &wr, &bad))
		client_fault("ibv_post_recv");
}

static size_t place(unsigned int lane, uint64_t message)
{
	return ((size_t)lane * SLOTS + message % SLOTS) * BYTES;
}

static void post_message(const struct client *c, struct lane *l, unsigned int lane)
{
	size_t at = place(lane, l->posted);
	struct ibv_sge sge = {(uintptr_t)c->memory + at, BYTES, c->mr->lkey};
	struct ibv_send_wr last = {.wr_id = lane,
				   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				   .send_flags = IBV_SEND_SIGNALED,
				   .imm_data = htonl((uint32_t)l->posted)};
	struct ibv_send_wr wr = {.wr_id = lane,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .next = &last};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = l->peer.memory + HALF + at;
	wr.wr.rdma.rkey = last.wr.rdma.rkey = l->peer.rkey;
	last.wr.rdma.remote_addr = wr.wr.rdma.remote_addr;
	memcpy(c->memory + at, &l->posted, sizeof(l->posted));
	memcpy(c->memory + at + BYTES - sizeof(l->posted), &l->posted, sizeof(l->posted));
	if (ibv_post_send(l->qp, &wr, &bad))
		client_fault("ibv_post_send");
	l->posted++;
}

static void came(struct rank *r, const struct client *c, struct lane *lanes,
		 const struct ibv_wc *wc)
{
	unsigned int lane = (unsigned int)wc->wr_id;
	uint64_t first, last;

	if (wc->status != IBV_WC_SUCCESS)
		client_fault("status %d", (int)wc->status);
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
		r->sent[lane]++;
		return;
	}
	memcpy(&first, c->memory + HALF + place(lane, r->received[lane]), sizeof(first));
	memcpy(&last, c->memory + HALF + place(lane, r->received[lane]) + BYTES - sizeof(last),
	       sizeof(last));
	/* The next of this slot may be on its way: its sender heard of this one's end. */
	if (ntohl(wc->imm_data) != (uint32_t)r->received[lane] || first < r->received[lane] ||
	    last < r->received[lane])
		client_fault("lane %u: message %" PRIu64 " is not what was sent", lane,
			     r->received[lane]);
	r->received[lane]++;
	post_receive(c, lanes[lane].qp, lane);
}

static void verbs(struct rank *r, double *ret_seconds)
{
	struct client c;
	struct lane lanes[LANES] = {0};
	struct ibv_wc wc[4];
	struct ibv_cq *cq;
	int64_t start;

	client_open(&c, 2 * HALF);
	cq = ibv_create_cq(c.context, LANES * CLIENT_DEPTH * 2, NULL, NULL, 0);
	if (!cq)
		client_fault("ibv_create_cq");
	for (unsigned int i = 0; i < LANES; i++) {
		struct client_peer self = client_self(&c);

		lanes[i].qp = client_qp(&c, cq);
		self.qpn = lanes[i].qp->qp_num;
		say(r->other, &self, sizeof(self));
		hear(r->other, &lanes[i].peer, sizeof(lanes[i].peer));
		for (unsigned int j = 0; j < CLIENT_DEPTH; j++)
			post_receive(&c, lanes[i].qp, i);
		client_connect(lanes[i].qp, &lanes[i].peer, 14, 7);
	}
	memset(c.memory, (int)r->number + 1, HALF);
	meet(r);
	start = client_now_ns();
	while (!done(r)) {
		int n = ibv_poll_cq(cq, 4, wc);

		for (int i = 0; i < n; i++)
			came(r, &c, lanes, &wc[i]);
		for (unsigned int i = 0; i < LANES; i++)
			if (lanes[i].posted < r->messages && lanes[i].posted - r->sent[i] < SLOTS)
				post_message(&c, &lanes[i], i);
	}
	*ret_seconds = (double)(client_now_ns() - start) / 1e9;
}

/* ── TCP ── */

/* A connection to the other rank, which does the same. */
static int tcp_connection(const struct rank *r)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0), got;

	if (fd < 0)
		client_fault("socket");
	if (r->number == 0) {
		if (bind(fd, (struct sockaddr *)&at, len) || listen(fd, 1) ||
		    getsockname(fd, (struct sockaddr *)&at, &len))
			client_fault("listen");
		say(r->other, &at, sizeof(at));
		got = accept(fd, NULL, NULL);
		close(fd);
		fd = got;
	} else {
		hear(r->other, &at, sizeof(at));
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
			client_fault("connect");
	}
	if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		client_fault("accept");
	return fd;
}

static void tcp(struct rank *r, double *ret_seconds)
{
	uint8_t *memory = malloc(2 * HALF);
	uint64_t sent[LANES] = {0}, received[LANES] = {0};
	const uint64_t all = r->messages * BYTES;
	int fds[LANES];
	int64_t start;

	if (!memory)
		client_fault("no memory");
	memset(memory, (int)r->number + 1, 2 * HALF);
	for (unsigned int i = 0; i < LANES; i++)
		fds[i] = tcp_connection(r);
	meet(r);
	start = client_now_ns();
	while (!done(r)) {
		for (unsigned int i = 0; i < LANES; i++) {
			size_t to = place(i, sent[i] / BYTES), from = place(i, received[i] / BYTES);
			ssize_t n = sent[i] == all ? 0
						   : send(fds[i], memory + to + sent[i] % BYTES,
							  BYTES - sent[i] % BYTES,
							  MSG_DONTWAIT | MSG_NOSIGNAL);

			sent[i] += n > 0 ? (uint64_t)n : 0;
			n = received[i] == all
				    ? 0
				    : recv(fds[i], memory + HALF + from + received[i] % BYTES,
					   BYTES - received[i] % BYTES, MSG_DONTWAIT);
			received[i] += n > 0 ? (uint64_t)n : 0;
			r->sent[i] = sent[i] / BYTES;
			r->received[i] = received[i] / BYTES;
		}
	}
	*ret_seconds = (double)(client_now_ns() - start) / 1e9;
}

/* Processor time of each thread, by name. */
static void threads(char *ret, size_t size)
{
	DIR *dir = opendir("/proc/self/task");
	size_t at = 0;

	*ret = '\0';
	for (struct dirent *d; dir && (d = readdir(dir));) {
		char path[300], name[32] = "?";
		uint64_t ns = 0;
		FILE *f;

		if (*d->d_name == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		if (f)
			(void)fclose(f);
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", d->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%" SCNu64, &ns) != 1)
			ns = 0;
		if (f)
			(void)fclose(f);
		if (at < size)
			at += (size_t)snprintf(ret + at, size - at, "%s%s %.2f", at ? ", " : "",
					       name, (double)ns / 1e9);
	}
	if (dir)
		(void)closedir(dir);
}

static double cpu(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run(struct rank *r, bool by_verbs)
{
	struct account mine = {0}, other;
	double bytes = (double)r->messages * BYTES * LANES;

	(by_verbs ? verbs : tcp)(r, &mine.seconds);
	mine.cpu = cpu();
	threads(mine.threads, sizeof(mine.threads));
	say(r->other, &mine, sizeof(mine));
	hear(r->other, &other, sizeof(other));
	if (r->number)
		return;
	if (other.seconds > mine.seconds)
		mine.seconds = other.seconds;
	printf("%.0f MB/s each way, %.2f CPU s/GB; CPU s of one: %s\n", bytes / mine.seconds / 1e6,
	       (mine.cpu + other.cpu) / (2 * bytes / 1e9), mine.threads);
}

int main(int argc, char **argv)
{
	struct rank r = {.messages = argc > 2 ? strtoul(argv[2], NULL, 10) : MESSAGES};
	bool by_verbs = argc > 1 && !strcmp(argv[1], "verbs");
	int pair[2], status = 0;
	pid_t child;

	if (argc < 2 || (!by_verbs && strcmp(argv[1], "tcp") != 0) || !r.messages)
		return 64;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	r.number = child == 0;
	r.other = pair[r.number];
	(void)close(pair[!r.number]);
	run(&r, by_verbs);
	if (!child)
		return 0;
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
