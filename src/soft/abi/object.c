/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/abi/object.h"

#include <errno.h>

#include "base/banned.h"

static _Atomic uint32_t next_handle;

void *soft_fail(int error)
{
	errno = error;
	return NULL;
}

int soft_gone(void)
{
	errno = ENOENT;
	return ENOENT;
}

int soft_busy(void)
{
	errno = EBUSY;
	return EBUSY;
}

int soft_object_enter(struct soft_context *c, struct soft_object *o, enum soft_kind kind,
		      uint32_t limit)
{
	struct soft_object *head = &c->objects[kind];

	if (soft_engine_inherited(c->engine) || soft_context_gone(c))
		return -EIO;
	if (atomic_fetch_add(&c->attach->count[kind], 1) >= limit) {
		atomic_fetch_sub(&c->attach->count[kind], 1);
		return -ENOMEM;
	}
	o->kind = kind;
	o->context = &c->verbs.context;
	o->handle = atomic_fetch_add(&next_handle, 1);
	pthread_mutex_lock(&c->lock);
	o->prev = head->prev;
	o->next = head;
	head->prev->next = o;
	head->prev = o;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int soft_object_leave(struct soft_context *c, struct soft_object *o)
{
	if (atomic_load(&o->uses))
		return -EBUSY;
	pthread_mutex_lock(&c->lock);
	o->prev->next = o->next;
	o->next->prev = o->prev;
	pthread_mutex_unlock(&c->lock);
	atomic_fetch_sub(&c->attach->count[o->kind], 1);
	return 0;
}

void soft_object_use(struct soft_object *o)
{
	atomic_fetch_add(&o->uses, 1);
}

void soft_object_unuse(struct soft_object *o)
{
	atomic_fetch_sub(&o->uses, 1);
}
