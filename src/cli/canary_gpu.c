/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/gpu_watch.h"
#include "cli/canary.h"
#include "base/banned.h"

enum { GPUS = 64, LOOK_EACH_MS = 100, ANSWER = 16 << 10 };
static const pp_ns PATIENCE = 3 * PP_SECOND;

static size_t gpus_of(const struct pp_node *node, const char *bdf[GPUS])
{
	struct pp_object *o = NULL;
	size_t n = 0;

	while (n < GPUS && (o = pp_object_next(&node->facts, PP_GPU, o)))
		if (!o->simulated)
			bdf[n++] = o->id;
	return n;
}

static PP_NORETURN void watch(const char *const *bdf, size_t n, int stop, int answer)
{
	struct pp_gpu_watch *w[GPUS] = {NULL};
	struct pp_buf text = PP_BUF(ANSWER);
	struct pp_json j = PP_JSON(&text, false);
	struct pollfd p = {.fd = stop, .events = POLLIN};

	for (size_t i = 0; i < n; i++)
		w[i] = pp_gpu_watch_new(bdf[i]);
	do {
		for (size_t i = 0; i < n; i++)
			if (w[i])
				pp_gpu_watch_sample(w[i]);
	} while (!poll(&p, 1, LOOK_EACH_MS));
	pp_json_array(&j, NULL);
	for (size_t i = 0; i < n; i++) {
		pp_json_object(&j, NULL);
		pp_json_str(&j, "bdf", bdf[i]);
		pp_gpu_watch_write(&j, w[i]);
		pp_json_end_object(&j);
	}
	pp_json_end_array(&j);
	(void)!write(answer, pp_buf_text(&text), text.len);
	_exit(0);
}

void pp_canary_gpus_start(struct pp_canary_gpus *ret, const struct pp_node *node)
{
	const char *bdf[GPUS];
	size_t n = gpus_of(node, bdf);
	int stop[2], answer[2];
	pid_t parent = getpid(), pid;

	*ret = (struct pp_canary_gpus){.n = n, .stop = -1, .answer = -1};
	if (!n || pipe2(stop, O_CLOEXEC))
		return;
	pid = pipe2(answer, O_CLOEXEC) ? -1 : fork();
	if (!pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGINT, SIG_IGN);
		(void)close(stop[1]);
		if (getppid() == parent)
			watch(bdf, n, stop[0], answer[1]);
		_exit(1);
	}
	(void)close(stop[0]);
	if (pid < 0) {
		(void)close(stop[1]);
		return;
	}
	(void)close(answer[1]);
	*ret = (struct pp_canary_gpus){n, pid, stop[1], answer[0]};
}

/* The answer whole, or as much as came in time. */
static size_t read_answer(int fd, char *text, size_t size)
{
	pp_ns until = pp_clock_monotonic() + PATIENCE;
	size_t len = 0;

	while (len < size - 1 && pp_clock_monotonic() < until) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, 100) <= 0)
			continue;
		n = read(fd, text + len, size - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return len;
}

/* One that gives no clock gave no reasons either: not known is not "none". */
static void judge(const json_t *gpu, char *ret, size_t size)
{
	const char *bdf = json_string_value(json_object_get(gpu, "bdf"));
	const char *held = json_string_value(json_object_get(gpu, "throttle"));

	if (held)
		(void)snprintf(ret, size, "the GPU %s was held back: %s", bdf, held);
	else if (!json_object_get(gpu, "gpu_mhz"))
		(void)snprintf(ret, size,
			       "whether the GPU %s was held back is not known: NVML gives no clock",
			       bdf);
}

void pp_canary_gpus_end(struct pp_canary_gpus *g, char *ret, size_t size)
{
	char text[ANSWER] = "";
	json_t *list = NULL;

	*ret = '\0';
	if (!g->n)
		return;
	if (g->pid) {
		(void)close(g->stop);
		list = json_loadb(text, read_answer(g->answer, text, sizeof(text)), 0, NULL);
		(void)close(g->answer);
		/* Stuck in a driver it takes no signal, and is not waited for. */
		(void)kill(g->pid, SIGKILL);
		(void)waitpid(g->pid, NULL, WNOHANG);
		g->pid = 0;
	}
	for (size_t i = 0; i < json_array_size(list) && !*ret; i++)
		judge(json_array_get(list, i), ret, size);
	if (json_array_size(list) != g->n && !*ret)
		(void)snprintf(ret, size,
			       "whether a GPU was held back is not known: NVML did not answer");
	json_decref(list);
}
