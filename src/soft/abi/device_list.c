/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this process. Made once, at the first ibv_get_device_list() that succeeds, and
 * kept: clients compare and keep the pointers (librdmacm does).
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/abi/object.h"
#include "soft/engine/board.h"
#include "base/banned.h"

/* Like a provider's table with a name and nothing else: no pointer in it leads anywhere. */
static const struct {
	const char *name;
	const void *rest[31];
} provider_ops = {.name = "peerpath-soft"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct soft_device *devices[SOFT_CONFIG_DEVICES_MAX];
static unsigned int num_devices;

static void device_init(struct soft_device *d, const struct soft_config_device *c)
{
	struct ibv_device *ibv = &d->ibv;

	d->config = *c;
	d->guid = soft_config_guid(c);
	d->provider_ops = &provider_ops;
	soft_device_init_faults(d);
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	(void)snprintf(ibv->name, sizeof(ibv->name), "%s", c->name);
	/* Not uverbs0: that may be a real device's, and its files would be read for ours. */
	(void)snprintf(ibv->dev_name, sizeof(ibv->dev_name), "uverbs-%s", c->name);
	(void)snprintf(ibv->dev_path, sizeof(ibv->dev_path), "/sys/class/infiniband_verbs/%s",
		       ibv->dev_name);
	(void)snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "/sys/class/infiniband/%s",
		       c->name);
}

static int find_devices_locked(void)
{
	struct soft_config *config = calloc(1, sizeof(*config));
	struct pp_error err = {0};
	int r;

	if (!config)
		return -ENOMEM;
	r = soft_config_load(secure_getenv("PEERPATH_SOFT"), config, &err);
	for (unsigned int i = 0; !r && i < config->num_devices; i++) {
		struct soft_device *d = calloc(1, sizeof(*d));

		if (!d) {
			r = -ENOMEM;
			break;
		}
		device_init(d, &config->devices[i]);
		devices[num_devices++] = d;
	}
	while (r && num_devices)
		free(devices[--num_devices]);
	free(config);
	return r;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* A thread that the child has not may have been counting a fault. */
static void fork_child(void)
{
	for (unsigned int i = 0; i < num_devices; i++)
		pthread_mutex_init(&devices[i]->faults.lock, NULL);
	pthread_mutex_unlock(&lock);
}

/* A child would wait for ever for what another thread held. Taken before the engine's lock, as
 * always: the handler that was registered last is called first. */
static void watch_forks(void)
{
	soft_engine_watch_forks();
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list;
	int r = 0;

	if (num)
		*num = 0;
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&lock);
	if (!num_devices)
		r = find_devices_locked();
	list = r ? NULL : calloc(num_devices + 1, sizeof(struct ibv_device *));
	for (unsigned int i = 0; list && i < num_devices; i++)
		list[i] = &devices[i]->ibv;
	if (list && num)
		*num = (int)num_devices;
	pthread_mutex_unlock(&lock);
	return list ? list : soft_fail(r ? -r : ENOMEM);
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

uint64_t ibv_get_device_guid(struct ibv_device *device)
{
	return ((struct soft_device *)device)->guid;
}

int ibv_get_device_index(struct ibv_device *device)
{
	/* The kernel's number of a device; the kernel knows nothing of this one. */
	(void)device;
	return -1;
}

bool soft_device_known(const struct soft_device *d)
{
	bool known = false;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < num_devices; i++)
		known |= devices[i] == d;
	pthread_mutex_unlock(&lock);
	return known;
}

/* A folder that does not fit is no reason not to work; `peerpath soft --sysfs` has checked it. */
static struct soft_board *open_board(const struct soft_device *d, const struct soft_engine *engine)
{
	const char *dir = secure_getenv("PEERPATH_SOFT_SYSFS");
	struct soft_board *board = NULL;

	if (!dir || soft_board_open(dir, d->config.name, soft_engine_slot(engine), &board))
		return NULL;
	return board;
}

static struct soft_attach *attach_new(struct soft_device *d, struct soft_engine *engine)
{
	struct soft_attach *a = calloc(1, sizeof(*a));
	struct soft_link_config link = {.num_gids = d->config.num_gids,
					.singly = d->config.singly,
					.wire_only = d->config.wire_only,
					.gpu_staged = d->config.gpu_staged,
					.wire_threads = d->config.wire_threads};

	_Static_assert((int)SOFT_CONFIG_GIDS_MAX <= (int)SOFT_LINK_GIDS_MAX,
		       "a link has room for all");
	_Static_assert((int)SOFT_CONFIG_DEVICES_MAX <= (int)SOFT_WIRES_MAX,
		       "packets of every device wake the thread");
	if (!a)
		return NULL;
	for (unsigned int i = 0; i < link.num_gids; i++)
		link.gids[i] = d->config.gids[i].gid;
	a->engine = engine;
	if (soft_engine_open_wire(engine, &link, &d->config.plan, open_board(d, engine),
				  &a->wire)) {
		free(a);
		return NULL;
	}
	soft_device_infect_wire(d, engine, a->wire);
	return a;
}

struct soft_attach *soft_device_attach(struct soft_device *d, struct soft_engine *engine)
{
	struct soft_attach *a;

	pthread_mutex_lock(&lock);
	a = d->attach;
	/* After fork() the engine is another; contexts that the child inherited keep theirs. */
	if (!a || a->engine != engine)
		a = attach_new(d, engine);
	if (a) {
		d->attach = a;
		a->contexts++;
	}
	pthread_mutex_unlock(&lock);
	return a;
}

void soft_device_detach(struct soft_device *d, struct soft_attach *a)
{
	pthread_mutex_lock(&lock);
	if (--a->contexts == 0) {
		if (d->attach == a)
			d->attach = NULL;
		soft_engine_close_wire(a->engine, a->wire);
		free(a);
	}
	pthread_mutex_unlock(&lock);
}

void soft_device_enlist(struct soft_device *d, struct soft_context *c)
{
	pthread_mutex_lock(&lock);
	c->next = d->contexts;
	d->contexts = c;
	pthread_mutex_unlock(&lock);
}

void soft_device_delist(struct soft_device *d, struct soft_context *c)
{
	pthread_mutex_lock(&lock);
	for (struct soft_context **at = &d->contexts; *at; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

void soft_devices_each(void *arg, void (*each)(void *arg, struct soft_device *d))
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < num_devices; i++)
		each(arg, devices[i]);
	pthread_mutex_unlock(&lock);
}

void soft_show_devices(void *arg, void (*each)(void *arg, struct soft_device *d))
{
	/* Called under the engine's lock, which comes after this file's. Devices are never taken
	 * away; detaching closes the wire under the engine's lock before it frees anything. */
	for (unsigned int i = 0; i < num_devices; i++)
		each(arg, devices[i]);
}
