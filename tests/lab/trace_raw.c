/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: trace_raw DIRECTORY [UID]
 *
 * What the kernel sends for a dump of each kind of RDMA objects of device 0, byte by byte:
 * DIRECTORY/{mr,pd,ctx,qp}.bin. It knows nothing of how the project reads them. With UID it
 * asks as that user, without a right.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t command;
} kinds[] = {{"mr", RDMA_NLDEV_CMD_RES_MR_GET},
	     {"pd", RDMA_NLDEV_CMD_RES_PD_GET},
	     {"ctx", RDMA_NLDEV_CMD_RES_CTX_GET},
	     {"qp", RDMA_NLDEV_CMD_RES_QP_GET}};

static int dump(struct mnl_socket *s, uint32_t command, uint32_t sequence, FILE *to)
{
	static char buffer[1 << 16];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);
	const struct nlmsghdr *answer;
	ssize_t n;
	int left;

	h->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE((uint32_t)RDMA_NL_NLDEV, command);
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = sequence;
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	if (mnl_socket_sendto(s, h, h->nlmsg_len) < 0)
		return -errno;
	for (;;) {
		n = mnl_socket_recvfrom(s, buffer, sizeof(buffer));
		if (n <= 0)
			return -errno;
		(void)fwrite(buffer, 1, (size_t)n, to);
		answer = (const struct nlmsghdr *)buffer;
		for (left = (int)n; mnl_nlmsg_ok(answer, left);
		     answer = mnl_nlmsg_next(answer, &left))
			if (answer->nlmsg_type == NLMSG_DONE || answer->nlmsg_type == NLMSG_ERROR)
				return 0;
	}
}

int main(int argc, char **argv)
{
	uid_t uid = argc > 2 ? (uid_t)strtoul(argv[2], NULL, 10) : 0;
	struct mnl_socket *s = uid && setuid(uid) ? NULL : mnl_socket_open(NETLINK_RDMA);
	char path[1024];
	FILE *to;
	int r = 0;

	if (argc < 2 || !s || mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0) {
		perror("trace_raw");
		return 1;
	}
	for (unsigned int i = 0; !r && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s.bin", argv[1], kinds[i].name);
		to = fopen(path, "wb");
		r = to ? dump(s, kinds[i].command, i + 1, to) : -errno;
		if (to)
			(void)fclose(to);
	}
	if (r)
		(void)fprintf(stderr, "trace_raw: %s\n", strerror(-r));
	(void)mnl_socket_close(s);
	return r ? 1 : 0;
}
