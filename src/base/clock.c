/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

#include "base/banned.h"

static pp_ns now(clockid_t id)
{
	struct timespec ts = {0};

	(void)clock_gettime(id, &ts);
	return (pp_ns)ts.tv_sec * PP_SECOND + ts.tv_nsec;
}

pp_ns pp_clock_monotonic(void)
{
	return now(CLOCK_MONOTONIC);
}

pp_ns pp_clock_wall(void)
{
	return now(CLOCK_REALTIME);
}

static struct tm utc(pp_ns wall)
{
	time_t seconds = (time_t)(wall / PP_SECOND);
	struct tm tm = {0};

	(void)gmtime_r(&seconds, &tm);
	return tm;
}

const char *pp_clock_format(pp_ns wall, char *text, size_t size)
{
	struct tm tm = utc(wall);

	if (!strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		text[0] = '\0';
	return text;
}

const char *pp_clock_stamp(pp_ns wall, char *text, size_t size)
{
	struct tm tm = utc(wall);

	if (!strftime(text, size, "%Y%m%dT%H%M%SZ", &tm))
		text[0] = '\0';
	return text;
}
