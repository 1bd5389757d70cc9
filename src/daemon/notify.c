/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

static int connect_to(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = name ? strlen(name) : 0;
	socklen_t size;
	int fd;

	/* A path, or '@' for a name in the abstract namespace, whose first byte is NUL. */
	if ((len < 2 || (*name != '/' && *name != '@')) || len >= sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path, name, len);
	if (*name == '@')
		to.sun_path[0] = '\0';
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*name == '/'));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&to, size)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

void pp_notify_open(struct pp_notify *ret)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, of;

	*ret = (struct pp_notify){.fd = connect_to(getenv("NOTIFY_SOCKET"))};
	if (usec && !pp_parse_u64(usec, 1, (uint64_t)86400 * 1000000, &us) &&
	    (!pid || (!pp_parse_u64(pid, 1, INT32_MAX, &of) && of == (uint64_t)getpid())))
		ret->watchdog = (pp_ns)us * 1000;
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

void pp_notify_close(struct pp_notify *n)
{
	if (n->fd >= 0)
		(void)close(n->fd);
	n->fd = -1;
}

void pp_notify_send(const struct pp_notify *n, const char *text)
{
	/* A manager that is busy loses a line, and nobody waits for it. */
	if (n->fd >= 0)
		(void)!send(n->fd, text, strlen(text), MSG_NOSIGNAL);
}

void pp_notify_alive(struct pp_notify *n, pp_ns now)
{
	if (!n->watchdog || (n->last && now - n->last < n->watchdog / 2))
		return;
	n->last = now;
	pp_notify_send(n, "WATCHDOG=1");
}
