/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that this device does not have: memory of the device, steering hints, counters, multicast,
 * sharing between processes, connection options. Each answers EOPNOTSUPP by its own convention; the
 * arguments do not matter.
 */
#include <errno.h>
#include <stddef.h>

#include "base/banned.h"

#pragma GCC visibility push(default)
int soft_refuse_number(void);
int soft_refuse_minus(void);
void *soft_refuse_pointer(void);
void soft_refuse_nothing(void);
#pragma GCC visibility pop

int soft_refuse_number(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

int soft_refuse_minus(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

void *soft_refuse_pointer(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

/* The undoing of what was never done. */
void soft_refuse_nothing(void)
{
}

#define REFUSED(name, answer) \
	extern __typeof__(answer) name __attribute__((alias(#answer), visibility("default")));

REFUSED(ibv_attach_mcast, soft_refuse_number)
REFUSED(ibv_detach_mcast, soft_refuse_number)
REFUSED(ibv_import_device, soft_refuse_pointer)
REFUSED(ibv_import_pd, soft_refuse_pointer)
REFUSED(ibv_unimport_pd, soft_refuse_nothing)
REFUSED(ibv_import_mr, soft_refuse_pointer)
REFUSED(ibv_unimport_mr, soft_refuse_nothing)
REFUSED(ibv_import_dm, soft_refuse_pointer)
REFUSED(ibv_unimport_dm, soft_refuse_nothing)
REFUSED(ibv_query_ece, soft_refuse_number)
REFUSED(ibv_set_ece, soft_refuse_number)
REFUSED(ibv_alloc_dmah, soft_refuse_pointer)
REFUSED(ibv_dealloc_dmah, soft_refuse_number)
REFUSED(ibv_dm_export_dmabuf_fd, soft_refuse_minus)
REFUSED(ibv_alloc_buf, soft_refuse_pointer)
REFUSED(ibv_free_buf, soft_refuse_nothing)
REFUSED(ibv_reg_buf_mr, soft_refuse_pointer)
REFUSED(ibv_export_buf_dmabuf_fd, soft_refuse_minus)
REFUSED(_ibv_query_comp_cntr_caps, soft_refuse_number)
REFUSED(ibv_create_comp_cntr, soft_refuse_pointer)
REFUSED(ibv_destroy_comp_cntr, soft_refuse_number)
REFUSED(ibv_set_comp_cntr, soft_refuse_number)
REFUSED(ibv_set_err_comp_cntr, soft_refuse_number)
REFUSED(ibv_read_comp_cntr, soft_refuse_number)
REFUSED(ibv_read_err_comp_cntr, soft_refuse_number)
REFUSED(ibv_inc_comp_cntr, soft_refuse_number)
REFUSED(ibv_inc_err_comp_cntr, soft_refuse_number)
REFUSED(ibv_qp_attach_comp_cntr, soft_refuse_number)
