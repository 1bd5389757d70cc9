/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_probe [BDF]: exit 77 without a GPU, 1 when a check failed.
 */
#include "mem_probe.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bdf.h"
#include "base/clock.h"
#include "mem/cuda.h"

static unsigned int checks, failures;

void fact(const char *format, ...)
{
	va_list ap;

	(void)printf("fact    ");
	va_start(ap, format);
	(void)vprintf(format, ap);
	va_end(ap);
	(void)printf("\n");
	(void)fflush(stdout);
}

bool check(bool good, const char *format, ...)
{
	va_list ap;

	checks++;
	failures += !good;
	(void)printf(good ? "ok      " : "FAILED  ");
	va_start(ap, format);
	(void)vprintf(format, ap);
	va_end(ap);
	(void)printf("\n");
	(void)fflush(stdout);
	return good;
}

struct pp_memory *memory_new(const struct pp_memory_options *options)
{
	pp_ns start = pp_clock_monotonic();
	struct pp_memory *m = NULL;
	struct pp_error err = {0};
	int r = pp_memory_new(options, &m, &err);

	check(!r, "%s, %zu bytes in %u segments, %zu inside: %s (%lld us)",
	      pp_memory_kind_name(options->kind), options->size, options->segments, options->inside,
	      r ? err.text : "made", (long long)(pp_clock_monotonic() - start) / 1000);
	return m;
}

/* The first GPU that NVIDIA's module lists. */
static bool first_gpu(char *to, size_t size)
{
	DIR *dir = opendir("/proc/driver/nvidia/gpus");
	const struct dirent *e;
	struct pp_bdf bdf;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		found = !pp_bdf_parse(e->d_name, &bdf);
		if (found)
			(void)snprintf(to, size, "%.*s", (int)size - 1, e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

int main(int argc, char **argv)
{
	char gpu[PP_BDF_TEXT + 8] = "";

	if (argc > 1)
		(void)snprintf(gpu, sizeof(gpu), "%s", argv[1]);
	if (!gpu[0] && !first_gpu(gpu, sizeof(gpu))) {
		(void)printf("skipped: no GPU in /proc/driver/nvidia/gpus\n");
		return 77;
	}
	facts(gpu);
	if (!verbs(gpu))
		(void)printf(
			"skipped: registrations: libibverbs lists no device (LD_LIBRARY_PATH of "
			"the software device is not set?)\n");
	(void)printf("%u checks, %u failed\n", checks, failures);
	return failures ? 1 : 0;
}
