/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
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

int pp_clock_parse(const char *text, pp_ns *ret)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
	int part[6] = {0};
	size_t n = 0;
	struct tm tm;
	char again[32];
	pp_ns t;

	for (size_t i = 0; i < sizeof(shape); i++) { /* the NUL too */
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (shape[i] == 'd' ? !digit : text[i] != shape[i])
			return -EINVAL;
		if (digit)
			part[n] = part[n] * 10 + (text[i] - '0');
		else
			n++;
	}
	/* pp_ns ends in 2262 */
	if (part[0] < 1970 || part[0] > 2261)
		return -EINVAL;
	tm = (struct tm){.tm_year = part[0] - 1900,
			 .tm_mon = part[1] - 1,
			 .tm_mday = part[2],
			 .tm_hour = part[3],
			 .tm_min = part[4],
			 .tm_sec = part[5]};
	t = (pp_ns)timegm(&tm) * PP_SECOND;
	/* timegm() takes the 31st of February for a day of March */
	if (strcmp(pp_clock_format(t, again, sizeof(again)), text) != 0)
		return -EINVAL;
	*ret = t;
	return 0;
}

const char *pp_clock_stamp(pp_ns wall, char *text, size_t size)
{
	struct tm tm = utc(wall);

	if (!strftime(text, size, "%Y%m%dT%H%M%SZ", &tm))
		text[0] = '\0';
	return text;
}
