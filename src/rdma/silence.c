/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/silence.h"

#include "base/banned.h"

#define WAY_BACK (200 * PP_MILLISECOND)

bool pp_silence_look(struct pp_silence *s, pp_ns now, pp_ns silent)
{
	if (s->gone)
		return true;
	if (silent < PP_SILENCE_LIMIT) {
		s->suspected = 0;
		return false;
	}
	if (!s->suspected)
		s->suspected = now;
	s->gone = now - s->suspected >= PP_SILENCE_SURE;
	return s->gone;
}

pp_ns pp_ending_step(pp_ns elapsed)
{
	pp_ns step;

	/* Noticed later than can be: what is left to do is done as if it had been in time. */
	if (elapsed > PP_SILENCE_WORST)
		elapsed = PP_SILENCE_WORST;
	step = (PP_ENDING_ALL - elapsed) / PP_ENDING_STEPS;
	return step < PP_ENDING_STEP ? step : PP_ENDING_STEP;
}

pp_ns pp_ending_wait(pp_ns elapsed)
{
	return PP_ENDING_STEPS * pp_ending_step(elapsed) + WAY_BACK;
}
