/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registrar: registers memory with a device by the kernel's uverbs requests, says what it has, and
 * holds it. No library between: the lab's own device has no provider, and what is tested is what
 * the kernel shows of a registration.
 *
 * usage: registrar DEVICE [host=N] [dmabuf=N] [size=BYTES] [keep] [thread] [loop=N] [hold=SECONDS]
 *   keep     leaves the descriptor of the DMA-BUF open; else it is closed after the registration,
 *            and the card too: the region alone holds the buffer then
 *   thread   a thread of its own registers, and ends
 *   loop=N   first registers and gives back N times; prints the fastest and the middle one
 *   hold     ends after so long; else it holds until it is killed
 *
 * The DMA-BUF comes of DRM's vgem: memory of a virtual card, exported as a real one's would be.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/banned.h"

enum { PP_REGIONS_MAX = 65536, PP_LOOP_MAX = 1000000, PP_ATTRIBUTES = 9 };

struct pp_registrar {
	const char *device;
	uint64_t host, dmabuf, size, loop, hold;
	bool keep, thread;
	int uverbs, card, error;
	uint32_t pd;
};

/* Of DRM's user interface, whose headers belong to a library that this does not need. */
struct pp_drm_dumb {
	uint32_t height, width, bpp, flags, handle, pitch;
	uint64_t size;
};
struct pp_drm_prime {
	uint32_t handle, flags;
	int32_t fd;
};

#define PP_DRM_DUMB  _IOWR('d', 0xb2, struct pp_drm_dumb)
#define PP_DRM_PRIME _IOWR('d', 0x2d, struct pp_drm_prime)

/* One request of the kernel's first interface: a head, the body, and where the answer goes. */
static int pp_request(int uverbs, uint32_t command, void *body, size_t body_len, size_t answer_len)
{
	struct {
		struct ib_uverbs_cmd_hdr head;
		char body[64];
	} request = {
		.head = {command, (uint16_t)((sizeof(request.head) + body_len) / 4),
			 (uint16_t)(answer_len / 4)},
	};
	size_t len = sizeof(request.head) + body_len;

	memcpy(request.body, body, body_len);
	return write(uverbs, &request, len) == (ssize_t)len ? 0 : -errno;
}

static int pp_context_open(struct pp_registrar *r)
{
	struct ib_uverbs_get_context_resp context = {0};
	struct ib_uverbs_get_context ask_context = {.response = (uintptr_t)&context};
	struct ib_uverbs_alloc_pd_resp pd = {0};
	struct ib_uverbs_alloc_pd ask_pd = {.response = (uintptr_t)&pd};
	int err;

	err = pp_request(r->uverbs, IB_USER_VERBS_CMD_GET_CONTEXT, &ask_context,
			 sizeof(ask_context), sizeof(context));
	if (!err)
		err = pp_request(r->uverbs, IB_USER_VERBS_CMD_ALLOC_PD, &ask_pd, sizeof(ask_pd),
				 sizeof(pd));
	r->pd = pd.pd_handle;
	return err;
}

static int pp_host_register(const struct pp_registrar *r, const void *memory, uint32_t *ret_handle,
			    uint32_t *ret_lkey)
{
	struct ib_uverbs_reg_mr_resp answer = {0};
	struct ib_uverbs_reg_mr ask = {
		.response = (uintptr_t)&answer,
		.start = (uintptr_t)memory,
		.length = r->size,
		.hca_va = (uintptr_t)memory,
		.pd_handle = r->pd,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	int err =
		pp_request(r->uverbs, IB_USER_VERBS_CMD_REG_MR, &ask, sizeof(ask), sizeof(answer));

	*ret_handle = answer.mr_handle;
	*ret_lkey = answer.lkey;
	return err;
}

static int pp_give_back(const struct pp_registrar *r, uint32_t handle)
{
	struct ib_uverbs_dereg_mr ask = {.mr_handle = handle};

	return pp_request(r->uverbs, IB_USER_VERBS_CMD_DEREG_MR, &ask, sizeof(ask), 0);
}

static void pp_add(struct ib_uverbs_ioctl_hdr *r, unsigned int id, unsigned int len, uint64_t data)
{
	r->attrs[r->num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = (uint16_t)id,
		.len = (uint16_t)len,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
}

static int pp_dmabuf_register(const struct pp_registrar *r, int fd, uint32_t *ret_lkey)
{
	size_t len =
		sizeof(struct ib_uverbs_ioctl_hdr) + PP_ATTRIBUTES * sizeof(struct ib_uverbs_attr);
	struct ib_uverbs_ioctl_hdr *ask = calloc(1, len);
	uint32_t rkey = 0;
	int err;

	if (!ask)
		return -ENOMEM;
	ask->length = (uint16_t)len;
	ask->object_id = UVERBS_OBJECT_MR;
	ask->method_id = UVERBS_METHOD_REG_DMABUF_MR;
	ask->driver_id = strncmp(r->device, "rxe", 3) ? RDMA_DRIVER_UNKNOWN : RDMA_DRIVER_RXE;
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, r->pd);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof(uint64_t), 0);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(uint64_t), r->size);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof(uint64_t), 0);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(uint32_t), (uint32_t)fd);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, sizeof(uint32_t),
	       IBV_ACCESS_LOCAL_WRITE);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(*ret_lkey), (uintptr_t)ret_lkey);
	pp_add(ask, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(rkey), (uintptr_t)&rkey);
	err = ioctl(r->uverbs, RDMA_VERBS_IOCTL, ask) ? -errno : 0;
	free(ask);
	return err;
}

static int pp_buffer_new(const struct pp_registrar *r, int *ret_fd)
{
	struct pp_drm_dumb dumb = {.height = 1, .width = (uint32_t)r->size, .bpp = 8};
	struct pp_drm_prime prime = {.flags = O_CLOEXEC};

	if (ioctl(r->card, PP_DRM_DUMB, &dumb))
		return -errno;
	prime.handle = dumb.handle;
	if (ioctl(r->card, PP_DRM_PRIME, &prime))
		return -errno;
	*ret_fd = prime.fd;
	return 0;
}

static void *pp_memory_new(const struct pp_registrar *r)
{
	void *memory = mmap(NULL, r->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int pp_hosts_register(const struct pp_registrar *r)
{
	uint32_t handle, lkey;
	void *memory;
	int err;

	for (uint64_t i = 0; i < r->host; i++) {
		memory = pp_memory_new(r);
		err = memory ? pp_host_register(r, memory, &handle, &lkey) : -ENOMEM;
		if (err)
			return err;
		printf("host lkey 0x%x length %llu\n", lkey, (unsigned long long)r->size);
	}
	return 0;
}

static int pp_dmabufs_register(const struct pp_registrar *r)
{
	struct stat stat;
	uint32_t lkey = 0;
	int fd = -1, err;

	for (uint64_t i = 0; i < r->dmabuf; i++) {
		err = pp_buffer_new(r, &fd);
		if (err || fstat(fd, &stat))
			return err ? err : -errno;
		err = pp_dmabuf_register(r, fd, &lkey);
		if (!r->keep)
			(void)close(fd);
		if (err)
			return err;
		printf("dmabuf lkey 0x%x length %llu inode %llu\n", lkey,
		       (unsigned long long)r->size, (unsigned long long)stat.st_ino);
	}
	return 0;
}

static void *pp_all_register(void *arg)
{
	struct pp_registrar *r = arg;

	printf("thread %ld\n", syscall(SYS_gettid));
	r->error = pp_hosts_register(r);
	if (!r->error)
		r->error = pp_dmabufs_register(r);
	return NULL;
}

static int pp_ns_compare(const void *a, const void *b)
{
	const pp_ns *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int pp_loop(const struct pp_registrar *r)
{
	pp_ns *took = calloc(r->loop, sizeof(*took));
	void *memory = pp_memory_new(r);
	uint32_t handle, lkey;
	int err = took && memory ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < r->loop && !err; i++) {
		pp_ns start = pp_clock_monotonic();

		err = pp_host_register(r, memory, &handle, &lkey);
		if (!err)
			err = pp_give_back(r, handle);
		took[i] = pp_clock_monotonic() - start;
	}
	if (!err) {
		qsort(took, r->loop, sizeof(*took), pp_ns_compare);
		printf("loop %llu fastest_ns %lld middle_ns %lld\n", (unsigned long long)r->loop,
		       (long long)took[0], (long long)took[r->loop / 2]);
	}
	free(took);
	return err;
}

/* Opens the uverbs device of an RDMA device: /dev/infiniband/uverbsN, as sysfs says. */
static int pp_uverbs_open(const char *device)
{
	char path[64], name[64] = "";
	FILE *file;

	for (int i = 0; i < 32; i++) {
		(void)snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/uverbs%d/ibdev", i);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (!fgets(name, sizeof(name), file))
			name[0] = '\0';
		(void)fclose(file);
		if (!strcmp(pp_trim(name), device)) {
			int fd;

			(void)snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", i);
			fd = open(path, O_RDWR | O_CLOEXEC);
			return fd < 0 ? -errno : fd;
		}
	}
	return -ENODEV;
}

/* One word of the command line into @r. */
static int pp_word(struct pp_registrar *r, const char *word)
{
	const struct {
		const char *name;
		uint64_t *number, max;
		bool *flag;
	} known[] = {
		{"host=", &r->host, PP_REGIONS_MAX, NULL},
		{"dmabuf=", &r->dmabuf, PP_REGIONS_MAX, NULL},
		{"size=", &r->size, 1 << 30, NULL},
		{"loop=", &r->loop, PP_LOOP_MAX, NULL},
		{"hold=", &r->hold, 3600, NULL},
		{"keep", NULL, 0, &r->keep},
		{"thread", NULL, 0, &r->thread},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t len = strlen(known[i].name);

		if (known[i].number && !strncmp(word, known[i].name, len))
			return pp_parse_u64(word + len, 0, known[i].max, known[i].number);
		if (known[i].flag && !strcmp(word, known[i].name)) {
			*known[i].flag = true;
			return 0;
		}
	}
	return -EINVAL;
}

static int pp_run(struct pp_registrar *r)
{
	pthread_t thread;
	int err;

	r->uverbs = pp_uverbs_open(r->device);
	if (r->uverbs < 0)
		return r->uverbs;
	r->card = r->dmabuf ? open("/dev/dri/card0", O_RDWR | O_CLOEXEC) : -1;
	if (r->dmabuf && r->card < 0)
		return -errno;
	printf("pid %d\n", (int)getpid());
	err = pp_context_open(r);
	if (!err && r->loop)
		err = pp_loop(r);
	if (err)
		return err;
	if (!r->thread) {
		(void)pp_all_register(r);
	} else {
		err = -pthread_create(&thread, NULL, pp_all_register, r);
		if (err)
			return err;
		(void)pthread_join(thread, NULL);
	}
	if (r->card >= 0 && !r->keep)
		(void)close(r->card);
	return r->error;
}

int main(int argc, char **argv)
{
	struct pp_registrar r = {.size = 65536, .hold = UINT64_MAX};
	int err = argc < 2 ? -EINVAL : 0;

	for (int i = 2; i < argc && !err; i++)
		err = pp_word(&r, argv[i]);
	if (err) {
		(void)fprintf(stderr, "registrar: usage: see its first lines\n");
		return 64;
	}
	r.device = argv[1];
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	err = pp_run(&r);
	if (err) {
		(void)fprintf(stderr, "registrar: %s\n", strerror(-err));
		return 1;
	}
	printf("ready\n");
	if (r.hold == UINT64_MAX)
		(void)pause();
	else
		(void)sleep((unsigned int)r.hold);
	return 0;
}
