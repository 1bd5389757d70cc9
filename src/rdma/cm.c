/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of a connection by librdmacm do: events with deadlines, attributes, the end.
 */
#include "rdma/cm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/gid.h"
#include "rdma/cm_parts.h"
#include "rdma/endpoint_parts.h"
#include "base/banned.h"

enum {
	SLICE_MS = 50,
	MAGIC = 0x7070636d, /* "ppcm" */
	VERSION = 1,
	/* Of the kernel alone (SMAC, VID): an older rdma_ucm hands them out all the same. */
	KERNEL_BITS = 0xf << 21,
	REJECTED_NOBODY = 8,
	REJECTED_BY_PROGRAM = 28,
	MOST_READS = 255,
};

void pp_cm_greet(uint8_t ret[PP_CM_GREETING], const struct pp_cm_greeting *g)
{
	uint32_t words[4] = {htobe32(MAGIC), htobe32(VERSION), htobe32(g->qp), htobe32(g->mtu)};
	uint64_t nonce = htobe64(g->nonce);

	memcpy(ret, words, sizeof(words));
	memcpy(ret + sizeof(words), &nonce, sizeof(nonce));
}

int pp_cm_greeting_read(const void *bytes, size_t len, struct pp_cm_greeting *ret)
{
	uint32_t words[4];
	uint64_t nonce;

	if (!bytes || len < PP_CM_GREETING)
		return -EBADMSG;
	memcpy(words, bytes, sizeof(words));
	memcpy(&nonce, (const uint8_t *)bytes + sizeof(words), sizeof(nonce));
	if (be32toh(words[0]) != MAGIC || be32toh(words[1]) != VERSION ||
	    !pp_endpoint_mtu(be32toh(words[3])))
		return -EBADMSG;
	*ret = (struct pp_cm_greeting){
		.nonce = be64toh(nonce), .qp = be32toh(words[2]), .mtu = be32toh(words[3])};
	return 0;
}

/* ── addresses ── */

static int parse_address(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		memcpy(ret, &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		memcpy(ret, &v6, sizeof(v6));
	else
		return -EINVAL;
	return 0;
}

/* librdmacm finds an InfiniBand port by the address of an interface, never by a GID of its. */
static int ipoib_address(const struct pp_endpoint *e, const char *ipoib, char ret[PP_CM_ADDRESS],
			 struct pp_error *err)
{
	struct sockaddr_storage at;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at;

	if (!ipoib || parse_address(ipoib, 0, &at) ||
	    (at.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)))
		return pp_error_set(
			err, -EADDRNOTAVAIL,
			"%s port %u is InfiniBand, and no IPoIB interface of it has an "
			"address that is routable: -R needs one (ip link set ib0 up; ip "
			"address add ADDRESS/24 dev ib0)",
			e->options.device, e->options.port);
	(void)snprintf(ret, PP_CM_ADDRESS, "%s", ipoib);
	return 0;
}

int pp_cm_address(const struct pp_endpoint *e, const char *ipoib, char ret[PP_CM_ADDRESS],
		  struct pp_error *err)
{
	struct pp_gid gid;

	memcpy(gid.raw, e->gid.raw, sizeof(gid.raw));
	if (e->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return ipoib_address(e, ipoib, ret, err);
	if (pp_gid_is_link_local(&gid))
		return pp_error_set(err, -EADDRNOTAVAIL,
				    "%s port %u has a link-local GID: -R needs an address that is "
				    "routable, give its netdev one",
				    e->options.device, e->options.port);
	if (pp_gid_is_ipv4(&gid))
		(void)inet_ntop(AF_INET, gid.raw + 12, ret, PP_CM_ADDRESS);
	else
		(void)inet_ntop(AF_INET6, gid.raw, ret, PP_CM_ADDRESS);
	return 0;
}

/* ── life ── */

int pp_cm_fails(const struct pp_cm *c, const char *call, struct pp_error *err)
{
	int e = errno ? errno : EIO;
	char text[128];

	return pp_error_set(err, -e, "%s (%s): %s", call, c->options.address,
			    pp_errno_text(e, text, sizeof(text)));
}

int pp_cm_new(struct pp_endpoint *e, const struct pp_cm_options *options, struct pp_cm **ret,
	      struct pp_error *err)
{
	struct pp_cm *c = calloc(1, sizeof(*c));
	int flags, r;

	if (!c)
		return pp_error_set(err, -ENOMEM, "no memory for connections");
	c->e = e;
	c->options = *options;
	r = parse_address(options->address, options->port, &c->at);
	if (r)
		(void)pp_error_set(err, r, "'%s' is no IPv4 or IPv6 address", options->address);
	if (!r)
		r = pp_cm_library_load(&c->lib, err);
	if (!r) {
		errno = 0;
		c->channel = c->lib.create_channel();
		/* ENODEV, ENOENT: no /dev/infiniband/rdma_cm. */
		r = c->channel ? 0 : pp_cm_fails(c, "rdma_create_event_channel", err);
	}
	if (!r) {
		flags = fcntl(c->channel->fd, F_GETFL);
		if (flags < 0 || fcntl(c->channel->fd, F_SETFL, flags | O_NONBLOCK))
			r = pp_cm_fails(c, "O_NONBLOCK on an event channel", err);
	}
	if (r) {
		pp_cm_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct pp_cm *pp_cm_free(struct pp_cm *c)
{
	if (!c)
		return NULL;
	for (unsigned int q = 0; q < PP_ENDPOINT_QPS; q++) {
		if (c->established[q])
			(void)c->lib.disconnect(c->id[q]);
		if (c->id[q])
			(void)c->lib.destroy_id(c->id[q]);
	}
	if (c->listener)
		(void)c->lib.destroy_id(c->listener);
	if (c->channel)
		c->lib.destroy_channel(c->channel);
	free(c);
	return NULL;
}

/* ── events ── */

int pp_cm_next(struct pp_cm *c, const char *doing, struct pp_cm_event **ret, struct pp_error *err)
{
	struct pollfd fd = {.fd = c->channel->fd, .events = POLLIN};

	for (;;) {
		errno = 0;
		if (!c->lib.get_event(c->channel, ret))
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return pp_cm_fails(c, "rdma_get_cm_event", err);
		if (c->options.stopped && c->options.stopped())
			return pp_error_set(err, -EINTR, "interrupted");
		if (pp_clock_monotonic() >= c->options.deadline)
			return pp_error_set(err, -ETIMEDOUT, "-R: %s (%s) did not end in time",
					    doing, c->options.address);
		(void)poll(&fd, 1, SLICE_MS);
	}
}

static int errno_of(const struct pp_cm_event *event)
{
	switch (event->type) {
	case PP_CM_REJECTED:
		return event->status == REJECTED_NOBODY	      ? -ECONNREFUSED
		       : event->status == REJECTED_BY_PROGRAM ? -EACCES
							      : -ECONNABORTED;
	case PP_CM_DISCONNECTED:
		return -ECONNRESET;
	case PP_CM_DEVICE_REMOVAL:
		return -ENODEV;
	case PP_CM_ADDR_ERROR:
		return event->status == -ENODEV ? -ENODEV : -EHOSTUNREACH;
	default:
		return -EHOSTUNREACH;
	}
}

int pp_cm_refused(const struct pp_cm *c, const struct pp_cm_event *event, struct pp_error *err)
{
	static const struct {
		int code;
		const char *help;
	} helps[] = {
		{-ECONNREFUSED, "nobody listens there"},
		{-EACCES, "the peer refused: it belongs to another run"},
		{-ENODEV, "no RDMA device has this address"},
		{-EHOSTUNREACH, "no way by an RDMA device: address, route, firewall"},
	};
	int code = errno_of(event);
	const char *help = NULL;

	for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++)
		if (helps[i].code == code)
			help = helps[i].help;
	return pp_error_set(err, code, "-R: %s: %s, status %d%s%s", c->options.address,
			    c->lib.event_text(event->type), event->status, help ? ": " : "",
			    help ? help : "");
}

int pp_cm_same_port(const struct pp_cm *c, const struct pp_cm_id *id, struct pp_error *err)
{
	const char *name = id->verbs ? c->e->verbs->get_device_name(id->verbs->device) : NULL;

	if (name && !strcmp(name, c->e->options.device) && id->port == c->e->options.port)
		return 0;
	return pp_error_set(err, -ENODEV,
			    "-R: %s leads by %s port %u, not by %s port %u: choose an address of "
			    "that port's netdev",
			    c->options.address, name ? name : "no device", id->port,
			    c->e->options.device, c->e->options.port);
}

/* ── queue pairs ── */

static uint8_t reads(int of_device)
{
	return (uint8_t)(of_device < 0 ? 0 : of_device > MOST_READS ? MOST_READS : of_device);
}

struct pp_cm_parameters pp_cm_parameters(const struct pp_cm *c, unsigned int qp)
{
	return (struct pp_cm_parameters){
		.responder_resources = reads(c->e->device.max_qp_rd_atom),
		.initiator_depth = reads(c->e->device.max_qp_init_rd_atom),
		.retry_count = (uint8_t)c->e->options.retries,
		.rnr_retry_count = 7, /* for ever */
		.qp_num = c->e->qp[qp]->qp_num,
	};
}

/* What this end was told to do differently from what librdmacm takes. */
static void adapt(struct pp_cm *c, struct ibv_qp_attr *a, uint32_t peer_mtu)
{
	struct pp_endpoint *e = c->e;
	enum ibv_mtu mtu = pp_endpoint_mtu(e->options.mtu < peer_mtu ? e->options.mtu : peer_mtu);

	switch (a->qp_state) {
	case IBV_QPS_INIT:
		a->qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		break;
	case IBV_QPS_RTR:
		a->path_mtu = mtu < a->path_mtu ? mtu : a->path_mtu;
		a->min_rnr_timer = 12; /* 0.64 ms; the kernel takes 0, which is 655 ms */
		if (a->ah_attr.is_global && e->options.traffic_class)
			a->ah_attr.grh.traffic_class = (uint8_t)e->options.traffic_class;
		if (!a->ah_attr.is_global)
			break;
		/* It chooses the GID by the address. */
		e->options.gid_index = a->ah_attr.grh.sgid_index;
		(void)e->verbs->query_gid(e->context, e->options.port, e->options.gid_index,
					  &e->gid);
		break;
	case IBV_QPS_RTS:
		a->timeout = (uint8_t)e->options.timeout;
		a->retry_cnt = (uint8_t)e->options.retries;
		a->rnr_retry = 7;
		if (a->max_rd_atomic < e->rd_atomic)
			e->rd_atomic = a->max_rd_atomic;
		break;
	default:
		break;
	}
}

int pp_cm_to_rts(struct pp_cm *c, struct pp_cm_id *id, unsigned int qp, uint32_t mtu,
		 struct pp_error *err)
{
	static const struct {
		enum ibv_qp_state state;
		const char *name;
	} states[] = {{IBV_QPS_INIT, "INIT"}, {IBV_QPS_RTR, "RTR"}, {IBV_QPS_RTS, "RTS"}};
	int r = 0;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]) && !r; i++) {
		struct ibv_qp_attr attr = {.qp_state = states[i].state};
		int mask = 0;

		errno = 0;
		if (c->lib.qp_attributes(id, &attr, &mask))
			return pp_cm_fails(c, "rdma_init_qp_attr", err);
		attr.qp_state = states[i].state;
		adapt(c, &attr, mtu);
		r = pp_endpoint_modify(c->e, qp, &attr, mask & ~KERNEL_BITS, states[i].name, err);
	}
	return r;
}
