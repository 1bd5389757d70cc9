/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a text in the format of Prometheus (0.0.4) or OpenMetrics: name, labels, value. Pure;
 * the text is a stranger's. What is no sample is passed over and counted.
 */
#ifndef PP_DAEMON_SAMPLES_H
#define PP_DAEMON_SAMPLES_H

#include <stddef.h>

/*
 * @name: with its labels as written, "step_seconds{rank=\"0\"}", borrowed, @len bytes; @bare: bytes
 * of the name alone. @value may be NaN or infinite. Not 0 ends the reading and is returned.
 */
typedef int pp_sample_each(void *ctx, const char *name, size_t len, size_t bare, double value);

/* *ret_odd: lines that are neither sample, comment nor empty. */
int pp_samples_read(const char *text, size_t len, pp_sample_each *each, void *ctx, size_t *ret_odd);

#endif
