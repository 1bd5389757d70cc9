/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/channel_state.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "rdma/location.h"
#include "base/banned.h"

/* One address of several is not waited for to the end: another may answer. */
#define ONE_OF_SEVERAL (3 * PP_SECOND)
#define PAUSE	       (200 * PP_MILLISECOND)

enum { RESETS = 5 };

struct dialling {
	const struct pp_channel_dial *asked;
	struct pp_location text;
	pp_ns began;
};

/* Also looks at whether the host is still there, where that can be known. */
static int wait_for(const struct dialling *d, int fd, short events, pp_ns deadline)
{
	struct pp_error err;
	pp_ns look;
	int r;

	do {
		if (d->asked->beside && pp_channel_gone(d->asked->beside, &err))
			return -EHOSTDOWN;
		look = pp_clock_monotonic() + PP_SILENCE_LOOK;
		r = pp_channel_wait(fd, events, look < deadline ? look : deadline,
				    d->asked->stopped);
	} while (r == -ETIMEDOUT && look < deadline);
	return r;
}

static int connect_one(const struct dialling *d, const struct sockaddr_storage *at, socklen_t size,
		       pp_ns deadline, int *ret_fd)
{
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0, code = 0;
	socklen_t len = sizeof(code);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)at, size))
		r = errno == EINPROGRESS ? wait_for(d, fd, POLLOUT, deadline) : -errno;
	if (!r && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) == 0)
		r = -code;
	if (r) {
		(void)close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* All addresses once; the last one's error. */
static int connect_any(const struct pp_location_list *list, const struct dialling *d, int *ret_fd)
{
	int r = -EHOSTUNREACH;

	for (unsigned int i = 0; i < list->n; i++) {
		pp_ns end = pp_clock_monotonic() + ONE_OF_SEVERAL;

		if (list->n == 1 || end > d->asked->deadline)
			end = d->asked->deadline;
		r = connect_one(d, &list->at[i], list->size[i], end, ret_fd);
		if (!r || r == -EINTR || r == -EHOSTDOWN)
			return r;
	}
	return r;
}

static int unreached(const struct dialling *d, int code, struct pp_error *err)
{
	const char *host = d->text.host;
	double s = (double)(pp_clock_monotonic() - d->began) / (double)PP_SECOND;

	switch (code) {
	case -EINTR:
		return pp_error_set(err, code, "interrupted while connecting to %s",
				    d->asked->address);
	case -ECONNREFUSED:
		return pp_error_set(err, code,
				    "nobody listens at %s port %u (tried for %.0f s): start "
				    "'peerpath bench --listen' there",
				    host, d->text.port, s);
	case -ETIMEDOUT:
		return pp_error_set(err, code,
				    "no answer from %s port %u in %.0f s: the host is down, or a "
				    "firewall drops; let TCP port %u through",
				    host, d->text.port, s, d->text.port);
	case -EHOSTDOWN:
		return pp_error_set(err, code, "%s does not answer any more", d->asked->address);
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return pp_error_set(err, -EHOSTUNREACH,
				    "no way to %s port %u: %s; look at its route, and at firewalls "
				    "that reject",
				    host, d->text.port, strerror(-code));
	default:
		return pp_error_set(err, code, "cannot connect to %s port %u: %s", host,
				    d->text.port, strerror(-code));
	}
}

static int greet(const struct dialling *d, struct pp_channel *c, struct pp_error *err)
{
	pp_ns deadline = pp_clock_monotonic() + PP_CHANNEL_GREETING_LIMIT;
	int r;

	if (deadline > d->asked->deadline)
		deadline = d->asked->deadline;
	while ((r = pp_channel_greet(c, d->asked->token, err)) == -EAGAIN) {
		r = wait_for(d, c->fd, POLLIN, deadline);
		if (r == -EINTR || r == -EHOSTDOWN)
			return unreached(d, r, err);
		if (r)
			return pp_error_set(
				err, -ETIMEDOUT,
				"%s takes the connection but says nothing: no peerpath, or "
				"one that is stuck",
				d->asked->address);
	}
	return r;
}

/* A little later, if there is time. */
static bool again(const struct dialling *d)
{
	pp_ns end = pp_clock_monotonic() + PAUSE;

	if (end >= d->asked->deadline)
		return false;
	return pp_channel_wait(-1, 0, end, d->asked->stopped) != -EINTR;
}

static int try_once(const struct dialling *d, const struct pp_location_list *list,
		    struct pp_channel **ret, struct pp_error *err)
{
	struct pp_channel *c = NULL;
	int fd = -1, r = connect_any(list, d, &fd);

	if (r)
		return unreached(d, r, err);
	r = pp_channel_begin(fd, /* dialler= */ true, d->asked->introduction, &c, err);
	if (r)
		return r;
	r = greet(d, c, err);
	if (r) {
		(void)pp_channel_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int pp_channel_dial(const struct pp_channel_dial *asked, struct pp_channel **ret,
		    struct pp_error *err)
{
	struct dialling d = {.asked = asked, .began = pp_clock_monotonic()};
	struct pp_location_list list;
	unsigned int resets = 0;
	int r = pp_location_parse(asked->address, PP_CHANNEL_PORT, &d.text, err);

	if (!r && !d.text.host[0])
		r = pp_error_set(err, -EINVAL, "address \"%s\" names no host", asked->address);
	if (!r)
		r = pp_location_resolve(&d.text, asked->deadline, asked->stopped, &list, err);
	if (r)
		return r;
	do {
		r = try_once(&d, &list, ret, err);
		/* A gate with a crowd before it may have turned us away. */
		resets += r == -ECONNRESET;
	} while (((r == -ECONNREFUSED && !asked->once) || (r == -ECONNRESET && resets < RESETS)) &&
		 again(&d));
	return r;
}

int pp_channel_connect(const char *address, const char *token, pp_ns deadline,
		       bool (*stopped)(void), struct pp_channel **ret, struct pp_error *err)
{
	const struct pp_channel_dial d = {
		.address = address, .token = token, .deadline = deadline, .stopped = stopped};

	return pp_channel_dial(&d, ret, err);
}
