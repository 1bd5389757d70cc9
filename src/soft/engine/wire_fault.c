/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of a wire, changed while it is in use.
 */
#include "soft/engine/parts.h"

#include "base/banned.h"

/* The link looks at no fault while none is active. */
static int changed(struct soft_wire *w)
{
	int r = w->link ? soft_link_set_fault(w->link, &w->fault) : 0;

	/* The thread sleeps by what it knew. */
	if (!w->engine->inherited)
		soft_engine_thread_wake(w->engine);
	return r;
}

bool soft_wire_ill(const struct soft_wire *w)
{
	return w->fault.active;
}

int soft_wire_set_fault(struct soft_wire *w, const struct soft_fault_spec *spec,
			struct pp_error *err)
{
	int r = soft_fault_apply(&w->fault, spec, err);

	if (!r) {
		r = changed(w);
		if (r)
			(void)pp_error_set(err, r, "no memory for an ill wire");
	}
	return r;
}

void soft_wire_set_port(struct soft_wire *w, bool down)
{
	soft_fault_set_port(&w->fault, down);
	(void)changed(w);
}

void soft_wire_set_dead(struct soft_wire *w, const struct soft_gid *gid, bool dead)
{
	soft_fault_set_dead(&w->fault, gid, dead);
	(void)changed(w);
}

void soft_wire_clear_faults(struct soft_wire *w)
{
	soft_fault_clear(&w->fault);
	soft_wire_set_cq_delay(w, 0);
	(void)changed(w);
}

const struct soft_fault *soft_wire_fault(const struct soft_wire *w)
{
	return &w->fault;
}

struct soft_cq_late *soft_wire_late(struct soft_wire *w)
{
	return &w->late;
}

void soft_wire_set_cq_delay(struct soft_wire *w, pp_ns delay)
{
	w->late.delay = delay;
	if (!delay)
		(void)soft_cq_late_release(&w->late, INT64_MAX);
}
