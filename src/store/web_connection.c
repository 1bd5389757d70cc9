/* SPDX-License-Identifier: Apache-2.0 */
#include "store/web_connection.h"

#include <stdbool.h>
#include <sys/socket.h>

#include "base/banned.h"

void pp_web_connections_init(struct pp_web_connections *c)
{
	(void)pthread_mutex_init(&c->lock, NULL);
	for (size_t i = 0; i < PP_WEB_CONNECTIONS; i++)
		c->list[i].fd = -1;
}

void pp_web_connections_done(struct pp_web_connections *c)
{
	(void)pthread_mutex_destroy(&c->lock);
}

static int fd_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		pp_web.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? (int)info->connect_fd : -1;
}

void pp_web_connection_notify(void *connections, struct MHD_Connection *c, void **state,
			      enum MHD_ConnectionNotificationCode what)
{
	bool begins = what == MHD_CONNECTION_NOTIFY_STARTED;
	struct pp_web_connections *all = connections;
	int fd = fd_of(c);

	(void)state;
	(void)pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < PP_WEB_CONNECTIONS; i++) {
		if (all->list[i].fd != (begins ? -1 : fd))
			continue;
		all->list[i].fd = begins ? fd : -1;
		all->list[i].since = pp_clock_monotonic();
		break;
	}
	(void)pthread_mutex_unlock(&all->lock);
}

void pp_web_connection_renew(struct pp_web_connections *all, struct MHD_Connection *c)
{
	int fd = fd_of(c);

	(void)pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < PP_WEB_CONNECTIONS; i++)
		if (all->list[i].fd == fd)
			all->list[i].since = pp_clock_monotonic();
	(void)pthread_mutex_unlock(&all->lock);
}

void pp_web_connections_expire(struct pp_web_connections *c, pp_ns limit, pp_ns crowded,
			       unsigned int most)
{
	pp_ns now = pp_clock_monotonic();
	unsigned int open = 0;

	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < PP_WEB_CONNECTIONS; i++)
		open += c->list[i].fd >= 0;
	if (open >= most)
		limit = crowded;
	for (size_t i = 0; i < PP_WEB_CONNECTIONS; i++)
		if (c->list[i].fd >= 0 && now - c->list[i].since > limit)
			(void)shutdown(c->list[i].fd, SHUT_RDWR);
	(void)pthread_mutex_unlock(&c->lock);
}
