/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IBVERBS_1.0: what programs linked before 2007 call, with structures of another layout. They find
 * no devices, and so have nothing to call the rest with.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/banned.h"

#pragma GCC visibility push(default)
int soft_old_number(void);
int soft_old_minus(void);
void *soft_old_pointer(void);
void soft_old_nothing(void);
uint64_t soft_old_guid(void);
void *soft_old_devices(int *num);
#pragma GCC visibility pop

int soft_old_number(void)
{
	errno = ENOSYS;
	return ENOSYS;
}

int soft_old_minus(void)
{
	errno = ENOSYS;
	return -1;
}

void *soft_old_pointer(void)
{
	errno = ENOSYS;
	return NULL;
}

void soft_old_nothing(void)
{
}

uint64_t soft_old_guid(void)
{
	return 0;
}

void *soft_old_devices(int *num)
{
	if (num)
		*num = 0;
	errno = ENOSYS;
	return NULL;
}

#define OLD_IN(name, answer, version)                                   \
	extern __typeof__(answer) soft_old_##name                       \
		__attribute__((alias(#answer), visibility("default"))); \
	__asm__(".symver soft_old_" #name "," #name "@" version);
#define OLD(name, answer) OLD_IN(name, answer, "IBVERBS_1.0")

OLD(ibv_ack_async_event, soft_old_nothing)
OLD(ibv_ack_cq_events, soft_old_nothing)
OLD(ibv_alloc_pd, soft_old_pointer)
OLD(ibv_attach_mcast, soft_old_number)
OLD(ibv_close_device, soft_old_number)
OLD(ibv_create_ah, soft_old_pointer)
OLD(ibv_create_cq, soft_old_pointer)
OLD(ibv_create_qp, soft_old_pointer)
OLD(ibv_create_srq, soft_old_pointer)
OLD(ibv_dealloc_pd, soft_old_number)
OLD(ibv_dereg_mr, soft_old_number)
OLD(ibv_destroy_ah, soft_old_number)
OLD(ibv_destroy_cq, soft_old_number)
OLD(ibv_destroy_qp, soft_old_number)
OLD(ibv_destroy_srq, soft_old_number)
OLD(ibv_detach_mcast, soft_old_number)
OLD(ibv_free_device_list, soft_old_nothing)
OLD(ibv_get_async_event, soft_old_minus)
OLD(ibv_get_cq_event, soft_old_minus)
OLD(ibv_get_device_guid, soft_old_guid)
OLD(ibv_get_device_list, soft_old_devices)
OLD(ibv_get_device_name, soft_old_pointer)
OLD(ibv_modify_qp, soft_old_number)
OLD(ibv_modify_srq, soft_old_number)
OLD(ibv_open_device, soft_old_pointer)
OLD(ibv_query_device, soft_old_number)
OLD(ibv_query_gid, soft_old_minus)
OLD(ibv_query_pkey, soft_old_minus)
OLD(ibv_query_port, soft_old_number)
OLD(ibv_query_qp, soft_old_number)
OLD(ibv_query_srq, soft_old_number)
OLD(ibv_reg_mr, soft_old_pointer)
OLD(ibv_resize_cq, soft_old_number)
/* Providers registered themselves by it before version 1.1.6. */
OLD_IN(ibv_register_driver, soft_old_nothing, "IBVERBS_1.1")
