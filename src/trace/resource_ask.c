/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question "rdma-resources": dumps of every device's regions, domains, contexts and queue
 * pairs, in a helper.
 *
 * Data: {"core": bool (absent: not known), "errno": of what failed first, "call": which,
 *  "netns_mode", "hidden": [names of devices that netlink does not list],
 *  "privileged": CAP_NET_ADMIN, "first_user_namespace", "first_pid_namespace",
 *  "devices": [{"index", "name", "mr": [...], "pd": [...], "ctx": [...], "qp": [...],
 *               "faults": {"mr": text, ...}}], "cut": text}
 */
#include "trace/resource_parts.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/limits.h"
#include "base/banned.h"

enum {
	MESSAGE_BYTES = 1 << 16, /* netlink makes a dump's messages of at most 32 KiB */
	DEVICES = 1024,
	TRIES = 4,		 /* of a dump that the kernel calls inconsistent */
	ANSWER_BYTES = 15 << 20, /* a helper's answer is refused above 16 MiB */
};

static const char CLASS[] = "/sys/class", INFINIBAND[] = "/sys/class/infiniband";
static const char CORE[] = "/sys/module/ib_core", VERBS[] = "/sys/class/infiniband_verbs";
/* Inodes of the first namespaces: PROC_USER_INIT_INO, PROC_PID_INIT_INO of proc_ns.h. */
static const char FIRST_USER_NS[] = "user:[4026531837]", FIRST_PID_NS[] = "pid:[4026531836]";

struct question {
	struct pp_source *source;
	int core; /* 1, 0, -errno: is an RDMA core there? */
};

struct device {
	uint32_t index;
	char name[64];
};

struct look {
	struct mnl_socket *socket;
	struct pp_json *json;
	struct device device[DEVICES];
	unsigned int n;
	unsigned int sequence;
	unsigned int objects[PP_RESOURCE_KINDS];
	bool cut;
	char buffer[MESSAGE_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
};

static int send_request(struct look *l, uint32_t command, bool dump, const uint32_t *index)
{
	char buffer[256] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);

	h->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE((uint32_t)RDMA_NL_NLDEV, command);
	h->nlmsg_flags = NLM_F_REQUEST | (dump ? NLM_F_DUMP : 0);
	h->nlmsg_seq = ++l->sequence;
	if (index)
		mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, *index);
	return mnl_socket_sendto(l->socket, h, h->nlmsg_len) < 0 ? -errno : 0;
}

static int on_device(const struct nlattr *a, void *arg)
{
	struct device *d = arg;

	if (mnl_attr_get_type(a) == RDMA_NLDEV_ATTR_DEV_INDEX &&
	    mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
		d->index = mnl_attr_get_u32(a);
	if (mnl_attr_get_type(a) == RDMA_NLDEV_ATTR_DEV_NAME &&
	    mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
		(void)snprintf(d->name, sizeof(d->name), "%s", mnl_attr_get_str(a));
	return 0;
}

static int on_device_message(const struct nlmsghdr *h, void *arg)
{
	struct look *l = arg;
	struct device d = {0};

	if (pp_resource_attributes(mnl_nlmsg_get_payload(h), mnl_nlmsg_get_payload_len(h),
				   on_device, &d) ||
	    !d.name[0])
		return MNL_CB_OK;
	if (l->n == DEVICES)
		l->cut = true;
	else
		l->device[l->n++] = d;
	return MNL_CB_OK;
}

static int list_devices(struct look *l)
{
	int r = send_request(l, RDMA_NLDEV_CMD_GET, true, NULL), more = MNL_CB_OK;
	ssize_t n;

	if (r)
		return r;
	while (more == MNL_CB_OK) {
		n = mnl_socket_recvfrom(l->socket, l->buffer, sizeof(l->buffer));
		if (n < 0)
			return -errno;
		more = mnl_cb_run(l->buffer, (size_t)n, l->sequence,
				  mnl_socket_get_portid(l->socket), on_device_message, l);
		if (more < 0)
			return -errno;
	}
	return 0;
}

static int on_mode(const struct nlattr *a, void *arg)
{
	if (mnl_attr_get_type(a) == RDMA_NLDEV_SYS_ATTR_NETNS_MODE &&
	    mnl_attr_get_payload_len(a) >= 1)
		*(int *)arg = mnl_attr_get_u8(a);
	return 0;
}

/* An older kernel does not say: then there is one mode, shared. */
static void write_mode(struct look *l)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)l->buffer;
	int mode = -1;
	ssize_t n;

	if (send_request(l, RDMA_NLDEV_CMD_SYS_GET, false, NULL))
		return;
	n = mnl_socket_recvfrom(l->socket, l->buffer, sizeof(l->buffer));
	if (n > 0 && mnl_nlmsg_ok(h, (int)n) && h->nlmsg_seq == l->sequence &&
	    h->nlmsg_type != NLMSG_ERROR)
		(void)pp_resource_attributes(mnl_nlmsg_get_payload(h), mnl_nlmsg_get_payload_len(h),
					     on_mode, &mode);
	if (mode >= 0)
		pp_json_str(l->json, "netns_mode", mode ? "shared" : "exclusive");
}

/* One dump, into the array that the caller has begun. */
static void dump(struct look *l, const struct device *device, struct pp_resource_dump *d)
{
	ssize_t n;

	d->error = send_request(l, pp_resource_words[d->kind].command, true, &device->index);
	d->sequence = l->sequence;
	d->port = mnl_socket_get_portid(l->socket);
	while (!d->ended && !d->error && !d->malformed) {
		n = mnl_socket_recvfrom(l->socket, l->buffer, sizeof(l->buffer));
		if (n < 0)
			d->error = -errno;
		else
			pp_resource_messages(d, l->buffer, (size_t)n);
		if (l->objects[d->kind] + d->count > PP_RESOURCES_MAX ||
		    l->json->out->len > ANSWER_BYTES)
			d->error = -E2BIG;
	}
}

/* What a recording must know of a dump that is not whole; NULL: nothing. */
static const char *fault(const struct pp_resource_dump *d)
{
	if (d->error == -E2BIG)
		return "more of them than are taken";
	if (d->error)
		return pp_errno_name(d->error);
	if (d->malformed)
		return "malformed messages";
	return d->interrupted ? "the list changed while it was read, four times" : NULL;
}

/* The array of one kind of objects; *ret_fault as fault() says. False: no more should be asked. */
static bool dump_kind(struct look *l, const struct device *device, enum pp_resource_kind kind,
		      const char **ret_fault)
{
	struct pp_resource_dump d = {0};
	struct pp_json start;
	char doing[128];
	size_t len;

	(void)snprintf(doing, sizeof(doing), "%s of %s", pp_resource_words[kind].call,
		       device->name);
	pp_json_array(l->json, pp_resource_words[kind].name);
	start = *l->json;
	len = l->json->out->len;
	for (int i = 0; i < TRIES; i++) {
		/* Back to the array's begin: an interrupted dump is thrown away. */
		*l->json = start;
		l->json->out->len = len;
		pp_ask_doing(doing);
		d = (struct pp_resource_dump){.kind = kind, .json = l->json};
		dump(l, device, &d);
		if (!d.interrupted || d.error)
			break;
	}
	pp_json_end_array(l->json);
	l->objects[kind] += d.count;
	*ret_fault = fault(&d);
	return d.ended;
}

static void dump_device(struct look *l, const struct device *device)
{
	const char *faults[PP_RESOURCE_KINDS] = {0};
	bool go_on = true;

	pp_json_object(l->json, NULL);
	pp_json_u64(l->json, "index", device->index);
	pp_json_str(l->json, "name", device->name);
	for (unsigned int k = 0; k < PP_RESOURCE_KINDS; k++) {
		if (go_on)
			go_on = dump_kind(l, device, (enum pp_resource_kind)k, &faults[k]);
		else
			faults[k] = "not asked after the fault before";
	}
	pp_json_object(l->json, "faults");
	for (unsigned int k = 0; k < PP_RESOURCE_KINDS; k++)
		if (faults[k])
			pp_json_str(l->json, pp_resource_words[k].name, faults[k]);
	pp_json_end_object(l->json);
	pp_json_end_object(l->json);
	/* The rest of a dump left half-way would be taken for the next one's. */
	if (!go_on)
		l->cut = true;
}

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

/*
 * The class of uverbs devices shows those of every network namespace, netlink in exclusive mode
 * those of ours alone: what the one has and the other has not is hidden from us.
 */
static void write_hidden(struct look *l, struct pp_source *s)
{
	char path[PP_PATH_MAX], name[64];
	struct pp_names names = {0};

	pp_json_array(l->json, "hidden");
	if (!pp_source_list(s, VERBS, &names)) {
		for (size_t i = 0; i < names.n; i++) {
			bool listed = false;

			(void)snprintf(path, sizeof(path), "%s/%s/ibdev", VERBS, names.name[i]);
			if (pp_source_text(s, path, name, sizeof(name)))
				continue;
			for (unsigned int d = 0; d < l->n && !listed; d++)
				listed = !strcmp(l->device[d].name, name);
			if (!listed)
				pp_json_str(l->json, NULL, name);
		}
		pp_names_done(&names);
	}
	pp_json_end_array(l->json);
}

static void refused(struct pp_json *j, const char *call, int error)
{
	pp_json_i64(j, "errno", -error);
	pp_json_str(j, "call", call);
}

static void look(struct look *l, struct pp_source *s)
{
	int r;

	pp_ask_doing("RDMA_NLDEV_CMD_SYS_GET");
	write_mode(l);
	pp_ask_doing("RDMA_NLDEV_CMD_GET");
	r = list_devices(l);
	if (r) {
		refused(l->json, "RDMA_NLDEV_CMD_GET", r);
		return;
	}
	write_hidden(l, s);
	pp_json_array(l->json, "devices");
	for (unsigned int i = 0; i < l->n && !l->cut; i++)
		dump_device(l, &l->device[i]);
	pp_json_end_array(l->json);
	pp_json_bool(l->json, "cut", l->cut);
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct question *q = arg;
	struct look *PP_AUTO_FREE l = calloc(1, sizeof(*l));

	if (!l)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (q->core >= 0)
		pp_json_bool(data, "core", q->core);
	if (q->core <= 0)
		return 0;
	write_rights(data);
	pp_ask_doing("socket(NETLINK_RDMA)");
	l->json = data;
	l->socket = mnl_socket_open(NETLINK_RDMA);
	if (!l->socket) {
		refused(data, "socket(NETLINK_RDMA)", -errno);
		return 0;
	}
	if (mnl_socket_bind(l->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		refused(data, "bind(NETLINK_RDMA)", -errno);
	else
		look(l, q->source);
	(void)mnl_socket_close(l->socket);
	return 0;
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
