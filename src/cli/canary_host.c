/* SPDX-License-Identifier: Apache-2.0 */
/* Pressure stall information: Documentation/accounting/psi.rst of the kernel. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/canary.h"
#include "base/banned.h"

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345": microseconds since boot. */
static double some_seconds(const char *path)
{
	char text[256], *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint64_t us;

	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return NAN;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	at = strstr(text, "total=");
	if (strncmp(text, "some ", 5) != 0 || !at || pp_parse_u64(at + 6, 0, UINT64_MAX, &us))
		return NAN;
	return (double)us / 1e6;
}

void pp_host_pressure_read(struct pp_host_pressure *ret)
{
	ret->seconds[PP_HOST_CPU_SECONDS] = NAN;
	ret->seconds[PP_HOST_CPU_PRESSURE] = some_seconds("/proc/pressure/cpu");
	ret->seconds[PP_HOST_MEMORY_PRESSURE] = some_seconds("/proc/pressure/memory");
	ret->seconds[PP_HOST_IO_PRESSURE] = some_seconds("/proc/pressure/io");
}
