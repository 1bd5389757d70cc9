/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/surface_report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "node/ask.h"
#include "base/banned.h"

void pp_surface_set(struct pp_surface_report *r, enum pp_surface_state state, const char *fmt, ...)
{
	va_list ap;

	r->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

void pp_surface_cut(struct pp_surface_report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->state != PP_SURFACE_READ)
		return;
	r->state = PP_SURFACE_CUT;
	va_start(ap, fmt);
	(void)vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

bool pp_surface_answered(struct pp_surface_report *r, const struct pp_answer *a)
{
	static const enum pp_surface_state states[] = {
		[PP_ANSWERED] = PP_SURFACE_READ,     [PP_TIMEOUT] = PP_SURFACE_STUCK,
		[PP_CRASHED] = PP_SURFACE_CUT,	     [PP_FAILED] = PP_SURFACE_CUT,
		[PP_NOT_ASKED] = PP_SURFACE_UNASKED,
	};

	pp_surface_set(r, states[a->outcome], "%.180s", a->detail);
	return a->outcome == PP_ANSWERED;
}

enum pp_surface_state pp_surface_of_error(int error)
{
	return error == -EACCES || error == -EPERM ? PP_SURFACE_REFUSED : PP_SURFACE_ABSENT;
}
