/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the readers of answers fill a surface's report.
 */
#ifndef PP_TRACE_SURFACE_REPORT_H
#define PP_TRACE_SURFACE_REPORT_H

#include "base/compiler.h"
#include "trace/surface.h"

struct pp_answer;

void pp_surface_set(struct pp_surface_report *r, enum pp_surface_state state, const char *fmt, ...)
	PP_PRINTF(3, 4);

/* A reading that is not whole: of several reasons the first is told. Nothing less than read whole
 * becomes better by it. */
void pp_surface_cut(struct pp_surface_report *r, const char *fmt, ...) PP_PRINTF(2, 3);

/* False, and the report says why, when @a holds no answer. */
bool pp_surface_answered(struct pp_surface_report *r, const struct pp_answer *a);

/* Refused for what a privilege would change, absent for anything else. */
enum pp_surface_state pp_surface_of_error(int error);

#endif
