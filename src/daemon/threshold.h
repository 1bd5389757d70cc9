/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_thresholds: what the site's policy says of each signal (section monitor), made ready.
 *
 * Without a line of the policy a signal stays at its usual level (signals.def), which is never an
 * alarm. A gauge without a bound is shown and judged by nobody; the one bound that holds without a
 * policy makes an early signal only: BAR1 down to a quarter of what the baseline had free.
 */
#ifndef PP_DAEMON_THRESHOLD_H
#define PP_DAEMON_THRESHOLD_H

#include "base/clock.h"
#include "daemon/signal.h"

struct pp_policy; /* judge/policy.h */

struct pp_bound {
	bool given, percent; /* of what is normal */
	double number;
};

struct pp_threshold {
	bool leveled; /* by the policy */
	enum pp_signal_level level;
	struct pp_bound above, below;
	pp_ns time; /* 0: not given */
	bool ours;  /* the bound is no site's */
};

struct pp_thresholds; /* opaque */

/*
 * -EINVAL (a key that is no signal, or an alarm without the bound that it needs; the file and line
 * are named), -ENOMEM. @policy NULL: the usual ones.
 */
int pp_thresholds_new(const struct pp_policy *policy, struct pp_thresholds **ret,
		      struct pp_error *err);
/* Those of the policy's file; NULL: the usual place. Also -errno of what `check` refuses in it. */
int pp_thresholds_load(const char *path, struct pp_thresholds **ret, struct pp_error *err);
struct pp_thresholds *pp_thresholds_free(struct pp_thresholds *t); /* returns NULL */

/* Never NULL. What is said of the object goes before what is said of the kind. */
const struct pp_threshold *pp_threshold_of(const struct pp_thresholds *t, enum pp_signal_kind kind,
					   const char *object);

/* Objects that the policy names, with their kind; NULL past the end. */
const char *pp_threshold_object(const struct pp_thresholds *t, size_t i, enum pp_signal_kind *ret);

/* "above 0.9", "below 25% of what is normal, 5000"; @normal NAN: not known. */
const char *pp_bound_text(const struct pp_bound *b, const char *word, double normal, char *text,
			  size_t size);
/* The number itself; NAN while it is a share of what is not known. */
double pp_bound_number(const struct pp_bound *b, double normal);

#endif
