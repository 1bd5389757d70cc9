/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs beside each other, for a person or, as the member "repeat", for a program.
 */
#ifndef PP_CLI_REPEAT_TEXT_H
#define PP_CLI_REPEAT_TEXT_H

#include "base/out.h"
#include "judge/repeat.h"

/* @before: the earlier run that @r came of. */
void pp_repeat_text(struct pp_out *o, const struct pp_repeat *r, const struct pp_bench *before);

#endif
