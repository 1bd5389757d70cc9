/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service tells its manager: systemd's notification protocol, datagrams to the socket that
 * NOTIFY_SOCKET names. Without one nothing is sent.
 */
#ifndef PP_DAEMON_NOTIFY_H
#define PP_DAEMON_NOTIFY_H

#include "base/clock.h"

struct pp_notify {
	int fd;		/* -1: nobody listens */
	pp_ns watchdog; /* to be told of so often at least; 0: never */
	pp_ns last;
};

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment:
 * helpers are no service. A socket that cannot be used is as none.
 */
void pp_notify_open(struct pp_notify *ret);
void pp_notify_close(struct pp_notify *n);

/* "READY=1", "STATUS=...": lines of the protocol. */
void pp_notify_send(const struct pp_notify *n, const char *text);
/* "I am alive", when it is time; twice as often as the manager asks for. */
void pp_notify_alive(struct pp_notify *n, pp_ns now);

#endif
