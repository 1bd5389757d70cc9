/* SPDX-License-Identifier: Apache-2.0 */
#include "node/rdma_netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <time.h>

#include "base/banned.h"

enum { ANSWER_BYTES = 16384, SEQUENCE = 1 };

static int on_attribute(const struct nlattr *attribute, void *arg)
{
	int *mode = arg;

	if (mnl_attr_get_type(attribute) == RDMA_NLDEV_SYS_ATTR_NETNS_MODE &&
	    mnl_attr_get_payload_len(attribute) >= 1)
		*mode = mnl_attr_get_u8(attribute);
	return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *header, void *arg)
{
	return mnl_attr_parse(header, 0, on_attribute, arg) < 0 ? MNL_CB_ERROR : MNL_CB_STOP;
}

/* Sends SYS_GET and reads its answer; *ret_mode -1 when the kernel says nothing of it. */
static int exchange(struct mnl_socket *socket, int *ret_mode)
{
	char buffer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	ssize_t n;
	int mode = -1;

	header->nlmsg_type =
		(uint16_t)RDMA_NL_GET_TYPE((uint32_t)RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
	header->nlmsg_flags = NLM_F_REQUEST;
	header->nlmsg_seq = SEQUENCE;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, header, header->nlmsg_len) < 0)
		return -errno;
	n = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
	if (n < 0)
		return -errno;
	if (mnl_cb_run(buffer, (size_t)n, SEQUENCE, mnl_socket_get_portid(socket), on_message,
		       &mode) < 0)
		return -errno;
	*ret_mode = mode;
	return 0;
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct mnl_socket *socket;
	int mode, r;

	(void)arg;
	pp_ask_doing("socket(NETLINK_RDMA)");
	socket = mnl_socket_open(NETLINK_RDMA);
	if (!socket)
		return pp_error_set(err, -errno, "socket(NETLINK_RDMA): %s", pp_errno_name(errno));
	pp_ask_doing("RDMA_NLDEV_CMD_SYS_GET");
	r = exchange(socket, &mode);
	(void)mnl_socket_close(socket);
	if (r)
		return pp_error_set(err, r, "RDMA_NLDEV_CMD_SYS_GET: %s", pp_errno_name(r));
	if (mode >= 0)
		pp_json_str(data, "netns_mode", mode ? "shared" : "exclusive");
	return 0;
}

int pp_ask_rdma_netlink(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "rdma-netlink", .run = run};

	return pp_ask(s, &q, ret);
}
