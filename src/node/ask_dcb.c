/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "node/dcb.h"
#include "base/banned.h"

enum { ANSWER_BYTES = 32768 };

struct exchange {
	struct pp_dcb dcb;
	bool answered;
	int error;
};

static int on_message(const struct nlmsghdr *header, void *arg)
{
	struct exchange *x = arg;
	size_t len = mnl_nlmsg_get_payload_len(header);

	if (header->nlmsg_type != RTM_GETDCB && header->nlmsg_type != RTM_SETDCB)
		return MNL_CB_OK;
	if (len < sizeof(struct dcbmsg))
		x->error = -EBADMSG;
	else
		x->error = pp_dcb_parse(mnl_nlmsg_get_payload_offset(header, sizeof(struct dcbmsg)),
					len - MNL_ALIGN(sizeof(struct dcbmsg)), &x->dcb);
	x->answered = true;
	return MNL_CB_STOP;
}

/* One request and its answer; 0 or -errno. */
static int get(struct mnl_socket *socket, unsigned int sequence, const char *netdev,
	       struct pp_dcb *ret)
{
	char buffer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct exchange x = {0};
	struct dcbmsg *message;
	ssize_t n;
	int more = 1;

	header->nlmsg_type = RTM_GETDCB;
	header->nlmsg_flags = NLM_F_REQUEST;
	header->nlmsg_seq = sequence;
	message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
	message->dcb_family = AF_UNSPEC;
	message->cmd = DCB_CMD_IEEE_GET;
	mnl_attr_put_strz(header, DCB_ATTR_IFNAME, netdev);
	if (mnl_socket_sendto(socket, header, header->nlmsg_len) < 0)
		return -errno;
	while (!x.answered && more > 0) {
		n = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (n < 0)
			return -errno;
		more = mnl_cb_run(buffer, (size_t)n, sequence, mnl_socket_get_portid(socket),
				  on_message, &x);
		if (more < 0)
			return -errno;
	}
	if (!x.answered || x.error)
		return x.error ? x.error : -ENODATA;
	*ret = x.dcb;
	return 0;
}

static void write_dcb(struct pp_json *data, const struct pp_dcb *dcb)
{
	if (dcb->has_pfc)
		pp_json_i64(data, "pfc_mask", dcb->pfc_enabled);
	if (dcb->has_ets) {
		pp_json_array(data, "priority_tc");
		for (int i = 0; i < PP_DCB_PRIORITIES; i++)
			pp_json_i64(data, NULL, dcb->prio_tc[i]);
		pp_json_end_array(data);
	}
	if (dcb->has_apps)
		pp_json_i64(data, "dscp_apps", dcb->dscp_apps);
	if (dcb->has_trust) {
		pp_json_array(data, "trust");
		for (unsigned int i = 0; i < dcb->n_trust; i++)
			pp_json_i64(data, NULL, dcb->trust[i]);
		pp_json_end_array(data);
	}
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct pp_netdevs *netdevs = arg;
	struct mnl_socket *socket;
	struct pp_dcb dcb;
	int r;

	pp_ask_doing("RTM_GETDCB");
	socket = mnl_socket_open(NETLINK_ROUTE);
	if (!socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return pp_error_set(err, -errno, "socket(NETLINK_ROUTE): %s", pp_errno_name(errno));
	for (size_t i = 0; i < netdevs->n; i++) {
		dcb = (struct pp_dcb){0};
		r = strlen(netdevs->name[i]) < IF_NAMESIZE
			    ? get(socket, (unsigned int)i + 1, netdevs->name[i], &dcb)
			    : -ENODEV;
		pp_json_object(data, netdevs->name[i]);
		pp_json_i64(data, "errno", -r);
		write_dcb(data, &dcb);
		pp_json_end_object(data);
	}
	(void)mnl_socket_close(socket);
	return 0;
}

int pp_ask_dcb(struct pp_source *s, const struct pp_netdevs *netdevs, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "dcb", .run = run, .arg = netdevs};

	return pp_ask(s, &q, ret);
}
