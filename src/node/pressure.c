/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pressure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

const char *const pp_pressure_names[PP_PRESSURES] = {
	[PP_PRESSURE_CPU] = "cpu", [PP_PRESSURE_MEMORY] = "memory", [PP_PRESSURE_IO] = "io"};

enum { TEXT = 512, NUMBER = 24, TIMES = 8 };

int pp_pressure_parse(const char *text, double *ret_seconds)
{
	static const char TOTAL[] = "total=";
	size_t line = strcspn(text, "\n");
	const char *at = strstr(text, TOTAL);
	char digits[NUMBER];
	size_t n;
	uint64_t us;

	if (strncmp(text, "some ", 5) != 0 || !at || (size_t)(at - text) >= line)
		return -EBADMSG;
	at += sizeof(TOTAL) - 1;
	n = strspn(at, "0123456789");
	if (!n || n >= sizeof(digits) || (at[n] && at[n] != '\n'))
		return -EBADMSG;
	(void)memcpy(digits, at, n);
	digits[n] = '\0';
	if (pp_parse_u64(digits, 0, UINT64_MAX, &us))
		return -EBADMSG;
	*ret_seconds = (double)us / 1e6;
	return 0;
}

int pp_pressure_read(struct pp_source *s, enum pp_pressure of, double *ret_seconds)
{
	char path[64], text[TEXT];
	size_t len = 0;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/pressure/%s", pp_pressure_names[of]);
	r = pp_source_read(s, path, text, sizeof(text) - 1, &len);
	if (r)
		return r;
	text[len] = '\0';
	return pp_pressure_parse(text, ret_seconds);
}

/*
 * user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user (proc(5)).
 * Waiting for input and output is idle time.
 */
int pp_processor_time_parse(const char *text, struct pp_processor_time *ret)
{
	struct pp_processor_time t = {0};
	const char *at = text;
	char digits[NUMBER];
	uint64_t value;

	if (strncmp(at, "cpu ", 4) != 0)
		return -EBADMSG;
	at += 4;
	for (int i = 0; i < TIMES; i++) {
		size_t n;

		at += strspn(at, " ");
		n = strspn(at, "0123456789");
		if (!n || n >= sizeof(digits))
			return -EBADMSG;
		(void)memcpy(digits, at, n);
		digits[n] = '\0';
		if (pp_parse_u64(digits, 0, UINT64_MAX, &value) ||
		    __builtin_add_overflow(t.all, value, &t.all))
			return -EBADMSG;
		if (i != 3 && i != 4)
			t.busy += value;
		at += n;
	}
	*ret = t;
	return 0;
}
