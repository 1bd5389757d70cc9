/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one port of a device.
 */
#include "soft/abi/export.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "soft/abi/object.h"
#include "soft/copy/cuda_driver.h"
#include "base/banned.h"

enum { DEFAULT_PKEY = 0xffff, DISABLED = 3, LINK_UP = 5, GPU_GBPS = 400 };

/* InfiniBand has no other way to say a speed than a width and a lane's: the kernel's choices for
 * Ethernet speeds. */
static const struct {
	uint32_t gbps;
	uint8_t width, speed;
	uint32_t speed_ex;
} speeds[] = {
	{1, 1, 1, 1},	    /* 1X SDR */
	{10, 1, 4, 4},	    /* 1X QDR */
	{25, 1, 32, 32},    /* 1X EDR */
	{40, 2, 4, 4},	    /* 4X QDR */
	{50, 16, 32, 32},   /* 2X EDR */
	{56, 2, 16, 16},    /* 4X FDR */
	{100, 2, 32, 32},   /* 4X EDR */
	{200, 2, 64, 64},   /* 4X HDR */
	{400, 2, 128, 128}, /* 4X NDR */
	{800, 4, 128, 128}, /* 8X NDR */
};

static void fill_speed(uint32_t gbps, struct ibv_port_attr *a)
{
	size_t i = 0;

	/* The fastest that is not faster than what is to be shown. */
	while (i + 1 < PP_ARRAY_LEN(speeds) && speeds[i + 1].gbps <= gbps)
		i++;
	a->active_width = speeds[i].width;
	a->active_speed = speeds[i].speed;
	a->active_speed_ex = speeds[i].speed_ex;
}

/* NCCL makes its channels by it: at 100 Gb/s two, at 400 four, so that one copies while another has
 * its message acknowledged. Processors that copy gain nothing by it. */
static uint32_t rate_of(const struct soft_device *d)
{
	bool gpus_copy = !d->config.wire_only && soft_cuda_peers();

	return gpus_copy && !d->config.rate_given ? GPU_GBPS : d->config.rate_gbps;
}

static enum ibv_mtu mtu_number(uint32_t bytes)
{
	enum ibv_mtu n = IBV_MTU_256;

	for (; bytes > 256 && n < IBV_MTU_4096; bytes /= 2)
		n++;
	return n;
}

static void fill(const struct soft_device *d, struct ibv_port_attr *a)
{
	bool down = atomic_load(&d->faults.on) & SOFT_FAULTY_PORT;

	*a = (struct ibv_port_attr){
		.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_number(d->config.mtu),
		.gid_tbl_len = (int)d->config.num_gids,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = SOFT_WR_MESSAGE_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.phys_state = down ? DISABLED : LINK_UP,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	fill_speed(rate_of(d), a);
}

int soft_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t size)
{
	struct ibv_port_attr all;

	if (soft_context_gone(soft_context_of(context)))
		return EIO;
	if (port_num != 1)
		return EINVAL;
	fill(soft_context_of(context)->device, &all);
	if (size > sizeof(all)) {
		memset((char *)attr + sizeof(all), 0, size - sizeof(all));
		size = sizeof(all);
	}
	memcpy(attr, &all, size);
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr)
{
	return soft_query_port(context, port_num, attr, SOFT_COMPAT_PORT_ATTR);
}

int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *speed)
{
	if (port_num != 1)
		return EINVAL;
	/* units of 100 Mb/s */
	*speed = (uint64_t)rate_of(soft_context_of(context)->device) * 10;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, uint16_t *pkey)
{
	(void)context;
	if (port_num != 1 || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, uint16_t pkey)
{
	(void)context;
	if (port_num != 1 || pkey != htobe16(DEFAULT_PKEY)) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}
