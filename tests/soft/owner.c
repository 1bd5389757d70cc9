/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library does to the process that it lives in, and what remains of it after fork():
 * nothing printed, no signal touched, no descriptor that a child would inherit over exec, one
 * thread that takes no signal, exit handlers none; a child of fork() gets errors from what it
 * inherited, opens its own, and harms nothing of its parent's.
 *
 * usage: owner     Exit: 0 right, 77 the port is another user's.
 */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4096, MESSAGES = 50, CHILDREN = 6, FDS_MAX = 256 };

/* A connection to itself: all that one process needs for traffic. */
static void loop_open(struct client *c)
{
	struct client_peer self;

	client_open(c, 2 * BYTES);
	self = client_self(c);
	client_connect(c->qp, &self, 18, 7);
}

static int loop_post(struct client *c, unsigned char with)
{
	struct client_peer self = client_self(c);

	memset(c->memory, with, BYTES);
	return client_write(c, c->qp, with, 0, BYTES, &self, BYTES);
}

static void loop_finish(struct client *c, unsigned char with)
{
	struct ibv_wc wc = client_wait(c->cq);

	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != with)
		client_fault("%s", ibv_wc_status_str(wc.status));
	for (int i = 0; i < BYTES; i++)
		if (c->memory[BYTES + i] != with)
			client_fault("byte %d is %02x, not %02x", i, c->memory[BYTES + i], with);
}

static void loop_move(struct client *c)
{
	for (unsigned int i = 0; i < MESSAGES; i++) {
		int rc = loop_post(c, (unsigned char)(i + 1));

		if (rc)
			client_fault("ibv_post_send: %s", strerror(rc));
		loop_finish(c, (unsigned char)(i + 1));
	}
}

/* ── what the process is like ── */

struct likeness {
	struct sigaction actions[NSIG];
	sigset_t mask;
	unsigned int fds, threads;
	mode_t umask;
	char environment[64];
};

static unsigned int count(const char *dir)
{
	unsigned int n = 0;
	DIR *d = opendir(dir);

	if (!d)
		client_fault("%s: %s", dir, strerror(errno));
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void look(struct likeness *l)
{
	const char *locale;

	memset(l, 0, sizeof(*l));
	for (int s = 1; s < NSIG; s++)
		(void)sigaction(s, NULL, &l->actions[s]);
	(void)sigprocmask(SIG_SETMASK, NULL, &l->mask);
	l->fds = count("/proc/self/fd");
	l->threads = count("/proc/self/task");
	l->umask = umask(022);
	(void)umask(l->umask);
	locale = getenv("PEERPATH_SOFT");
	(void)snprintf(l->environment, sizeof(l->environment), "%s", locale ? locale : "");
}

static void compare(const struct likeness *a, const struct likeness *b, unsigned int threads)
{
	for (int s = 1; s < NSIG; s++)
		if (a->actions[s].sa_handler != b->actions[s].sa_handler ||
		    a->actions[s].sa_flags != b->actions[s].sa_flags)
			client_fault("the action of signal %d has changed", s);
	if (memcmp(&a->mask, &b->mask, sizeof(a->mask)) != 0)
		client_fault("the signal mask has changed");
	if (a->umask != b->umask || strcmp(a->environment, b->environment) != 0)
		client_fault("the umask or the environment has changed");
	if (b->threads != a->threads + threads)
		client_fault("%u threads, not %u", b->threads, a->threads + threads);
	if (!threads && b->fds != a->fds)
		client_fault("%u descriptors after the close, %u before", b->fds, a->fds);
}

/* Value of "KEY:" in a file of /proc, as hexadecimal or octal text. */
static unsigned long long field(const char *path, const char *key, int base)
{
	char line[256];
	unsigned long long value = 0;
	bool found = false;
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, key, strlen(key));
		if (found)
			value = strtoull(line + strlen(key), NULL, base);
	}
	if (f)
		(void)fclose(f);
	if (!found)
		client_fault("%s has no %s", path, key);
	return value;
}

static bool inherited_fds[FDS_MAX];

static void remember_descriptors(void)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		inherited_fds[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void check_descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		char path[64];

		if (inherited_fds[fd] || fcntl(fd, F_GETFD) < 0)
			continue;
		n++;
		(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		if (!(field(path, "flags:", 8) & O_CLOEXEC))
			client_fault("descriptor %d survives exec", fd);
	}
	if (n < 3)
		client_fault("%u descriptors of the library: the test looks at the wrong ones", n);
}

/* Every thread but ours blocks all signals that can be, and has a name of its own. */
static void check_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long long all = ~0ull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1));
	struct dirent *e;
	unsigned int others = 0;

	while (d && (e = readdir(d))) {
		char path[300], name[64] = "";
		FILE *f;

		if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == getpid())
			continue;
		others++;
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		/* 32 and 33 are the C library's own. */
		if ((field(path, "SigBlk:", 16) | 3ull << 31) != (all | 3ull << 31))
			client_fault("thread %s does not block all signals: %llx", e->d_name,
				     field(path, "SigBlk:", 16));
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (!f || !fgets(name, sizeof(name), f) || strcmp(name, "peerpath-soft\n") != 0)
			client_fault("a thread is called %s", name);
		(void)fclose(f);
	}
	if (d)
		closedir(d);
	if (others != 1)
		client_fault("%u threads beside the program's", others);
}

/* ── fork ── */

static pid_t start(void (*child)(struct client *), struct client *l)
{
	pid_t pid = fork();

	if (pid < 0)
		client_fault("fork: %s", strerror(errno));
	if (pid == 0) {
		(void)alarm(3 * CLIENT_WAIT_S);
		child(l);
#if defined(__SANITIZE_ADDRESS__)
		_exit(0); /* its look for leaks speaks of threads that a child has not */
#else
		exit(0); /* handlers that the library had left behind would run */
#endif
	}
	return pid;
}

static void finish(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		client_fault("%s: status %#x", what, (unsigned int)status);
}

static void child_leaves(struct client *l)
{
	(void)l;
}

/* What was inherited answers with errors, at once; and closing it touches nothing of the parent. */
static void child_uses_inherited(struct client *l)
{
	struct ibv_wc wc;

	if (loop_post(l, 0xee) == 0)
		client_fault("a child posts to its parent's queue pair");
	/* One that lies there is the parent's, and so may be the lock that guards it. */
	if (ibv_poll_cq(l->cq, 1, &wc) != -EIO)
		client_fault("a child polls its parent's completion queue");
	if (ibv_alloc_pd(l->context))
		client_fault("a child makes objects of its parent's device");
	(void)ibv_destroy_qp(l->qp);
	(void)ibv_close_device(l->context);
}

static void child_opens_own(struct client *inherited)
{
	struct client own;

	(void)inherited;
	loop_open(&own);
	loop_move(&own);
	client_close(&own);
}

static void child_execs(struct client *l)
{
	(void)l;
	(void)execl("/bin/true", "true", (char *)NULL);
	client_fault("exec: %s", strerror(errno));
}

static void fork_while_traffic_runs(struct client *l)
{
	static void (*const children[])(struct client *) = {child_leaves, child_uses_inherited,
							    child_opens_own, child_execs};

	for (int i = 0; i < CHILDREN; i++) {
		for (unsigned int k = 0; k < sizeof(children) / sizeof(children[0]); k++) {
			unsigned char with = (unsigned char)(1 + i * 4 + (int)k);
			pid_t pid;

			/* Under way at the moment of the fork. */
			if (loop_post(l, with))
				client_fault("ibv_post_send");
			pid = start(children[k], l);
			loop_finish(l, with);
			loop_move(l);
			finish(pid, "a child");
		}
	}
	loop_move(l);
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
	puts("skipped: the sanitizer has threads of its own, and refuses new ones after fork()");
	return 77;
#endif
	int out[2];
	struct likeness before, during, after;
	struct client l;
	char said[256];
	ssize_t n;

	/* What anybody prints goes into a pipe that must stay empty. */
	client_report = fdopen(dup(STDERR_FILENO), "w");
	if (!client_report || pipe2(out, O_NONBLOCK) || dup2(out[1], STDOUT_FILENO) < 0 ||
	    dup2(out[1], STDERR_FILENO) < 0)
		return 1;
	(void)close(out[1]);
	(void)fcntl(out[0], F_SETFD, FD_CLOEXEC);
	(void)alarm(4 * CLIENT_WAIT_S);
	remember_descriptors();
	look(&before);
	loop_open(&l);
	loop_move(&l);
	look(&during);
	compare(&before, &during, 1);
	check_descriptors();
	check_threads();
	fork_while_traffic_runs(&l);
	client_close(&l);
	look(&after);
	compare(&before, &after, 0);
	n = read(out[0], said, sizeof(said) - 1);
	if (n > 0)
		client_fault("printed: %.*s", (int)n, said);
	(void)fprintf(client_report,
		      "nothing printed, no signal touched; %d forks of %d kinds under traffic\n",
		      CHILDREN * 4, 4);
	return 0;
}
