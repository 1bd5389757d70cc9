/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of one run of a workload, out of what it prints and what its endpoint says. The text may
 * be anything: cut, binary, endless; what cannot be read as a figure is none.
 */
#ifndef PP_JUDGE_METRIC_H
#define PP_JUDGE_METRIC_H

#include "judge/canary.h"

enum {
	PP_METRIC_VALUES = 1 << 20, /* of one metric in one run; more make it none */
	PP_METRIC_LINE = 64 << 10,  /* bytes of a longer line are passed over */
};

struct pp_metric_value {
	double value;  /* NaN: none */
	size_t seen;   /* figures that it is made of */
	char why[160]; /* none: why; else "" */
};

struct pp_metric_reader;

/* For the metrics of @c, which is borrowed. -ENOMEM. */
int pp_metric_reader_new(const struct pp_canary *c, struct pp_metric_reader **ret);
struct pp_metric_reader *pp_metric_reader_free(struct pp_metric_reader *r); /* returns NULL */

/* What the command printed, in pieces of any size; @since its start. */
void pp_metric_reader_push(struct pp_metric_reader *r, const char *bytes, size_t len, pp_ns since);
/* One answer of the endpoint, whole: Prometheus' text or OpenMetrics. */
void pp_metric_reader_scrape(struct pp_metric_reader *r, const char *text, size_t len);
/* What the run has cost the host; before its end. NaN: not known. */
void pp_metric_reader_host(struct pp_metric_reader *r, enum pp_host_word what, double value);
/* The command has ended, @took after its start. @ret: one for each metric of the file. */
void pp_metric_reader_end(struct pp_metric_reader *r, pp_ns took, struct pp_metric_value *ret);

#endif
