/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions to netlink and their answers, over a link that a test may replace.
 */
#include "trace/resource_parts.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum {
	MESSAGE_BYTES = 1 << 16, /* netlink makes a dump's messages of at most 32 KiB */
	DEVICES = 1024,
	TRIES = 4,		 /* of a dump that the kernel calls inconsistent */
	ANSWER_BYTES = 15 << 20, /* a helper's answer is refused above 16 MiB */
};

static const char VERBS[] = "/sys/class/infiniband_verbs";

struct device {
	uint32_t index;
	char name[64];
};

struct look {
	const struct pp_resource_link *link;
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
	return l->link->send(l->link->arg, h, h->nlmsg_len);
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

static int take_device(void *arg, const void *attributes, size_t len)
{
	struct look *l = arg;
	struct device d = {0};

	if (pp_resource_attributes(attributes, len, on_device, &d) || !d.name[0] || l->n == DEVICES)
		l->cut = true;
	else
		l->device[l->n++] = d;
	return 0;
}

/* Sends @command and receives what belongs to it, until its end. */
static void exchange(struct look *l, uint32_t command, bool dump, const uint32_t *index,
		     struct pp_resource_dump *d)
{
	ssize_t n;

	d->error = send_request(l, command, dump, index);
	d->sequence = l->sequence;
	d->port = l->link->port;
	while (!d->ended && !d->error && !d->malformed) {
		n = l->link->receive(l->link->arg, l->buffer, sizeof(l->buffer));
		if (n < 0)
			d->error = (int)n;
		else
			pp_resource_messages(d, l->buffer, (size_t)n);
		if (d->json && (l->objects[d->kind] + d->count > PP_RESOURCES_MAX ||
				l->json->out->len > ANSWER_BYTES))
			d->error = -E2BIG;
	}
}

static int list_devices(struct look *l)
{
	struct pp_resource_dump d;

	for (int i = 0; i < TRIES; i++) {
		l->n = 0;
		l->cut = false;
		d = (struct pp_resource_dump){
			.command = RDMA_NLDEV_CMD_GET, .take = take_device, .arg = l};
		exchange(l, RDMA_NLDEV_CMD_GET, true, NULL, &d);
		if (!d.interrupted || d.error)
			break;
	}
	l->cut |= d.interrupted || d.malformed;
	return d.error;
}

static int on_mode(const struct nlattr *a, void *arg)
{
	if (mnl_attr_get_type(a) == RDMA_NLDEV_SYS_ATTR_NETNS_MODE &&
	    mnl_attr_get_payload_len(a) >= 1)
		*(int *)arg = mnl_attr_get_u8(a);
	return 0;
}

static int take_mode(void *arg, const void *attributes, size_t len)
{
	return pp_resource_attributes(attributes, len, on_mode, arg);
}

/* An older kernel does not say: then there is one mode, shared. */
static void write_mode(struct look *l)
{
	int mode = -1;
	struct pp_resource_dump d = {
		.command = RDMA_NLDEV_CMD_SYS_GET, .take = take_mode, .arg = &mode};

	exchange(l, RDMA_NLDEV_CMD_SYS_GET, false, NULL, &d);
	if (mode >= 0)
		pp_json_str(l->json, "netns_mode", mode ? "shared" : "exclusive");
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
		exchange(l, pp_resource_words[kind].command, true, &device->index, &d);
		if (!d.interrupted || d.error)
			break;
	}
	pp_json_end_array(l->json);
	l->objects[kind] += d.count;
	*ret_fault = fault(&d);
	return d.ended;
}

/* False: a dump was left half-way, and the kernel would not begin another one. */
static bool dump_device(struct look *l, const struct device *device)
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
	return go_on;
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

void pp_resource_refused(struct pp_json *j, const char *call, int error)
{
	pp_json_i64(j, "errno", -error);
	pp_json_str(j, "call", call);
}

static void look(struct look *l, struct pp_source *s)
{
	bool go_on = true;
	int r;

	pp_ask_doing("RDMA_NLDEV_CMD_SYS_GET");
	write_mode(l);
	pp_ask_doing("RDMA_NLDEV_CMD_GET");
	r = list_devices(l);
	if (r) {
		pp_resource_refused(l->json, "RDMA_NLDEV_CMD_GET", r);
		return;
	}
	write_hidden(l, s);
	pp_json_array(l->json, "devices");
	for (unsigned int i = 0; i < l->n && go_on; i++)
		go_on = dump_device(l, &l->device[i]);
	pp_json_end_array(l->json);
	pp_json_bool(l->json, "cut", l->cut || !go_on);
}

int pp_resource_look(const struct pp_resource_link *link, struct pp_source *s, struct pp_json *j)
{
	struct look *PP_AUTO_FREE l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->link = link;
	l->json = j;
	look(l, s);
	return 0;
}
