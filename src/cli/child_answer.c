/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child_answer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "base/banned.h"

enum { ROUND_MS = 100 };

void pp_child_answer(int fd, pid_t pid, struct pp_buf *text)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool told = false;
	char part[64 << 10];
	ssize_t n = 1;

	while (n) {
		if (pp_interrupted() && !told) {
			(void)kill(pid, SIGTERM);
			told = true;
		}
		/* In rounds: a signal between a look at it and poll() would go unseen. */
		if (poll(&p, 1, ROUND_MS) <= 0)
			continue;
		n = read(fd, part, sizeof(part));
		if (n > 0)
			pp_buf_add(text, part, (size_t)n);
		else if (n < 0 && errno != EINTR)
			break;
	}
}

int pp_child_answer_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
