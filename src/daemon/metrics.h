/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_metrics: a text of metrics, in Prometheus' format 0.0.4 or OpenMetrics 1.0, from the
 * same calls. One family after the other, each once; samples of a family follow it.
 *
 * A family is named without "_total" and "_info": both endings come from its type.
 */
#ifndef PP_DAEMON_METRICS_H
#define PP_DAEMON_METRICS_H

#include <stddef.h>

#include "base/buf.h"
#include "daemon/state.h"

enum pp_metrics_format { PP_METRICS_PROMETHEUS, PP_METRICS_OPENMETRICS, PP_METRICS_FORMATS };

/* Of the answer's head. */
const char *pp_metrics_content_type(enum pp_metrics_format f);

/* Which one an HTTP client prefers, by its Accept header; NULL: it has none. */
enum pp_metrics_format pp_metrics_negotiate(const char *accept);

enum pp_metrics_type { PP_METRICS_GAUGE, PP_METRICS_COUNTER, PP_METRICS_INFO };

struct pp_metrics {
	struct pp_buf *to; /* its `failed` is the text's */
	enum pp_metrics_format format;
	const char *name; /* of the open family */
	enum pp_metrics_type type;
};

struct pp_metrics_label {
	const char *name, *value; /* value: UTF-8, or it is made so */
};

/* @unit: "" none; else the name ends with it. */
void pp_metrics_family(struct pp_metrics *m, const char *name, enum pp_metrics_type type,
		       const char *unit, const char *help);
void pp_metrics_sample(struct pp_metrics *m, const struct pp_metrics_label *labels, size_t n,
		       double value);
/* The last line, where the format has one. */
void pp_metrics_end(struct pp_metrics *m);

/* All that the monitor tells of @s. The size is bounded by @to's. */
void pp_metrics_write(const struct pp_state *s, enum pp_metrics_format format, struct pp_buf *to);

/*
 * For node_exporter's textfile collector: under another name beside it, then renamed; mode 0644.
 * Errors as open(2), write(2), rename(2).
 */
int pp_metrics_textfile(const struct pp_state *s, const char *file, struct pp_error *err);

#endif
