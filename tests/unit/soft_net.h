/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network namespace of a test's own, so that nobody else's UDP 4791 is in the way, and programs
 * run in it.
 */
#ifndef PP_TESTS_SOFT_NET_H
#define PP_TESTS_SOFT_NET_H

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/wire/gid.h"

static inline int net_lo_up(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	rc = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0;
	if (!rc) {
		r.ifr_flags |= IFF_UP;
		rc = ioctl(fd, SIOCSIFFLAGS, &r) < 0;
	}
	rc = rc ? -errno : 0;
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static inline int net_write(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return good ? 0 : -EIO;
}

/* 0, or -errno: no namespace may be made here. */
static inline int net_own(void)
{
	char map[32];

	(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)geteuid());
	if (unshare(CLONE_NEWNET) < 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
			return -errno;
		/* Programs that are run keep their rights only as root of the namespace. */
		if (net_write("/proc/self/uid_map", map) < 0)
			return -EPERM;
	}
	return net_lo_up();
}

/* Runs a program by PATH; its exit status, 127: not there. */
static inline int net_run(const char *const *argv)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}
#define NET_RUN(...) net_run((const char *const[]){__VA_ARGS__, NULL})

static inline struct soft_gid net_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct soft_gid){{[10] = 0xff, [11] = 0xff, a, b, c, d}};
}

#endif
