/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made state as metrics, for the tests beside it.
 *
 *   metrics print prometheus|openmetrics     to standard output
 *   metrics textfile FILE
 *   metrics serve ADDRESS:PORT ALARMS        until standard input ends; ALARMS: a file with the
 *                                            number of alarms that are open now
 *
 * The first line of `serve` is the port.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "daemon/exporter.h"

static const int64_t AT = 1790000000 * PP_SECOND;

/* Names and values as hostile as a log and a file of others can make them. */
static const struct pp_look looks[] = {
	{PP_SIGNAL_FINGERPRINT, "kernel.release", "6.8.0-60-generic", 0, NULL, NULL, NULL},
	{PP_SIGNAL_FINGERPRINT, "nvidia.version", "580.95.05", 0, NULL, NULL, NULL},
	{PP_SIGNAL_FLAVOUR, "node", "open", 0, NULL, NULL, NULL},
	{PP_SIGNAL_PEERMEM, "node", NULL, 0, "permission denied", NULL, NULL},
	{PP_SIGNAL_RETRANSMITS, "0000:19:00.0 port 1", NULL, 5, NULL, NULL, NULL},
	{PP_SIGNAL_RETRANSMITS, "0000:2b:00.0 port 1", NULL, 9007199254740992.0, NULL, NULL, NULL},
	{PP_SIGNAL_RETRANSMITS, "rxe0 port 1", NULL, 0, "gone", NULL, NULL},
	{PP_SIGNAL_PAUSES, "0000:19:00.0 port 1 interface", NULL, 40, NULL, NULL, NULL},
	{PP_SIGNAL_LINK_FLAPS, "0000:19:00.0 port 1", NULL, 1, NULL, NULL, NULL},
	{PP_SIGNAL_BAR1_FREE, "0000:18:00.0", NULL, 137437904896.0, NULL, NULL, NULL},
	{PP_SIGNAL_HOST_PRESSURE, "memory", NULL, 0.125, NULL, NULL, NULL},
	{PP_SIGNAL_SLO, "step_seconds{rank=\"0\",dir=\"C:\\x\"}", NULL, 1.5, NULL, NULL, NULL},
	{PP_SIGNAL_SLO, "not utf-8 \xff\xc3 \xed\xa0\x80 but \xc3\xa4", NULL, 2, NULL, NULL, NULL},
	{PP_SIGNAL_REGISTRATION, "pid 7 started 9", "dmabuf", 0, NULL, NULL, NULL},
	{PP_SIGNAL_REGISTRATION, "pid 8 started 9", "mixed: dmabuf, peermem", 0, NULL, NULL, NULL},
	{PP_SIGNAL_REGISTRATION, "node", NULL, 0, "not asked", NULL, NULL},
};

static const struct pp_state_check checks[] = {
	{"identity", PP_PASS, false, 1789990000 * PP_SECOND, 1500000000},
	{"memory", PP_UNKNOWN, true, 1789990001 * PP_SECOND, 0},
	{"library", PP_UNKNOWN, false, 0, 0}, /* when is not known */
};

static struct pp_state state_of(struct pp_signal signals[16], size_t alarms)
{
	size_t n = 0;

	signals[n++] = (struct pp_signal){.kind = PP_SIGNAL_ACS,
					  .level = PP_LEVEL_EARLY,
					  .since_ns = AT,
					  .last_ns = AT,
					  .ended_ns = AT + 1};
	for (size_t i = 0; i < alarms && n < 16; i++)
		signals[n++] = (struct pp_signal){.kind = PP_SIGNAL_RETRANSMITS,
						  .level = PP_LEVEL_ALARM,
						  .since_ns = AT,
						  .last_ns = AT};
	return (struct pp_state){.node = "gpu-\"1\"\n\\",
				 .version = "1.2.3",
				 .baseline = "a-bundle",
				 .baseline_ns = AT,
				 .started_ns = AT,
				 .now_ns = AT + PP_SECOND,
				 .round_ns = AT + PP_SECOND / 2,
				 .period_ns = 5 * PP_SECOND,
				 .rounds = 17,
				 .checks = checks,
				 .n_checks = sizeof(checks) / sizeof(checks[0]),
				 .looks = looks,
				 .n_looks = sizeof(looks) / sizeof(looks[0]),
				 .signals = signals,
				 .n_signals = n};
}

static size_t alarms_of(const char *file)
{
	char text[32] = "";
	uint64_t n = 0;
	FILE *f = fopen(file, "r");

	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = '\0';
		(void)fclose(f);
	}
	text[strcspn(text, "\n")] = '\0';
	(void)pp_parse_u64(text, 0, 10, &n);
	return (size_t)n;
}

/* Without the file there is no page. */
static int page(void *ctx, enum pp_metrics_format format, struct pp_buf *to)
{
	struct pp_signal signals[16];
	struct pp_state s = state_of(signals, alarms_of(ctx));

	s.now_ns = s.round_ns = pp_clock_wall();
	if (!access(ctx, F_OK))
		pp_metrics_write(&s, format, to);
	return access(ctx, F_OK) ? -EIO : 0;
}

static int serve(const char *where, char *alarms)
{
	struct pp_exporter *e = NULL;
	struct pp_error err = {0};
	int r = pp_exporter_open(where, page, alarms, &e, &err);

	if (r) {
		fprintf(stderr, "metrics: %s\n", err.text);
		return 64;
	}
	printf("%u\n", pp_exporter_port(e));
	(void)fflush(stdout);
	for (;;) {
		struct pollfd p[] = {{.fd = pp_exporter_fd(e), .events = POLLIN},
				     {.fd = STDIN_FILENO, .events = POLLIN}};

		(void)poll(p, 2, pp_exporter_wait_ms(e));
		if (p[1].revents)
			break;
		pp_exporter_run(e);
	}
	(void)pp_exporter_close(e);
	return 0;
}

int main(int argc, char **argv)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_signal signals[16];
	struct pp_state s = state_of(signals, 2);
	struct pp_error err = {0};
	int r;

	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "textfile")) {
		r = pp_metrics_textfile(&s, argv[2], &err);
		if (r)
			fprintf(stderr, "metrics: %s\n", err.text);
		return r != 0;
	}
	if (argc != 3 || strcmp(argv[1], "print") != 0)
		return 64;
	pp_metrics_write(&s,
			 !strcmp(argv[2], "openmetrics") ? PP_METRICS_OPENMETRICS
							 : PP_METRICS_PROMETHEUS,
			 &text);
	(void)fputs(pp_buf_text(&text), stdout);
	return text.failed != 0;
}
