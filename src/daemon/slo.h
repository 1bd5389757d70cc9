/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an application's figures are, as the user names it: "WHERE" or "WHERE#NAME".
 */
#ifndef PP_DAEMON_SLO_H
#define PP_DAEMON_SLO_H

#include <stdbool.h>

#include "base/error.h"

enum { PP_SLO_WHERE = 768, PP_SLO_TEXT = 2048 };

/*
 * As the watcher takes it: a relative file is of the working directory (@live), and of nothing in a
 * recording or another root. Looks at no file: it may hang, and may come later. -EINVAL with why.
 */
int pp_slo_resolve(const char *given, bool live, char ret[PP_SLO_TEXT], struct pp_error *err);

#endif
