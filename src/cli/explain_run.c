/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain_run.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/banned.h"

enum { STAGES = 4, WORDS = 512, WORD = 256, DEADLINE_MS = 5000 };

/* Programs that read, and what their arguments must (not) be to do nothing else. */
static const struct {
	const char *name;
	const char *first; /* words of which the first argument is one; NULL: any or none */
	const char
		*without; /* patterns that no argument may fit: options take values glued to them */
	bool bare;	  /* no argument is fine too */
} programs[] = {
	{"cat", NULL, NULL},
	{"df", NULL, NULL},
	{"dkms", "status", NULL},
	{"dmesg", "", NULL, true}, /* its options clear the log and set its level */
	{"env", "", NULL, true},   /* with arguments it runs a program */
	{"ethtool", "-S -i -a -k", NULL},
	{"getconf", NULL, NULL},
	{"grep", NULL, "-f* --f*"},
	{"head", NULL, NULL},
	{"ibdev2netdev", "", NULL, true},
	{"ibv_devices", "", NULL, true},
	{"ibv_devinfo", NULL, NULL},
	{"ip", "link addr route -br -d", "set add del delete flush change replace exec -b -ba*"},
	{"ldconfig", "-p", NULL},
	{"ls", NULL, NULL},
	{"lsmod", "", NULL, true},
	{"lspci", NULL, "-H* -M -q -Q -i* -F* -A* -O*"},
	{"modinfo", NULL, NULL},
	{"nvidia-smi", "-q -L topo", "-f* -x* --*"},
	{"rdma", "link resource statistic", "set add del delete bind unbind mode"},
	{"sort", NULL, "-*o* -*T* --*"},
	{"ss", "-ltn", NULL},
	{"uname", NULL, NULL},
	{"uniq", "-c", NULL, true},
	{"wc", NULL, NULL},
};

/* Words that a person has to fill in. */
static const char *const placeholders[] = {"NETDEV", "BDF",  "LOGS", "LOG",    "DEV",	  "PID",
					   "POD",    "NODE", "FILE", "MODULE", "ADDRESS", "HOST"};

struct pipeline {
	char words[STAGES][WORDS][WORD];
	char *argv[STAGES][WORDS + 1];
	unsigned int n[STAGES], stages;
	const char *why;
};

static bool one_of(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

static bool add_word(struct pipeline *p, const char *word)
{
	unsigned int s = p->stages;

	if (p->n[s] == WORDS || strlen(word) >= WORD) {
		p->why = "it is too long";
		return false;
	}
	memcpy(p->words[s][p->n[s]], word, strlen(word) + 1);
	p->argv[s][p->n[s]] = p->words[s][p->n[s]];
	p->argv[s][++p->n[s]] = NULL;
	return true;
}

/* Paths that a pattern stands for; the pattern itself when there are none, as a shell does. */
static bool add_glob(struct pipeline *p, const char *pattern)
{
	glob_t found;
	bool fine = true;

	if (glob(pattern, GLOB_NOCHECK, NULL, &found))
		return add_word(p, pattern);
	for (size_t i = 0; fine && i < found.gl_pathc && i + p->n[p->stages] + 1 < WORDS; i++)
		fine = add_word(p, found.gl_pathv[i]);
	globfree(&found);
	return fine;
}

/* The next word at *at, without its quotes. */
static bool take_word(struct pipeline *p, const char **at)
{
	bool quoted = false, pattern = false, was_quoted = false;
	char word[WORD];
	size_t n = 0;

	for (; **at && (quoted || !strchr(" |", **at)); (*at)++) {
		if (**at == '\'') {
			quoted = !quoted;
			was_quoted = true;
			continue;
		}
		if (!quoted && strchr(";&<>`$()\"\\\n", **at)) {
			p->why = "it needs a shell";
			return false;
		}
		pattern |= !quoted && **at == '*';
		if (n + 1 == sizeof(word)) {
			p->why = "it is too long";
			return false;
		}
		word[n++] = **at;
	}
	word[n] = '\0';
	for (size_t i = 0; !was_quoted && i < PP_ARRAY_LEN(placeholders); i++) {
		if (strcmp(word, placeholders[i]) != 0)
			continue;
		p->why = "something has to be filled in";
		return false;
	}
	return pattern ? add_glob(p, word) : add_word(p, word);
}

static bool split(struct pipeline *p, const char *command)
{
	for (const char *at = command; *at;) {
		if (*at == ' ') {
			at++;
		} else if (*at == '|') {
			at++;
			if (!p->n[p->stages] || ++p->stages == STAGES) {
				p->why = "it needs a shell";
				return false;
			}
		} else if (!take_word(p, &at)) {
			return false;
		}
	}
	p->stages++;
	return p->n[p->stages - 1] > 0;
}

static bool fits_one(const char *patterns, const char *word)
{
	char list[128], *at = list, *pattern;

	(void)snprintf(list, sizeof(list), "%s", patterns);
	while ((pattern = strsep(&at, " ")))
		if (!fnmatch(pattern, word, 0))
			return true;
	return false;
}

static bool stage_reads(const struct pipeline *p, unsigned int s)
{
	const char *first = p->n[s] > 1 ? p->words[s][1] : NULL;

	for (size_t i = 0; i < PP_ARRAY_LEN(programs); i++) {
		if (strcmp(programs[i].name, p->words[s][0]) != 0)
			continue;
		if (programs[i].first &&
		    (first ? !one_of(programs[i].first, first) : !programs[i].bare))
			return false;
		for (unsigned int k = 1; programs[i].without && k < p->n[s]; k++)
			if (fits_one(programs[i].without, p->words[s][k]))
				return false;
		return true;
	}
	return false;
}

static bool prepare(struct pipeline *p, const char *command)
{
	memset(p, 0, sizeof(*p));
	if (!split(p, command)) {
		p->why = p->why ? p->why : "it is empty";
		return false;
	}
	for (unsigned int s = 0; s < p->stages; s++) {
		if (stage_reads(p, s))
			continue;
		p->why = "it is not known to be read-only and quick";
		return false;
	}
	return true;
}

const char *pp_run_refuses(const char *command)
{
	struct pipeline *PP_AUTO_FREE p = malloc(sizeof(*p));

	if (!p)
		return "out of memory";
	return prepare(p, command) ? NULL : p->why;
}

/* In the child: never returns. The search path is fixed: what runs is the system's own. */
static void become(char *const argv[], int in, int out)
{
	static const char *const places[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[WORD + 16];

	if (in < 0)
		in = null;
	if (null < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0)
		_exit(126);
	for (size_t i = 0; i < PP_ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", places[i], argv[0]);
		execv(path, argv);
	}
	_exit(127);
}

/* All stages in one process group; returns the descriptor of the last one's output. */
static int start(struct pipeline *p, pid_t pids[STAGES])
{
	int in = -1, ends[2];

	for (unsigned int s = 0; s < p->stages; s++) {
		if (pipe2(ends, O_CLOEXEC))
			break;
		pids[s] = fork();
		if (!pids[s]) {
			(void)setpgid(0, s ? pids[0] : 0);
			become(p->argv[s], in, ends[1]);
		}
		if (pids[s] > 0)
			(void)setpgid(pids[s], pids[0]);
		(void)close(ends[1]);
		if (in >= 0)
			(void)close(in);
		in = ends[0];
		if (pids[s] < 0)
			break;
	}
	return in;
}

static void keep(struct pp_run *ret, size_t *n, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];

		if (*n + 1 == sizeof(ret->output)) {
			ret->cut = true;
			return;
		}
		ret->output[(*n)++] = c == '\n' || (c >= ' ' && c < 127) ? c
				      : isspace((unsigned char)c)	 ? ' '
									 : '?';
	}
}

/* False when the deadline passed. */
static bool collect(int fd, struct pp_run *ret)
{
	pp_ns end = pp_clock_monotonic() + DEADLINE_MS * PP_MILLISECOND;
	struct pollfd poll_one = {fd, POLLIN, 0};
	char part[1024];
	size_t n = 0;
	ssize_t got;

	for (;;) {
		pp_ns left = end - pp_clock_monotonic();

		if (left <= 0 || poll(&poll_one, 1, (int)(left / PP_MILLISECOND) + 1) == 0)
			return false;
		got = read(fd, part, sizeof(part));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		keep(ret, &n, part, (size_t)got);
		if (ret->cut)
			break;
	}
	ret->output[n] = '\0';
	return true;
}

/* A program that is stuck in a driver cannot be reaped: it is left behind, not waited for. */
static void finish(const struct pipeline *p, const pid_t pids[STAGES], bool timely,
		   struct pp_run *ret)
{
	const struct timespec pause = {0, 10 * PP_MILLISECOND};
	int status = 0;

	if ((!timely || ret->cut) && pids[0] > 0)
		(void)kill(-pids[0], SIGKILL);
	for (unsigned int s = 0; s < p->stages; s++) {
		pid_t got = 0;

		for (int i = 0;
		     pids[s] > 0 && i < 100 && !(got = waitpid(pids[s], &status, WNOHANG)); i++)
			(void)nanosleep(&pause, NULL);
		if (s + 1 == p->stages)
			ret->status = got > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
}

void pp_run(const char *command, struct pp_run *ret)
{
	struct pipeline *PP_AUTO_FREE p = malloc(sizeof(*p));
	pid_t pids[STAGES] = {0};
	bool timely;
	int fd;

	memset(ret, 0, sizeof(*ret));
	ret->why_not = "out of memory";
	if (!p)
		return;
	if (!prepare(p, command)) {
		ret->why_not = p->why;
		return;
	}
	fd = start(p, pids);
	timely = fd >= 0 && collect(fd, ret);
	if (fd >= 0)
		(void)close(fd);
	finish(p, pids, timely, ret);
	ret->ran = timely && (ret->cut || ret->status != 127);
	ret->why_not = ret->ran	 ? NULL
		       : !timely ? "it did not end within 5 s"
				 : "the program is not installed here";
}
