/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libibverbs.so.1 whose one device does what the environment variable PP_FAKE_VERBS says, for
 * tests of programs that load libibverbs. Symbol versions are rdma-core's. Words, joined by commas:
 *
 *   list-blocks list-crashes no-devices open-eacces open-blocks
 *   reg-enomem dmabuf-<errno> dmabuf-blocks dmabuf-succeeds stale-errno
 *   two-devices gpu-dmabuf-<errno> gpu-peermem-<errno> gpu-blocks (the first device only)
 *
 * Without a word everything works, and a DMA-BUF descriptor of -1 is refused with EBADF. What has
 * 64 KiB is a GPU's.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define EXPORT __attribute__((visibility("default")))

enum { GPU_BYTES = 65536 };

static struct ibv_device devices[] = {{.name = "fake_0", .dev_name = "uverbs7"},
				      {.name = "fake_1", .dev_name = "uverbs8"}};
static struct ibv_context contexts[] = {{.device = &devices[0]}, {.device = &devices[1]}};
static struct ibv_pd pds[] = {{.context = &contexts[0]}, {.context = &contexts[1]}};

/* The number behind a word like "dmabuf-95"; 0 none. */
static int number(const char *text)
{
	int n = 0;

	for (; text && *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (*text - '0');
	return n;
}

static bool is_pd(const struct ibv_pd *p)
{
	return p == &pds[0] || p == &pds[1];
}

static const char *behaviour(const char *word)
{
	const char *all = getenv("PP_FAKE_VERBS");
	size_t len = strlen(word);

	for (const char *p = all ? all : ""; *p; p += strcspn(p, ","), p += *p == ',')
		if (!strncmp(p, word, len) && (!p[len] || p[len] == ',' || word[len - 1] == '-'))
			return p + len;
	return NULL;
}

static void block(void)
{
	for (;;)
		(void)pause();
}

EXPORT struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(3, sizeof(*list));

	if (behaviour("list-blocks"))
		block();
	if (behaviour("list-crashes")) {
		/* A sanitizer's handler would report it and exit: this is a crash of a library. */
		(void)signal(SIGSEGV, SIG_DFL);
		(void)raise(SIGSEGV);
	}
	if (list && !behaviour("no-devices"))
		list[0] = &devices[0];
	if (list && list[0] && behaviour("two-devices"))
		list[1] = &devices[1];
	*n = !list || !list[0] ? 0 : list[1] ? 2 : 1;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	if (behaviour("open-blocks"))
		block();
	if (behaviour("open-eacces")) {
		errno = EACCES;
		return NULL;
	}
	return &contexts[d - devices];
}

EXPORT int ibv_close_device(struct ibv_context *c)
{
	return c == &contexts[0] || c == &contexts[1] ? 0 : EINVAL;
}

EXPORT int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	(void)c;
	*attr = (struct ibv_device_attr){.fw_ver = "99.1.2",
					 .max_mr_size = UINT64_MAX,
					 .max_mr = 1024,
					 .vendor_part_id = 4129,
					 .phys_port_cnt = 1};
	return 0;
}

/* Writes what rdma-core's writes: the members up to flags. */
EXPORT int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full = {.state = IBV_PORT_ACTIVE,
				     .max_mtu = IBV_MTU_4096,
				     .active_mtu = IBV_MTU_1024,
				     .link_layer = IBV_LINK_LAYER_ETHERNET,
				     .max_msg_sz = 1U << 30};

	(void)c;
	if (port != 1)
		return EINVAL;
	memcpy((void *)attr, &full, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	if (behaviour("stale-errno"))
		errno = EBADF;
	return &pds[c - contexts];
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *p)
{
	return is_pd(p) ? 0 : EINVAL;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;

	if (len == GPU_BYTES && number(behaviour("gpu-peermem-"))) {
		errno = number(behaviour("gpu-peermem-"));
		return NULL;
	}
	if (behaviour("reg-enomem") || !is_pd(p) || !addr || !len ||
	    access != IBV_ACCESS_LOCAL_WRITE) {
		errno = ENOMEM;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	return mr;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

/* Objects for traffic: this device has none. */

static void *none(void)
{
	errno = ENOSYS;
	return NULL;
}

EXPORT int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	(void)c;
	(void)port;
	(void)index;
	memset(gid, 0, sizeof(*gid));
	return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	(void)c;
	(void)port;
	*pkey = 0xffff;
	return index ? -1 : 0;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	(void)c;
	return none();
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	(void)channel;
	return ENOSYS;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *owner,
				    struct ibv_comp_channel *channel, int vector)
{
	(void)c;
	(void)cqe;
	(void)owner;
	(void)channel;
	(void)vector;
	return none();
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return ENOSYS;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **owner)
{
	(void)channel;
	(void)cq;
	(void)owner;
	errno = ENOSYS;
	return -1;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
	(void)p;
	(void)attr;
	return none();
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return ENOSYS;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init)
{
	(void)qp;
	(void)attr;
	(void)mask;
	(void)init;
	return ENOSYS;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return ENOSYS;
}

EXPORT int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	(void)c;
	(void)event;
	errno = ENOSYS;
	return -1;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

EXPORT const char *ibv_event_type_str(enum ibv_event_type type)
{
	(void)type;
	return "unknown";
}

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	(void)status;
	return "unknown";
}

#ifdef FAKE_DMABUF
static struct ibv_mr *reg_gpu(const struct ibv_pd *p, uint64_t offset, size_t len, uint64_t iova,
			      int fd)
{
	while (behaviour("gpu-blocks") && p == &pds[0])
		block();
	errno = number(behaviour("gpu-dmabuf-"));
	if (!errno && (len != GPU_BYTES || (offset ^ iova) & 4095))
		errno = EINVAL;
	if (!errno && lseek(fd, 0, SEEK_END) < (off_t)(offset + len))
		errno = EINVAL;
	return errno ? NULL : calloc(1, sizeof(struct ibv_mr));
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *p, uint64_t offset, size_t len,
					uint64_t iova, int fd, int access)
{
	if (behaviour("dmabuf-blocks"))
		block();
	if (behaviour("dmabuf-succeeds"))
		return calloc(1, sizeof(struct ibv_mr));
	if (behaviour("stale-errno"))
		return NULL; /* fails and leaves errno alone */
	if (fd >= 0 && access == IBV_ACCESS_LOCAL_WRITE)
		return reg_gpu(p, offset, len, iova, fd);
	errno = EBADF;
	if (!is_pd(p) || offset || iova || fd != -1 || len != (size_t)sysconf(_SC_PAGESIZE) ||
	    access != IBV_ACCESS_LOCAL_WRITE)
		errno = EDOM; /* not the probe that was agreed */
	else if (number(behaviour("dmabuf-")))
		errno = number(behaviour("dmabuf-"));
	return NULL;
}
#endif
