/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/banned.h"

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t stop, reload;

static const int watched[] = {SIGTERM, SIGINT, SIGHUP};

static void on_signal(int number)
{
	if (number == SIGHUP)
		reload = 1;
	else
		stop = 1;
}

void pp_loop_catch(void)
{
	/* Restarted calls: a read that a signal cut short would be a look that could not be had. */
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < PP_ARRAY_LEN(watched); i++)
		(void)sigaction(watched[i], &act, NULL);
}

bool pp_loop_stopped(void)
{
	return stop != 0;
}

/*
 * Until @until, a signal, or a scrape. Signals are held back only between the look at the flags and
 * the sleep, where one would be missed; not in a round, whose helpers would inherit that.
 */
static void sleep_until(const struct pp_loop *loop, int64_t until)
{
	struct pollfd p = {.fd = loop->exporter ? pp_exporter_fd(loop->exporter) : -1,
			   .events = POLLIN};
	int wait_ms = loop->exporter ? pp_exporter_wait_ms(loop->exporter) : -1;
	sigset_t held, before;
	int64_t left = until - pp_clock_monotonic();
	struct timespec t;

	if (loop->notify->watchdog && left > loop->notify->watchdog / 2)
		left = loop->notify->watchdog / 2;
	if (wait_ms >= 0 && left > wait_ms * PP_MILLISECOND)
		left = wait_ms * PP_MILLISECOND;
	if (left < 0)
		left = 0;
	t = (struct timespec){.tv_sec = left / PP_SECOND, .tv_nsec = left % PP_SECOND};
	(void)sigemptyset(&held);
	for (size_t i = 0; i < PP_ARRAY_LEN(watched); i++)
		(void)sigaddset(&held, watched[i]);
	(void)sigprocmask(SIG_BLOCK, &held, &before);
	if (!stop && !reload)
		(void)ppoll(&p, 1, &t, &before);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (loop->exporter)
		pp_exporter_run(loop->exporter);
}

static void tell_status(const struct pp_loop *loop, char last[256])
{
	char status[200], text[256];

	(void)snprintf(text, sizeof(text), "STATUS=%s",
		       pp_monitor_status(loop->monitor, status, sizeof(status)));
	if (!strcmp(text, last))
		return;
	(void)snprintf(last, 256, "%s", text);
	pp_notify_send(loop->notify, text);
}

/* A policy with a fault leaves the old one at work: who watches a node does not stop for a typo. */
static void read_anew(const struct pp_loop *loop)
{
	struct pp_error err = {0};
	char text[256];

	reload = 0;
	/* The manager wants to know when it began: RELOADING=1 with the monotonic time. */
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
		       (long long)(pp_clock_monotonic() / 1000));
	pp_notify_send(loop->notify, text);
	if (pp_monitor_reload(loop->monitor, &err)) {
		(void)pp_error_prefix(&err, "not read anew");
		loop->say(loop->ctx, err.text);
	} else {
		loop->say(loop->ctx, "policy and baseline are read anew");
	}
	pp_notify_send(loop->notify, "READY=1");
}

int pp_loop_run(const struct pp_loop *loop, struct pp_error *err)
{
	int64_t end = loop->for_ns ? pp_clock_monotonic() + loop->for_ns : INT64_MAX;
	char last[256] = "";
	bool ready = false;
	int64_t next;
	int r = 0;

	while (!stop) {
		if (reload)
			read_anew(loop);
		r = pp_monitor_round(loop->monitor, err);
		if (r)
			break;
		if (loop->after)
			loop->after(loop->ctx, loop->monitor);
		if (!ready)
			pp_notify_send(loop->notify, "READY=1");
		ready = true;
		tell_status(loop, last);
		if (loop->once || pp_clock_monotonic() >= end)
			break;
		next = pp_monitor_next(loop->monitor);
		if (next > end)
			next = end;
		do {
			pp_notify_alive(loop->notify, pp_clock_monotonic());
			sleep_until(loop, next);
		} while (!stop && !reload && pp_clock_monotonic() < next);
	}
	pp_notify_send(loop->notify, "STOPPING=1");
	return r;
}
