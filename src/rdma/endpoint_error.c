/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why verbs fail, and what helps: one table. Rows are looked for from the top; a call is matched
 * by its beginning.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "rdma/endpoint_parts.h"
#include "base/banned.h"

static const struct {
	const char *call;
	int code; /* 0: any */
	const char *help;
} helps[] = {
	{"ibv_open_device", EACCES,
	 "this user may not open /dev/infiniband/uverbs*: run as root, or give the user access"},
	{"ibv_open_device", EPERM,
	 "the device cgroup or the container forbids it: pass /dev/infiniband into the container"},
	{"ibv_open_device", ENOENT, "no /dev/infiniband/uverbs* here: mount it into the container"},
	{"ibv_open_device", 0, "see the kernel log for this device"},
	{"ibv_create_cq", ENOMEM, "raise 'ulimit -l', or lower --qps or --depth"},
	{"ibv_create_cq", EINVAL, "lower --qps or --depth"},
	{"ibv_create_qp", ENOMEM, "raise 'ulimit -l', or lower --qps or --depth"},
	{"ibv_create_qp", EINVAL, "the device has no queue pair of that size: lower --depth"},
	{"ibv_create_qp", EADDRINUSE, "UDP port 4791 is in use by another user or by rdma_rxe"},
	{"ibv_create_qp", EPERM,
	 "the container forbids it: CAP_IPC_LOCK, or 'ulimit -l unlimited'"},
	{"ibv_modify_qp to RTR", ETIMEDOUT,
	 "the peer's address did not resolve: can this port's netdev reach it (ping -I)?"},
	{"ibv_modify_qp to RTR", ENETUNREACH, "no route from this port's netdev to the peer's GID"},
	{"ibv_modify_qp to RTR", EHOSTUNREACH,
	 "no answer from the peer's address: is its link up, is it in this subnet?"},
	{"ibv_modify_qp to RTR", ENODEV, "the port's netdev is gone"},
	{"ibv_modify_qp to RTR", EINVAL,
	 "GIDs of different kinds at the two ends, or one that is gone: choose by --gid-index"},
	{"ibv_modify_qp to INIT", EINVAL, "no P_Key of that index, or no such port"},
	{"", EIO, "the device does not answer any more: see the kernel log"},
	{"", ENODEV, "the device is gone"},
	{"", ENOMEM, "raise 'ulimit -l'"},
};

static const char *help_for(const char *call, int code)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(helps); i++)
		if (!strncmp(call, helps[i].call, strlen(helps[i].call)) &&
		    (!helps[i].code || helps[i].code == code))
			return helps[i].help;
	return NULL;
}

int pp_endpoint_fails(const char *device, const char *call, int code, struct pp_error *err)
{
	int e = code < 0 ? -code : code ? code : EIO;
	const char *help = help_for(call, e);
	char text[128];

	return pp_error_set(err, -e, "%s: %s: %s%s%s", device, call,
			    code ? pp_errno_text(e, text, sizeof(text)) : "failed without an errno",
			    help ? "; " : "", help ? help : "");
}

const char *pp_endpoint_events(struct pp_endpoint *e, char *text, size_t size)
{
	struct pollfd fd = {.fd = e->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	size_t used = 0;

	*text = '\0';
	/* Bounded: a device that raises them without end has said enough by then. */
	for (unsigned int i = 0; i < 64 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN); i++) {
		if (e->verbs->get_async_event(e->context, &event))
			break;
		if (used < size)
			(void)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
				       e->verbs->event_text(event.event_type));
		used += strlen(text + (used < size ? used : size - 1));
		e->verbs->ack_async_event(&event);
	}
	return text;
}
