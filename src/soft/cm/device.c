/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this process as ids use them: one context each, opened at the first need and kept.
 * Programs compare id->verbs, and go on using contexts after rdma_free_devices() (libfabric).
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/abi/export.h"

#include "base/banned.h"

enum { DEVICES_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_cm_device *devices[DEVICES_MAX];
static unsigned int num_devices;
static bool looked;

static uint8_t at_most_255(int n)
{
	return n < 0 ? 0 : n > 254 ? 254 : (uint8_t)n;
}

static struct soft_cm_device *device_open(struct ibv_device *ibv)
{
	struct soft_cm_device *d = calloc(1, sizeof(*d));
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;

	if (!d)
		return NULL;
	d->device = ibv;
	d->verbs = ibv_open_device(ibv);
	if (!d->verbs || ibv_query_device(d->verbs, &attr) ||
	    ibv_query_port(d->verbs, SOFT_CM_PORT, &port)) {
		if (d->verbs)
			(void)ibv_close_device(d->verbs);
		free(d);
		return NULL;
	}
	d->max_responder_resources = at_most_255(attr.max_qp_rd_atom);
	d->max_initiator_depth = at_most_255(attr.max_qp_init_rd_atom);
	d->mtu = (uint8_t)port.active_mtu;
	for (int i = 0; i < port.gid_tbl_len && i < SOFT_CM_GIDS_MAX; i++) {
		if (ibv_query_gid(d->verbs, SOFT_CM_PORT, i, &gid))
			break;
		memcpy(d->gids[d->num_gids++].raw, gid.raw, sizeof(gid.raw));
	}
	return d;
}

/* Devices do not come or go while a process lives. 0 or errno. */
static int look_locked(void)
{
	struct ibv_device **list;
	int n;

	if (looked)
		return 0;
	list = ibv_get_device_list(&n);
	if (!list)
		return errno;
	for (int i = 0; i < n && num_devices < DEVICES_MAX; i++) {
		struct soft_cm_device *d = device_open(list[i]);

		if (d)
			devices[num_devices++] = d;
	}
	ibv_free_device_list(list);
	looked = true;
	return 0;
}

int soft_cm_device_look(void)
{
	int r;

	pthread_mutex_lock(&lock);
	r = look_locked();
	pthread_mutex_unlock(&lock);
	return r;
}

struct soft_cm_device *soft_cm_device_find(const struct soft_gid *gid, uint8_t *ret_index)
{
	struct soft_cm_device *found = NULL;

	pthread_mutex_lock(&lock);
	(void)look_locked();
	for (unsigned int i = 0; i < num_devices && !found; i++)
		for (unsigned int j = 0; j < devices[i]->num_gids && !found; j++)
			if (soft_gid_equal(&devices[i]->gids[j], gid)) {
				found = devices[i];
				*ret_index = (uint8_t)j;
			}
	pthread_mutex_unlock(&lock);
	return found;
}

int soft_cm_device_hold(struct soft_cm_device *d)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!d->pd) {
		d->pd = ibv_alloc_pd(d->verbs);
		if (!d->pd)
			r = errno ? errno : ENOMEM;
	}
	if (!r)
		d->users++;
	pthread_mutex_unlock(&lock);
	return r;
}

void soft_cm_device_drop(struct soft_cm_device *d)
{
	pthread_mutex_lock(&lock);
	/* A program that left something in the domain keeps the domain. */
	if (--d->users == 0 && !ibv_dealloc_pd(d->pd))
		d->pd = NULL;
	pthread_mutex_unlock(&lock);
}

/* What the parent opened is of no use to a child, and not its to close. */
void soft_cm_device_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	num_devices = 0;
	looked = false;
}

struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context **list = NULL;
	int r = soft_cm_begin();

	pthread_mutex_lock(&lock);
	if (!r)
		r = look_locked();
	if (!r) {
		list = calloc(num_devices + 1, sizeof(struct ibv_context *));
		r = list ? 0 : ENOMEM;
	}
	for (unsigned int i = 0; !r && i < num_devices; i++)
		list[i] = devices[i]->verbs;
	if (num)
		*num = r ? 0 : (int)num_devices;
	pthread_mutex_unlock(&lock);
	if (r)
		errno = r;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
