/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command writes, to where it would have gone and to a copy. A process of its own: a
 * terminal that is stopped, or a slow reader, holds up the command as it always would, and nobody
 * else.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "nccl/run_command.h"
#include "base/banned.h"

enum { PIECE = 64 << 10, TAIL = 4 << 20 };

struct copy {
	const struct pp_nccl_tee *t;
	int head, tail;
	uint64_t in_head, in_tail;
	unsigned int which; /* of the two files of the end */
};

static int create(const struct copy *c, unsigned int number)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), number ? "%s.%u" : "%s", c->t->copy, number);
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* The end: two files take turns, so that the last TAIL bytes at least are in them. */
static void keep_end(struct copy *c, const char *bytes, size_t len)
{
	if (c->tail < 0 || c->in_tail + len > TAIL) {
		if (c->tail >= 0)
			(void)close(c->tail);
		c->which = c->which % 2 + 1;
		c->tail = create(c, c->which);
		c->in_tail = 0;
	}
	if (c->tail >= 0)
		(void)pp_fd_write(c->tail, bytes, len);
	c->in_tail += len;
}

static void keep(struct copy *c, const char *bytes, size_t len)
{
	uint64_t room = c->t->most - c->in_head;
	size_t part = len < room ? len : (size_t)room;

	if (c->head >= 0 && part)
		(void)pp_fd_write(c->head, bytes, part);
	c->in_head += part;
	if (len > part)
		keep_end(c, bytes + part, len - part);
}

PP_NORETURN void pp_nccl_tee_run(const struct pp_nccl_tee *t, pid_t parent)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTOU};
	static char piece[PIECE];
	struct copy c = {.t = t, .tail = -1};
	ssize_t n;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	/* A reader that went away is the command's to know: its pipe breaks with ours. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	c.head = create(&c, 0);
	while ((n = read(t->in, piece, sizeof(piece)))) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || pp_fd_write(t->out, piece, (size_t)n))
			_exit(1);
		keep(&c, piece, (size_t)n);
	}
	_exit(0);
}
