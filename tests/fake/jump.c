/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wall clock, preloaded, that is an hour ahead as soon as the file PP_FAKE_JUMP names is there:
 * what an administrator, or a first answer of a time server, does in the middle of a run.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
	const char *file = getenv("PP_FAKE_JUMP");
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (!r && id == CLOCK_REALTIME && file && !access(file, F_OK))
		ret->tv_sec += 3600;
	return r;
}
