/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_web_connections: the open connections of a server of libmicrohttpd, each with a
 * deadline as a whole. Its own time-out begins anew with each byte, so that who sends or reads one
 * now and then would keep a place for ever.
 *
 * A lock of its own: the server may be a thread, and who ends connections another.
 */
#ifndef PP_STORE_WEB_CONNECTION_H
#define PP_STORE_WEB_CONNECTION_H

#include <pthread.h>

#include "base/clock.h"
#include "store/web.h"

enum { PP_WEB_CONNECTIONS = 64 };

struct pp_web_connections {
	pthread_mutex_t lock; /* of what follows */
	struct {
		int fd;	     /* -1: free */
		pp_ns since; /* begun, or its last answer where that counts */
	} list[PP_WEB_CONNECTIONS];
};

void pp_web_connections_init(struct pp_web_connections *c);
void pp_web_connections_done(struct pp_web_connections *c);

/* For MHD_OPTION_NOTIFY_CONNECTION; @connections: a struct pp_web_connections. */
void pp_web_connection_notify(void *connections, struct MHD_Connection *c, void **state,
			      enum MHD_ConnectionNotificationCode what);
/* Its time begins anew. */
void pp_web_connection_renew(struct pp_web_connections *all, struct MHD_Connection *c);
/* Ends those that are older than @limit, or than @crowded when @most are open. Does not wait. */
void pp_web_connections_expire(struct pp_web_connections *c, pp_ns limit, pp_ns crowded,
			       unsigned int most);

#endif
