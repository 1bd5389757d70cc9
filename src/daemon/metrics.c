/* SPDX-License-Identifier: Apache-2.0 */
/*
 * https://prometheus.io/docs/instrumenting/exposition_formats/ and the OpenMetrics 1.0
 * specification. What differs here: OpenMetrics names the family of a counter without "_total",
 * has types of its own for infos, UNIT lines, escaped quotes in help texts, and "# EOF".
 */
#include "daemon/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/utf8.h"
#include "base/banned.h"

const char *pp_metrics_content_type(enum pp_metrics_format f)
{
	return f == PP_METRICS_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* The quality of one media range, its parameters behind it; 1 without a q. -1: cannot be read. */
static double quality(const char *range, size_t len)
{
	const char *end = range + len;

	for (const char *at = memchr(range, ';', len); at && at < end;
	     at = memchr(at + 1, ';', (size_t)(end - at - 1))) {
		const char *p = at + 1 + strspn(at + 1, " \t");
		double q;
		char *stop;

		if (p + 2 >= end || strncasecmp(p, "q=", 2) != 0)
			continue;
		q = strtod(p + 2, &stop);
		return stop == p + 2 || !(q >= 0) || q > 1 ? -1 : q;
	}
	return 1;
}

/* Best quality of @type among the ranges of @accept; of "*" as well. */
static double wanted(const char *accept, const char *type)
{
	double best = 0;
	size_t n = strlen(type);

	for (const char *at = accept; *at;) {
		size_t len;
		double q;

		at += strspn(at, " \t,");
		len = strcspn(at, ",");
		q = quality(at, len);
		if (len >= n && !strncasecmp(at, type, n) && (len == n || strchr("; \t", at[n])) &&
		    q > best)
			best = q;
		at += len;
	}
	return best;
}

enum pp_metrics_format pp_metrics_negotiate(const char *accept)
{
	double open, text;

	if (!accept)
		return PP_METRICS_PROMETHEUS;
	open = wanted(accept, "application/openmetrics-text");
	text = fmax(wanted(accept, "text/plain"), wanted(accept, "text/*"));
	return open > 0 && open >= text ? PP_METRICS_OPENMETRICS : PP_METRICS_PROMETHEUS;
}

/* In a help text OpenMetrics escapes quotes too. */
static void escape(struct pp_buf *to, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\\')
			pp_buf_str(to, "\\\\");
		else if (*text == '\n')
			pp_buf_str(to, "\\n");
		else if (*text == '"' && quotes)
			pp_buf_str(to, "\\\"");
		else
			pp_buf_char(to, *text);
	}
}

/* A label's value: what is no UTF-8 would make the whole answer unreadable. */
static void value_of(struct pp_buf *to, const char *text)
{
	while (*text) {
		size_t n = pp_utf8_length(text, SIZE_MAX);
		char one[5] = "?";

		if (n)
			(void)memcpy(one, text, n);
		escape(to, one, true);
		text += n ? n : 1;
	}
}

static const char *ending(const struct pp_metrics *m)
{
	return m->type == PP_METRICS_COUNTER ? "_total" : m->type == PP_METRICS_INFO ? "_info" : "";
}

void pp_metrics_family(struct pp_metrics *m, const char *name, enum pp_metrics_type type,
		       const char *unit, const char *help)
{
	static const char *const types[] = {"gauge", "counter", "info"};
	bool open = m->format == PP_METRICS_OPENMETRICS;
	const char *end;

	m->name = name;
	m->type = type;
	end = open ? "" : ending(m);
	pp_buf_printf(m->to, "# TYPE %s%s %s\n", name, end,
		      open || type != PP_METRICS_INFO ? types[type] : "gauge");
	if (open && *unit)
		pp_buf_printf(m->to, "# UNIT %s %s\n", name, unit);
	pp_buf_printf(m->to, "# HELP %s%s ", name, end);
	escape(m->to, help, open);
	pp_buf_char(m->to, '\n');
}

static void number(struct pp_buf *to, double v)
{
	if (isnan(v))
		pp_buf_str(to, "NaN");
	else if (isinf(v))
		pp_buf_str(to, v > 0 ? "+Inf" : "-Inf");
	else
		pp_buf_printf(to, "%.17g", v);
}

void pp_metrics_sample(struct pp_metrics *m, const struct pp_metrics_label *labels, size_t n,
		       double value)
{
	pp_buf_printf(m->to, "%s%s", m->name, ending(m));
	for (size_t i = 0; i < n; i++) {
		pp_buf_printf(m->to, "%c%s=\"", i ? ',' : '{', labels[i].name);
		value_of(m->to, labels[i].value ? labels[i].value : "");
		pp_buf_char(m->to, '"');
	}
	pp_buf_str(m->to, n ? "} " : " ");
	number(m->to, value);
	pp_buf_char(m->to, '\n');
}

void pp_metrics_end(struct pp_metrics *m)
{
	if (m->format == PP_METRICS_OPENMETRICS)
		pp_buf_str(m->to, "# EOF\n");
}
