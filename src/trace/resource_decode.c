/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink's bytes to objects. Layouts: include/uapi/rdma/rdma_netlink.h; which attribute holds
 * what: drivers/infiniband/core/nldev.c of 6.1 and 6.12. A dump nests the objects in a table, an
 * answer to the question for one object has its attributes beside the device's.
 */
#include "trace/resource_parts.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

#include "base/banned.h"

const struct pp_resource_words pp_resource_words[PP_RESOURCE_KINDS] = {
	[PP_RESOURCE_MR] = {"mr", RDMA_NLDEV_CMD_RES_MR_GET, "RDMA_NLDEV_CMD_RES_MR_GET",
			    RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MRN,
			    RDMA_NLDEV_ATTR_RES_PDN, "regions"},
	[PP_RESOURCE_PD] = {"pd", RDMA_NLDEV_CMD_RES_PD_GET, "RDMA_NLDEV_CMD_RES_PD_GET",
			    RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PDN,
			    RDMA_NLDEV_ATTR_RES_CTXN, "protection domains"},
	[PP_RESOURCE_CTX] = {"ctx", RDMA_NLDEV_CMD_RES_CTX_GET, "RDMA_NLDEV_CMD_RES_CTX_GET",
			     RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTXN, 0, "contexts"},
	[PP_RESOURCE_QP] = {"qp", RDMA_NLDEV_CMD_RES_QP_GET, "RDMA_NLDEV_CMD_RES_QP_GET",
			    RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_LQPN,
			    RDMA_NLDEV_ATTR_RES_PDN, "queue pairs"},
};

/* One object being read. */
struct object {
	enum pp_resource_kind kind;
	struct pp_resource r;
	bool has_id, has_lkey, has_rkey;
};

/* A table being read. */
struct table {
	enum pp_resource_kind kind;
	struct pp_json *json;
	unsigned int count;
};

int pp_resource_attributes(const void *bytes, size_t len,
			   int (*fn)(const struct nlattr *attribute, void *arg), void *arg)
{
	const char *at = bytes;
	const struct nlattr *a;
	size_t step;
	int r;

	while (len >= sizeof(*a)) {
		a = (const struct nlattr *)at;
		if (a->nla_len < sizeof(*a) || a->nla_len > len)
			return -EBADMSG;
		r = fn(a, arg);
		if (r)
			return r;
		step = MNL_ALIGN(a->nla_len);
		if (step >= len)
			return 0;
		at += step;
		len -= step;
	}
	return len ? -EBADMSG : 0;
}

static int take_u32(const struct nlattr *a, uint32_t *ret)
{
	if (mnl_attr_validate(a, MNL_TYPE_U32) < 0)
		return -EBADMSG;
	*ret = mnl_attr_get_u32(a);
	return 0;
}

static int take_u64(const struct nlattr *a, uint64_t *ret)
{
	if (mnl_attr_validate(a, MNL_TYPE_U64) < 0)
		return -EBADMSG;
	*ret = mnl_attr_get_u64(a);
	return 0;
}

/* A name as the kernel ends it: with a NUL inside the attribute. */
static int take_text(const struct nlattr *a, char *buf, size_t size)
{
	size_t len = mnl_attr_get_payload_len(a);
	const char *text = mnl_attr_get_payload(a);

	if (!len || memchr(text, '\0', len) != text + len - 1)
		return -EBADMSG;
	if (len > size)
		len = size;
	memcpy(buf, text, len - 1);
	buf[len - 1] = '\0';
	return 0;
}

static int on_member(const struct nlattr *a, void *arg)
{
	struct object *o = arg;
	const struct pp_resource_words *w = &pp_resource_words[o->kind];
	uint16_t type = mnl_attr_get_type(a);

	if (type == w->id) {
		o->has_id = true;
		return take_u32(a, &o->r.id);
	}
	if (w->parent && type == w->parent) {
		o->r.has_parent = true;
		return take_u32(a, &o->r.parent);
	}
	switch (type) {
	case RDMA_NLDEV_ATTR_RES_PID:
		return take_u32(a, &o->r.tid);
	case RDMA_NLDEV_ATTR_RES_KERN_NAME:
		return take_text(a, o->r.kernel_user, sizeof(o->r.kernel_user));
	case RDMA_NLDEV_ATTR_RES_LKEY:
		o->has_lkey = true;
		return take_u32(a, &o->r.lkey);
	case RDMA_NLDEV_ATTR_RES_RKEY:
		o->has_rkey = true;
		return take_u32(a, &o->r.rkey);
	case RDMA_NLDEV_ATTR_RES_MRLEN:
		o->r.has_length = true;
		return take_u64(a, &o->r.length);
	default:
		return 0;
	}
}

/*
 * Numbers of 64 bits go as signed ones: a region of all memory (implicit on-demand paging) has the
 * length 2^64 - 1, which JSON readers do not take.
 */
static void write_object(struct pp_json *j, const struct object *o)
{
	const struct pp_resource *r = &o->r;

	pp_json_object(j, NULL);
	pp_json_u64(j, "id", r->id);
	if (r->has_parent)
		pp_json_u64(j, "parent", r->parent);
	if (r->tid)
		pp_json_u64(j, "tid", r->tid);
	if (r->kernel_user[0])
		pp_json_str(j, "kernel", r->kernel_user);
	if (r->has_length)
		pp_json_i64(j, "length", (int64_t)r->length);
	if (o->has_lkey)
		pp_json_u64(j, "lkey", r->lkey);
	if (o->has_rkey)
		pp_json_u64(j, "rkey", r->rkey);
	pp_json_end_object(j);
}

/* An object's attributes; with @alone those of the device stand beside them. */
static int decode_object(struct table *t, const void *bytes, size_t len, bool alone)
{
	struct object o = {.kind = t->kind};
	int r = pp_resource_attributes(bytes, len, on_member, &o);

	if (r)
		return r;
	if (!o.has_id)
		return alone ? 0 : -EBADMSG;
	write_object(t->json, &o);
	t->count++;
	return 0;
}

static int on_entry(const struct nlattr *a, void *arg)
{
	return decode_object(arg, mnl_attr_get_payload(a), mnl_attr_get_payload_len(a), false);
}

struct top {
	struct table *table;
	bool nested;
};

static int on_top(const struct nlattr *a, void *arg)
{
	struct top *top = arg;

	if (mnl_attr_get_type(a) != pp_resource_words[top->table->kind].table)
		return 0;
	top->nested = true;
	return pp_resource_attributes(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a),
				      on_entry, top->table);
}

int pp_resource_decode(enum pp_resource_kind kind, const void *message, size_t len,
		       struct pp_json *j, unsigned int *ret_count)
{
	struct table t = {.kind = kind, .json = j};
	struct top top = {.table = &t};
	int r = pp_resource_attributes(message, len, on_top, &top);

	if (!r && !top.nested)
		r = decode_object(&t, message, len, true);
	*ret_count = t.count;
	return r;
}

static void on_end(struct pp_resource_dump *d, const struct nlmsghdr *h)
{
	int32_t error = 0;

	if (mnl_nlmsg_get_payload_len(h) >= sizeof(error))
		memcpy(&error, mnl_nlmsg_get_payload(h), sizeof(error));
	else if (h->nlmsg_type == NLMSG_ERROR)
		d->malformed = true;
	if (error < 0)
		d->error = error;
	d->ended = true;
}

static void on_message(struct pp_resource_dump *d, const struct nlmsghdr *h)
{
	uint32_t command = d->take ? d->command : pp_resource_words[d->kind].command;
	const void *attributes = mnl_nlmsg_get_payload(h);
	size_t len = mnl_nlmsg_get_payload_len(h);
	unsigned int n = 0;
	int r;

	if (h->nlmsg_flags & NLM_F_DUMP_INTR)
		d->interrupted = true;
	if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
		on_end(d, h);
		return;
	}
	if (h->nlmsg_type == NLMSG_OVERRUN)
		d->error = -ENOBUFS;
	if (h->nlmsg_type != RDMA_NL_GET_TYPE((uint32_t)RDMA_NL_NLDEV, command))
		return;
	r = d->take ? d->take(d->arg, attributes, len)
		    : pp_resource_decode(d->kind, attributes, len, d->json, &n);
	if (r)
		d->malformed = true;
	d->count += n;
	/* An answer about one object is a message alone. */
	if (!(h->nlmsg_flags & NLM_F_MULTI))
		d->ended = true;
}

void pp_resource_messages(struct pp_resource_dump *d, const void *bytes, size_t len)
{
	const struct nlmsghdr *h = bytes;
	int left = len > INT32_MAX ? INT32_MAX : (int)len;
	size_t step;

	while (!d->ended && left >= (int)sizeof(*h)) {
		if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > (uint32_t)left) {
			d->malformed = true;
			return;
		}
		if ((!d->sequence || h->nlmsg_seq == d->sequence) &&
		    (!d->port || h->nlmsg_pid == d->port))
			on_message(d, h);
		step = MNL_ALIGN((size_t)h->nlmsg_len);
		if (step >= (size_t)left)
			return;
		left -= (int)step;
		h = (const struct nlmsghdr *)((const char *)h + step);
	}
	if (!d->ended && left)
		d->malformed = true;
}
