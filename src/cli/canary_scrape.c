/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/canary_scrape.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

extern char **environ;

enum { ANSWER = 16 << 20, PART = 64 << 10 };
static const pp_ns EACH = PP_SECOND;

void pp_canary_scrape_open(struct pp_canary_scrape *ret, const char *url)
{
	*ret = (struct pp_canary_scrape){.url = url, .from = -1, .text = PP_BUF(ANSWER)};
}

static void start(struct pp_canary_scrape *s)
{
	char *const argv[] = {
		"curl", "-qsf", "--max-time", "5", "--max-redirs", "0", (char *)(uintptr_t)s->url,
		NULL};
	posix_spawn_file_actions_t actions;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* our end alone */
	if (!posix_spawn_file_actions_init(&actions)) {
		if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) ||
		    posix_spawn_file_actions_adddup2(&actions, ends[1], 1) ||
		    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) ||
		    posix_spawnp(&s->pid, "curl", &actions, NULL, argv, environ))
			s->pid = 0;
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)close(ends[1]);
	s->from = ends[0];
}

/* An answer counts when it came whole. */
static void take(struct pp_canary_scrape *s, struct pp_metric_reader *r)
{
	int status;

	if (s->from >= 0)
		(void)close(s->from);
	s->from = -1;
	if (s->pid && waitpid(s->pid, &status, 0) == s->pid && WIFEXITED(status) &&
	    !WEXITSTATUS(status) && !s->text.failed && r)
		pp_metric_reader_scrape(r, pp_buf_text(&s->text), s->text.len);
	s->pid = 0;
	pp_buf_done(&s->text);
	s->text = PP_BUF(ANSWER);
}

void pp_canary_scrape_step(struct pp_canary_scrape *s, struct pp_metric_reader *r)
{
	char part[PART];
	ssize_t n;

	if (!s->url)
		return;
	if (s->from < 0 && pp_clock_monotonic() >= s->next) {
		s->next = pp_clock_monotonic() + EACH;
		start(s);
	}
	while (s->from >= 0 && (n = read(s->from, part, sizeof(part))) >= 0) {
		if (!n) {
			take(s, r);
			return;
		}
		pp_buf_add(&s->text, part, (size_t)n);
	}
}

void pp_canary_scrape_done(struct pp_canary_scrape *s)
{
	if (s->pid)
		(void)kill(s->pid, SIGKILL);
	take(s, NULL);
	pp_buf_done(&s->text);
}
