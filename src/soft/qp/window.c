/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window: additive increase, multiplicative decrease, in bytes. Round trips are smoothed as RFC
 * 6298 section 2 says; the bounds are this file's own: a lower minimum, as both ends are near and a
 * lost tail should not cost a second.
 */
#include "soft/qp/window.h"

#include <string.h>

#include "soft/wire/packet.h"

#include "base/banned.h"

enum {
	PACKET_BYTES = SOFT_MTU_MAX + 128, /* with all headers */
	LIMIT_MIN = 4 * PACKET_BYTES,
	LIMIT_FIRST = 256 << 10,
	STEP = 4 * PACKET_BYTES, /* growth of a round trip once a loss was seen */
};

void soft_window_init(struct soft_window *w, uint64_t limit_max)
{
	memset(w, 0, sizeof(*w));
	w->limit_min = LIMIT_MIN;
	w->limit_max = limit_max < LIMIT_MIN ? LIMIT_MIN : limit_max;
	w->limit = w->limit_max < LIMIT_FIRST ? w->limit_max : LIMIT_FIRST;
	w->fast_until = w->limit_max;
	w->rto_min = SOFT_RTO_MIN;
}

bool soft_window_open(const struct soft_window *w, uint64_t bytes)
{
	if (w->in_flight == 0)
		return true;
	return w->in_flight < w->limit && bytes <= w->limit - w->in_flight;
}

void soft_window_sent(struct soft_window *w, uint64_t bytes)
{
	if (__builtin_add_overflow(w->in_flight, bytes, &w->in_flight))
		w->in_flight = UINT64_MAX;
}

void soft_window_dropped(struct soft_window *w, uint64_t bytes)
{
	w->in_flight -= bytes < w->in_flight ? bytes : w->in_flight;
}

/* RFC 6298 2.2 and 2.3: alpha 1/8, beta 1/4. */
static void measure(struct soft_window *w, pp_ns rtt)
{
	pp_ns off;

	if (rtt > PP_SECOND)
		rtt = PP_SECOND;
	if (w->srtt == 0) {
		w->srtt = rtt;
		w->rttvar = rtt / 2;
		return;
	}
	off = w->srtt > rtt ? w->srtt - rtt : rtt - w->srtt;
	w->rttvar += (off - w->rttvar) / 4;
	w->srtt += (rtt - w->srtt) / 8;
	if (w->srtt < 1)
		w->srtt = 1;
}

static void grow(struct soft_window *w, uint64_t acked, uint64_t was_in_flight)
{
	uint64_t step;

	/* A window that is not used proves nothing about a larger one. */
	if (was_in_flight < w->limit / 2)
		return;
	if (acked > w->limit)
		acked = w->limit;
	if (w->limit < w->fast_until)
		step = acked;
	else
		step = (acked * STEP + w->limit - 1) / w->limit;
	w->limit = step < w->limit_max - w->limit ? w->limit + step : w->limit_max;
}

void soft_window_acked(struct soft_window *w, uint64_t bytes, pp_ns rtt)
{
	uint64_t was = w->in_flight;

	soft_window_dropped(w, bytes);
	if (rtt > 0)
		measure(w, rtt);
	grow(w, bytes, was);
}

void soft_window_lost(struct soft_window *w, pp_ns now)
{
	pp_ns round_trip = w->srtt > 0 ? w->srtt : SOFT_RTO_FIRST;

	/* Losses of one round trip have one cause. */
	if (w->last_cut != 0 && now - w->last_cut < round_trip)
		return;
	w->last_cut = now;
	w->limit /= 2;
	if (w->limit < w->limit_min)
		w->limit = w->limit_min;
	w->fast_until = w->limit;
}

pp_ns soft_window_pace(const struct soft_window *w, pp_ns now)
{
	pp_ns ahead = PP_MILLISECOND / 2;

	return w->paid_until > now + ahead ? w->paid_until - ahead : 0;
}

void soft_window_paced(struct soft_window *w, uint64_t bytes, pp_ns now)
{
	pp_ns from = w->paid_until > now ? w->paid_until : now;

	w->paid_until = from + (pp_ns)(bytes * (uint64_t)PP_MILLISECOND / w->limit_max);
}

pp_ns soft_window_rto(const struct soft_window *w)
{
	pp_ns rto = w->srtt + 4 * w->rttvar;

	if (w->srtt == 0)
		rto = SOFT_RTO_FIRST;
	if (rto < w->rto_min)
		return w->rto_min;
	return rto < SOFT_RTO_MAX ? rto : SOFT_RTO_MAX;
}
