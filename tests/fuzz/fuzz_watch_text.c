/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that the monitor's watchers read, and what becomes of them in the exporter: whatever stands
 * in a look, each line of the page is a sample again.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loopback.h"
#include "daemon/metrics.h"
#include "daemon/samples.h"
#include "node/pressure.h"

static int take(void *ctx, const char *name, size_t len, size_t bare, double value)
{
	const char *const *text = ctx;

	(void)value;
	assert(name >= text[0] && name + len <= text[1]);
	assert(bare && bare <= len);
	return 0;
}

static void read_samples(const char *text, size_t len, size_t *odd)
{
	const char *const bounds[] = {text, text + len};

	(void)pp_samples_read(text, len, take, (void *)(uintptr_t)bounds, odd);
}

static void write_page(const char *text)
{
	const struct pp_look looks[] = {
		{PP_SIGNAL_SLO, text, NULL, 1.5, NULL, NULL, NULL},
		{PP_SIGNAL_RETRANSMITS, text, NULL, 7, NULL, NULL, NULL},
		{PP_SIGNAL_FINGERPRINT, "kernel.release", text, 0, NULL, NULL, NULL},
		{PP_SIGNAL_REGISTRATION, text, text, 0, NULL, NULL, NULL},
	};
	const struct pp_state_check check = {text, PP_FAIL, false, 1, 1};
	const struct pp_state s = {.node = text,
				   .version = text,
				   .baseline = text,
				   .checks = &check,
				   .n_checks = 1,
				   .looks = looks,
				   .n_looks = sizeof(looks) / sizeof(looks[0])};

	for (int f = 0; f < PP_METRICS_FORMATS; f++) {
		struct pp_buf PP_AUTO_BUF page = PP_BUF(16 << 20);
		size_t odd = 1;

		pp_metrics_write(&s, (enum pp_metrics_format)f, &page);
		assert(!page.failed);
		if (strlen(text) < 300)
			read_samples(pp_buf_text(&page), page.len, &odd);
		assert(strlen(text) >= 300 || !odd);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size);
	struct pp_processor_time t = {0};
	struct pp_error err = {0};
	struct pp_loopback l;
	size_t body = 0, odd;
	double seconds = 0;

	if (!text)
		return 0;
	read_samples((const char *)data, size, &odd);
	if (!pp_processor_time_parse(text, &t))
		assert(t.busy <= t.all);
	if (!pp_pressure_parse(text, &seconds))
		assert(seconds >= 0);
	(void)pp_metrics_negotiate(text);
	if (!pp_loopback_parse(text, &l, &err))
		assert(l.path[0] == '/' && l.port && l.host[0]);
	err = (struct pp_error){0};
	if (!pp_loopback_answer((const char *)data, size, &body, &err))
		assert(body <= size);
	write_page(text);
	free(text);
	return 0;
}
