/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_glance: a digest of the few files that are cheap to read and change when a node's
 * software or wiring does. Equal marks prove nothing; unlike ones are reason to look closely.
 */
#ifndef PP_DAEMON_GLANCE_H
#define PP_DAEMON_GLANCE_H

#include <stdbool.h>

#include "node/source.h"

struct pp_glance {
	unsigned char hash[32];
};

void pp_glance_read(struct pp_source *s, struct pp_glance *ret);
bool pp_glance_equal(const struct pp_glance *a, const struct pp_glance *b);

#endif
