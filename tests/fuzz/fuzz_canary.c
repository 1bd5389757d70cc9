/* SPDX-License-Identifier: Apache-2.0 */
/* A canary file, and behind a line of dashes what a command prints and an endpoint says. */
#include "fuzz.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "judge/metric.h"

static void run(const struct pp_canary *c, const char *text, size_t len)
{
	struct pp_metric_value v[PP_CANARY_METRICS];
	struct pp_metric_reader *r;

	if (pp_metric_reader_new(c, &r))
		return;
	for (size_t at = 0; at < len; at += 7)
		pp_metric_reader_push(r, text + at, len - at < 7 ? len - at : 7, (pp_ns)at);
	pp_metric_reader_scrape(r, text, len);
	pp_metric_reader_host(r, PP_HOST_CPU_SECONDS, 1);
	pp_metric_reader_end(r, PP_SECOND, v);
	for (size_t i = 0; i < c->n_metrics; i++)
		assert(isfinite(v[i].value) != (v[i].why[0] != '\0'));
	pp_metric_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *rest = memmem(text, size, "\n----\n", 6);
	size_t len = rest ? (size_t)(rest - text) + 1 : size;
	struct pp_canary c;
	struct pp_error err = {0};
	int r = pp_canary_parse("seed", text, len, &c, &err);

	assert(!r || (r < 0 && err.code == r && err.text[0]));
	if (r)
		return 0;
	assert(c.n_metrics && c.workload);
	/* A pattern of the user's own may take as long as it likes: only short ones are tried. */
	for (size_t i = 0; i < c.n_metrics; i++)
		if (strlen(c.metric[i].what) > 24 || strpbrk(c.metric[i].what, "{\\"))
			rest = NULL;
	if (rest && size - len < 2048)
		run(&c, rest + 6, size - len - 5);
	pp_canary_done(&c);
	return 0;
}
