/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question "rdma-resources": dumps of every device's regions, domains, contexts and queue
 * pairs, in a helper.
 *
 * Data: {"core": bool (absent: not known), "errno": of what failed first, "call": which,
 *  "netns_mode", "hidden": [names of devices that netlink does not list],
 *  "privileged": CAP_NET_ADMIN, "first_user_namespace", "first_pid_namespace",
 *  "devices": [{"index", "name", "mr": [...], "pd": [...], "ctx": [...], "qp": [...],
 *               "faults": {"mr": text, ...}}], "cut": bool}
 */
#include "trace/resource_parts.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/limits.h"
#include "base/banned.h"

static const char CLASS[] = "/sys/class", INFINIBAND[] = "/sys/class/infiniband";
static const char CORE[] = "/sys/module/ib_core";
/* Inodes of the first namespaces: PROC_USER_INIT_INO, PROC_PID_INIT_INO of proc_ns.h. */
static const char FIRST_USER_NS[] = "user:[4026531837]", FIRST_PID_NS[] = "pid:[4026531836]";

struct question {
	struct pp_source *source;
	int core; /* 1, 0, -errno: is an RDMA core there? */
};

static void write_rights(struct pp_json *j)
{
	char text[8192] = "", word[32] = "", ns[64] = "";
	uint64_t caps = 0;
	FILE *f = fopen("/proc/self/status", "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		(void)fclose(f);
	text[n] = '\0';
	if (!pp_limits_status_word(text, "CapEff", 0, word, sizeof(word)) &&
	    !pp_parse_hex(word, UINT64_MAX, &caps))
		pp_json_bool(j, "privileged", caps >> CAP_NET_ADMIN & 1);
	if (readlink("/proc/self/ns/user", ns, sizeof(ns) - 1) > 0)
		pp_json_bool(j, "first_user_namespace", !strcmp(ns, FIRST_USER_NS));
	memset(ns, 0, sizeof(ns));
	if (readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1) > 0)
		pp_json_bool(j, "first_pid_namespace", !strcmp(ns, FIRST_PID_NS));
}

static int link_send(void *arg, const void *message, size_t len)
{
	return mnl_socket_sendto(arg, message, len) < 0 ? -errno : 0;
}

static ssize_t link_receive(void *arg, void *buf, size_t size)
{
	ssize_t n = mnl_socket_recvfrom(arg, buf, size);

	return n < 0 ? -errno : n;
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct pp_resource_link link = {.send = link_send, .receive = link_receive};
	const struct question *q = arg;
	struct mnl_socket *socket;
	int r = 0;

	if (q->core >= 0)
		pp_json_bool(data, "core", q->core);
	if (q->core <= 0)
		return 0;
	write_rights(data);
	pp_ask_doing("socket(NETLINK_RDMA)");
	socket = mnl_socket_open(NETLINK_RDMA);
	if (!socket) {
		pp_resource_refused(data, "socket(NETLINK_RDMA)", -errno);
		return 0;
	}
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		pp_resource_refused(data, "bind(NETLINK_RDMA)", -errno);
	} else {
		link.arg = socket;
		link.port = mnl_socket_get_portid(socket);
		r = pp_resource_look(&link, q->source, data);
	}
	(void)mnl_socket_close(socket);
	return r ? pp_error_set(err, r, "%s", pp_errno_name(r)) : 0;
}

/* 1, 0, or an error when it cannot be told. To open the socket without it would load ib_core. */
static int core_in_sight(struct pp_source *s)
{
	int r = pp_source_probe(s, INFINIBAND);

	if (r != 1 && pp_source_probe(s, CORE) == 1)
		return 1;
	if (r == 0 && pp_source_probe(s, CLASS) != 1)
		return -ENODATA;
	return r;
}

int pp_resources_ask(struct pp_source *s, struct pp_answer *ret)
{
	const struct question arg = {
		.source = s,
		.core = pp_source_mode(s) == PP_SOURCE_REPLAY ? 0 : core_in_sight(s),
	};
	const struct pp_question q = {.name = "rdma-resources", .run = run, .arg = &arg};

	return pp_ask(s, &q, ret);
}
