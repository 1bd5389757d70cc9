/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device answers to a registration of a DMA-BUF: by ibv_reg_dmabuf_mr(), where a provider
 * may answer in the kernel's place, and by the kernel's own method with no library between. All
 * with descriptor -1, which a driver that has the method refuses with EBADF.
 *
 * Two more requests tell that the kernel read what was sent: a protection domain that is not there
 * is ENOENT, and a method that no kernel has is EPROTONOSUPPORT.
 *
 * usage: kernel_dmabuf DEVICE; prints "library N", "kernel N", "no domain N", "no method N"
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { ATTRIBUTES = 9, PAGE = 4096, NO_HANDLE = 0x7fffff, NO_METHOD = 0xff };

static void add(struct ib_uverbs_ioctl_hdr *r, unsigned int id, unsigned int len, uint64_t data)
{
	r->attrs[r->num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = (uint16_t)id,
		.len = (uint16_t)len,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
}

/* The errno of the kernel's answer. */
static int ask(const struct ibv_context *context, uint32_t domain, unsigned int method)
{
	uint32_t lkey = 0, rkey = 0;
	size_t len =
		sizeof(struct ib_uverbs_ioctl_hdr) + ATTRIBUTES * sizeof(struct ib_uverbs_attr);
	struct ib_uverbs_ioctl_hdr *r = calloc(1, len);
	int error;

	if (!r)
		return ENOMEM;
	r->length = (uint16_t)len;
	r->object_id = UVERBS_OBJECT_MR;
	r->method_id = (uint16_t)method;
	r->driver_id = RDMA_DRIVER_RXE;
	add(r, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, domain);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof(uint64_t), 0);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(uint64_t), PAGE);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof(uint64_t), 0);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(uint32_t), UINT32_MAX);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, sizeof(uint32_t), IBV_ACCESS_LOCAL_WRITE);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(lkey), (uintptr_t)&lkey);
	add(r, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(rkey), (uintptr_t)&rkey);
	error = ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, r) ? errno : 0;
	free(r);
	return error;
}

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

int main(int argc, char **argv)
{
	struct ibv_context *context = argc == 2 ? open_by_name(argv[1]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_mr *mr;

	if (!pd) {
		(void)fprintf(stderr, "no device, or no protection domain\n");
		return 1;
	}
	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, IBV_ACCESS_LOCAL_WRITE);
	printf("library %d\n", mr ? 0 : errno);
	printf("kernel %d\n", ask(context, pd->handle, UVERBS_METHOD_REG_DMABUF_MR));
	printf("no domain %d\n", ask(context, NO_HANDLE, UVERBS_METHOD_REG_DMABUF_MR));
	printf("no method %d\n", ask(context, pd->handle, NO_METHOD));
	if (mr)
		(void)ibv_dereg_mr(mr);
	(void)ibv_dealloc_pd(pd);
	(void)ibv_close_device(context);
	return 0;
}
