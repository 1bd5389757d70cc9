/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of a device, from its description and at run time.
 *
 * Run time is the engine's thread, which holds no lock when it comes here: it takes the devices'
 * lock (no context comes or goes), a context's (no object of it does), the engine's, in that order.
 */
#include "soft/abi/fault.h"

#include <errno.h>
#include <string.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static int error_of(struct soft_device_faults *f, enum soft_fault_noun noun)
{
	int error;

	if (atomic_load(&f->on) & SOFT_FAULTY_REMOVED) {
		/* Posting goes on: requests are flushed, as those of a queue pair in error. */
		if (noun == SOFT_FAULT_POST_SEND || noun == SOFT_FAULT_POST_RECV)
			return 0;
		return noun == SOFT_FAULT_OPEN_DEVICE ? ENODEV : EIO;
	}
	if (!(atomic_load(&f->on) & SOFT_FAULTY_CALLS))
		return 0;
	pthread_mutex_lock(&f->lock);
	error = soft_fault_set_call(&f->set, noun, &f->random);
	pthread_mutex_unlock(&f->lock);
	return error;
}

int soft_device_fault_slow(struct soft_device *d, enum soft_fault_noun noun)
{
	int error = error_of(&d->faults, noun);

	/* Calls that return an error leave it here as well, where their ioctl() left it. */
	if (error)
		errno = error;
	return error;
}

int soft_device_gid_at(const struct soft_device *d, uint32_t index)
{
	unsigned int at;

	if (index >= d->config.num_gids)
		return -1;
	at = atomic_load_explicit(&d->faults.gid_at[index], memory_order_relaxed);
	return at == SOFT_GID_NONE ? -1 : (int)at;
}

void soft_device_count_fault(struct soft_device *d, enum soft_fault_noun noun)
{
	struct soft_fault_rule *r;

	pthread_mutex_lock(&d->faults.lock);
	r = soft_fault_set_find(&d->faults.set, noun);
	if (r) {
		r->seen++;
		r->fired++;
	}
	pthread_mutex_unlock(&d->faults.lock);
}

/* ── what all contexts of a device learn ── */

static void raise_all(struct soft_device *d, struct soft_engine *engine, enum ibv_event_type type)
{
	for (struct soft_context *c = d->contexts; c; c = c->next)
		if (c->engine == engine)
			soft_events_raise(c->async,
					  type == IBV_EVENT_DEVICE_FATAL ? &c->device_events
									 : &c->port_events,
					  type);
}

static void each_cq(struct soft_device *d, struct soft_engine *engine,
		    void (*each)(struct soft_context *c, struct soft_cq_object *cq))
{
	for (struct soft_context *c = d->contexts; c; c = c->next) {
		struct soft_object *head = &c->objects[SOFT_KIND_CQ];

		if (c->engine != engine)
			continue;
		pthread_mutex_lock(&c->lock);
		for (struct soft_object *o = head->next; o != head; o = o->next)
			each(c, SOFT_OBJECT(struct soft_cq_object, o, object));
		pthread_mutex_unlock(&c->lock);
	}
}

void soft_device_infect_cq(struct soft_context *c, struct soft_cq_object *cq)
{
	struct soft_cq_late *late = soft_wire_late(c->attach->wire);

	soft_engine_lock(c->engine);
	cq->queue.late = late->delay ? late : NULL;
	soft_cq_set_room(&cq->queue, atomic_load(&c->device->faults.cq_depth));
	soft_engine_unlock(c->engine);
}

/* ── states; a wire is there ── */

struct target {
	struct soft_device *device;
	struct soft_engine *engine;
	struct soft_wire *wire;
	uint64_t qp; /* number, or UINT64_MAX: all */
	unsigned int hit;
};

static void set_on(struct soft_device *d, unsigned int bit, bool on)
{
	if (on)
		atomic_fetch_or(&d->faults.on, bit);
	else
		atomic_fetch_and(&d->faults.on, ~bit);
}

static void apply_port(struct target *t, const struct soft_fault_spec *spec)
{
	bool down = !spec->off && spec->number;
	bool was = atomic_load(&t->device->faults.on) & SOFT_FAULTY_PORT;

	set_on(t->device, SOFT_FAULTY_PORT, down);
	soft_engine_lock(t->engine);
	soft_wire_set_port(t->wire, down);
	soft_engine_unlock(t->engine);
	if (down != was)
		raise_all(t->device, t->engine, down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
}

/* An address that stands nowhere in the table is one that the machine has no more. */
static void bury_addresses(struct target *t)
{
	const struct soft_device *d = t->device;

	soft_engine_lock(t->engine);
	for (unsigned int at = 0; at < d->config.num_gids; at++) {
		bool dead = true;

		for (unsigned int i = 0; i < d->config.num_gids && dead; i++)
			dead = soft_device_gid_at(d, i) != (int)at;
		soft_wire_set_dead(t->wire, &d->config.gids[at].gid, dead);
	}
	soft_engine_unlock(t->engine);
}

static void set_gid(struct soft_device *d, const struct soft_fault_spec *spec)
{
	_Atomic uint8_t *at = d->faults.gid_at;

	if (spec->off) {
		for (unsigned int i = 0; i < SOFT_CONFIG_GIDS_MAX; i++)
			atomic_store(&at[i], (uint8_t)i);
	} else if (spec->more == UINT64_MAX) {
		atomic_store(&at[spec->number], SOFT_GID_NONE);
	} else if (spec->more == spec->number) {
		atomic_store(&at[spec->number], (uint8_t)spec->number);
	} else {
		uint8_t a = atomic_load(&at[spec->number]), b = atomic_load(&at[spec->more]);

		atomic_store(&at[spec->number], b);
		atomic_store(&at[spec->more], a);
	}
}

static void apply_gid(struct target *t, const struct soft_fault_spec *spec)
{
	set_gid(t->device, spec);
	bury_addresses(t);
	raise_all(t->device, t->engine, IBV_EVENT_GID_CHANGE);
}

static void break_qp(void *arg, struct soft_qp *qp)
{
	struct target *t = arg;
	struct soft_qp_object *o = qp->owner;

	if (soft_context_of(o->ex.qp_base.context)->device != t->device ||
	    (t->qp != UINT64_MAX && t->qp != qp->num) || qp->state == SOFT_QP_RESET ||
	    qp->state == SOFT_QP_ERR)
		return;
	t->hit++;
	soft_qp_to_error(qp);
	qp->ops->event(qp, SOFT_QP_EVENT_FATAL);
	soft_engine_kick(t->engine, qp);
}

static void apply_qp(struct target *t, const struct soft_fault_spec *spec)
{
	t->qp = spec->all ? UINT64_MAX : spec->number;
	soft_engine_lock(t->engine);
	soft_engine_each_qp(t->engine, break_qp, t);
	soft_engine_unlock(t->engine);
}

static void flush_qp(void *arg, struct soft_qp *qp)
{
	struct target *t = arg;
	struct soft_qp_object *o = qp->owner;

	if (soft_context_of(o->ex.qp_base.context)->device != t->device)
		return;
	soft_qp_to_error(qp);
	soft_engine_kick(t->engine, qp);
}

static void apply_device(struct target *t, const struct soft_fault_spec *spec)
{
	(void)spec;
	set_on(t->device, SOFT_FAULTY_REMOVED, true);
	soft_engine_lock(t->engine);
	soft_wire_set_port(t->wire, /* down= */ true);
	soft_engine_each_qp(t->engine, flush_qp, t);
	soft_engine_unlock(t->engine);
	raise_all(t->device, t->engine, IBV_EVENT_DEVICE_FATAL);
}

static void apply_cq_delay(struct target *t, const struct soft_fault_spec *spec)
{
	pp_ns delay = spec->off ? 0 : (pp_ns)spec->number;

	set_on(t->device, SOFT_FAULTY_CQS, true);
	soft_engine_lock(t->engine);
	soft_wire_set_cq_delay(t->wire, delay);
	soft_engine_unlock(t->engine);
	each_cq(t->device, t->engine, soft_device_infect_cq);
}

static void apply_cq_depth(struct target *t, const struct soft_fault_spec *spec)
{
	set_on(t->device, SOFT_FAULTY_CQS, true);
	atomic_store(&t->device->faults.cq_depth, spec->off ? 0 : (uint32_t)spec->number);
	each_cq(t->device, t->engine, soft_device_infect_cq);
}

static void (*const appliers[])(struct target *t, const struct soft_fault_spec *spec) = {
	[SOFT_FAULT_PORT] = apply_port,
	[SOFT_FAULT_GID] = apply_gid,
	[SOFT_FAULT_QP] = apply_qp,
	[SOFT_FAULT_DEVICE] = apply_device,
	[SOFT_FAULT_CQ_DELAY] = apply_cq_delay,
	[SOFT_FAULT_CQ_DEPTH] = apply_cq_depth,
};

/* Notes it where it is listed. What happens once is listed as well: it tells what was done. */
static int note(struct soft_device *d, const struct soft_fault_spec *spec, struct pp_error *err)
{
	struct soft_device_faults *f = &d->faults;
	bool calls = false;
	int r;

	pthread_mutex_lock(&f->lock);
	r = soft_fault_set_add(&f->set, spec, err);
	if (!r && !spec->off && spec->noun >= SOFT_FAULT_WIRE_END)
		f->set.rules[f->set.num - 1].fired = 1;
	for (unsigned int i = 0; i < f->set.num; i++)
		calls |= f->set.rules[i].spec.noun < SOFT_FAULT_CALLS;
	pthread_mutex_unlock(&f->lock);
	set_on(d, SOFT_FAULTY_CALLS, calls);
	return r;
}

int soft_device_set_fault(struct soft_device *d, struct soft_engine *engine, struct soft_wire *wire,
			  const struct soft_fault_spec *spec, struct pp_error *err)
{
	struct target t = {.device = d, .engine = engine, .wire = wire};
	bool of_wire = spec->noun >= SOFT_FAULT_CALLS && spec->noun < SOFT_FAULT_WIRE_END;
	int r;

	if (spec->noun == SOFT_FAULT_GID && !spec->off &&
	    (spec->number >= d->config.num_gids ||
	     (spec->more != UINT64_MAX && spec->more >= d->config.num_gids)))
		return pp_error_set(err, -EINVAL, "%s: %s has %u addresses", spec->text,
				    d->config.name, d->config.num_gids);
	if (of_wire) {
		soft_engine_lock(engine);
		r = soft_wire_set_fault(wire, spec, err);
		soft_engine_unlock(engine);
		return r;
	}
	r = note(d, spec, err);
	if (!r && spec->noun >= SOFT_FAULT_WIRE_END)
		appliers[spec->noun](&t, spec);
	return r;
}

void soft_device_clear_faults(struct soft_device *d, struct soft_engine *engine,
			      struct soft_wire *wire)
{
	static const enum soft_fault_noun states[] = {SOFT_FAULT_PORT, SOFT_FAULT_GID,
						      SOFT_FAULT_CQ_DELAY, SOFT_FAULT_CQ_DEPTH};
	struct target t = {.device = d, .engine = engine, .wire = wire};
	bool gone = atomic_load(&d->faults.on) & SOFT_FAULTY_REMOVED;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		const struct soft_fault_spec off = {.noun = states[i], .off = true};
		bool was;

		pthread_mutex_lock(&d->faults.lock);
		was = soft_fault_set_remove(&d->faults.set, states[i]);
		pthread_mutex_unlock(&d->faults.lock);
		if (was)
			appliers[states[i]](&t, &off);
	}
	pthread_mutex_lock(&d->faults.lock);
	d->faults.set.num = 0;
	pthread_mutex_unlock(&d->faults.lock);
	atomic_store(&d->faults.on, gone ? SOFT_FAULTY_REMOVED : 0);
	soft_engine_lock(engine);
	soft_wire_clear_faults(wire);
	if (gone)
		soft_wire_set_port(wire, /* down= */ true);
	soft_engine_unlock(engine);
}

/* ── descriptions ── */

void soft_device_init_faults(struct soft_device *d)
{
	struct soft_device_faults *f = &d->faults;
	const struct soft_fault_set *from = &d->config.faults;
	struct pp_error err = {0};

	pthread_mutex_init(&f->lock, NULL);
	f->random = d->config.plan.seed;
	for (unsigned int i = 0; i < SOFT_CONFIG_GIDS_MAX; i++)
		atomic_init(&f->gid_at[i], (uint8_t)i);
	/* Calls may fail before there is a wire: the opening itself. */
	for (unsigned int i = 0; i < from->num; i++) {
		const struct soft_fault_spec *spec = &from->rules[i].spec;

		if (spec->noun < SOFT_FAULT_CALLS || spec->noun >= SOFT_FAULT_WIRE_END)
			(void)note(d, spec, &err);
		if (spec->noun == SOFT_FAULT_DEVICE)
			set_on(d, SOFT_FAULTY_REMOVED, true);
		if (spec->noun == SOFT_FAULT_PORT)
			set_on(d, SOFT_FAULTY_PORT, spec->number);
		if (spec->noun == SOFT_FAULT_GID)
			set_gid(d, spec);
	}
}

void soft_device_infect_wire(struct soft_device *d, struct soft_engine *engine,
			     struct soft_wire *wire)
{
	const struct soft_fault_set *from = &d->config.faults;
	struct target t = {.device = d, .engine = engine, .wire = wire};
	struct pp_error err = {0};

	for (unsigned int i = 0; i < from->num; i++) {
		const struct soft_fault_spec *spec = &from->rules[i].spec;

		if (spec->noun == SOFT_FAULT_CQ_DELAY || spec->noun == SOFT_FAULT_CQ_DEPTH)
			appliers[spec->noun](&t, spec);
		if (spec->noun < SOFT_FAULT_CALLS || spec->noun >= SOFT_FAULT_WIRE_END)
			continue;
		soft_engine_lock(engine);
		(void)soft_wire_set_fault(wire, spec, &err);
		soft_engine_unlock(engine);
	}
	if (atomic_load(&d->faults.on) & SOFT_FAULTY_PORT) {
		soft_engine_lock(engine);
		soft_wire_set_port(wire, true);
		soft_engine_unlock(engine);
	}
	bury_addresses(&t);
}
