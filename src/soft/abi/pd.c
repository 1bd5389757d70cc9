/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protection domains, thread domains, and parent domains, which pair the two. A parent domain
 * stands for its protection domain in every check.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static struct ibv_pd *pd_new(struct ibv_context *context, struct soft_pd_object *parent,
			     struct soft_td_object *td)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_pd_object *pd = calloc(1, sizeof(*pd));
	int r;

	if (!pd)
		return soft_fail(ENOMEM);
	pd->ibv.context = context;
	r = soft_object_enter(c, &pd->object, SOFT_KIND_PD, c->device->config.limits.max_pd);
	if (r) {
		free(pd);
		return soft_fail(-r);
	}
	pd->ibv.handle = pd->object.handle;
	pd->parent = parent;
	pd->td = td;
	if (parent)
		soft_object_use(&parent->object);
	if (td)
		soft_object_use(&td->object);
	return &pd->ibv;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	int error = soft_device_fault(soft_context_of(context)->device, SOFT_FAULT_ALLOC_PD);

	return error ? soft_fail(error) : pd_new(context, /* parent= */ NULL, /* td= */ NULL);
}

void soft_pd_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		free(SOFT_OBJECT(struct soft_pd_object, object, object));
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct soft_pd_object *pd = soft_pd_of(ibv);

	if (soft_context_inherited(soft_context_of(ibv->context)))
		return 0;
	if (!soft_object_is(&pd->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(soft_context_of(ibv->context)))
		return EIO;
	if (soft_object_leave(soft_context_of(ibv->context), &pd->object))
		return soft_busy();
	if (pd->parent)
		soft_object_unuse(&pd->parent->object);
	if (pd->td)
		soft_object_unuse(&pd->td->object);
	free(pd);
	return 0;
}

struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_td_object *td;
	int r;

	if (attr->comp_mask) /* no bit is defined */
		return soft_fail(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return soft_fail(ENOMEM);
	td->ibv.context = context;
	r = soft_object_enter(c, &td->object, SOFT_KIND_TD, UINT32_MAX);
	if (r) {
		free(td);
		return soft_fail(-r);
	}
	return &td->ibv;
}

void soft_td_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		free(SOFT_OBJECT(struct soft_td_object, object, object));
}

int soft_dealloc_td(struct ibv_td *ibv)
{
	struct soft_td_object *td = SOFT_OBJECT(struct soft_td_object, ibv, ibv);

	if (soft_context_inherited(soft_context_of(ibv->context)))
		return 0;
	if (soft_context_gone(soft_context_of(ibv->context)))
		return EIO;
	if (soft_object_leave(soft_context_of(ibv->context), &td->object))
		return soft_busy();
	free(td);
	return 0;
}

enum {
	/* Allocators concern memory of the device, which has none of its own. */
	PARENT_DOMAIN_MASK = 1 << 0 | 1 << 1,
};

struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct soft_pd_object *pd;

	if (!attr->pd || attr->pd->context != context ||
	    (attr->td && attr->td->context != context) ||
	    attr->comp_mask & ~(uint32_t)PARENT_DOMAIN_MASK)
		return soft_fail(EINVAL);
	pd = soft_pd_of(attr->pd);
	return pd_new(context, pd->parent ? pd->parent : pd,
		      attr->td ? SOFT_OBJECT(struct soft_td_object, attr->td, ibv) : NULL);
}
