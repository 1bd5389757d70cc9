/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plot over message sizes as one inline <svg> of a page: sizes on a logarithmic axis of base 2,
 * values from zero up on a linear one, an interval where a value has one. Lines differ in dashes
 * and marks too, so that they are told apart without colour.
 */
#ifndef PP_BUNDLE_PLOT_H
#define PP_BUNDLE_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct pp_plot_point {
	uint64_t size;
	double value, low, high; /* NaN: none */
};

struct pp_plot_series {
	const char *name;
	unsigned int style;		   /* 0 to 5 */
	const struct pp_plot_point *point; /* by size */
	unsigned int n;
};

struct pp_plot {
	const char *title, *unit;
	const struct pp_plot_series *series;
	unsigned int n;
	double line; /* a horizontal line, for what cannot be exceeded; NaN none */
	const char *line_name;
};

/* Does some series have a value? */
bool pp_plot_has(const struct pp_plot *p);
/* Nothing when none has. */
void pp_plot_write(struct pp_buf *out, const struct pp_plot *p);

#endif
