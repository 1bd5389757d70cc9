/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of enumerations. The exported ones are in export.h.
 */
#ifndef SOFT_ABI_TEXT_H
#define SOFT_ABI_TEXT_H

#include "soft/verbs.h"

/* Static string. */
const char *soft_wr_opcode_text(enum ibv_wr_opcode opcode);

#endif
