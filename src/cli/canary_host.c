/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/canary.h"
#include "node/pressure.h"
#include "base/banned.h"

/* Seconds since boot; NaN where the kernel has none. */
static double waited(enum pp_pressure of)
{
	char path[64], text[512];
	double seconds;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/pressure/%s", pp_pressure_names[of]);
	int PP_AUTO_CLOSE fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return NAN;
	text[n] = '\0';
	return pp_pressure_parse(text, &seconds) ? NAN : seconds;
}

void pp_host_pressure_read(struct pp_host_pressure *ret)
{
	ret->seconds[PP_HOST_CPU_SECONDS] = NAN;
	ret->seconds[PP_HOST_CPU_PRESSURE] = waited(PP_PRESSURE_CPU);
	ret->seconds[PP_HOST_MEMORY_PRESSURE] = waited(PP_PRESSURE_MEMORY);
	ret->seconds[PP_HOST_IO_PRESSURE] = waited(PP_PRESSURE_IO);
}
