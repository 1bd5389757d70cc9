/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of a device: calls that fail, and states that it is put into. Those of its packets are the
 * wire's (engine/engine.h).
 *
 * A call asks soft_device_fault() first: one load and a branch while nothing is set.
 */
#ifndef SOFT_ABI_FAULT_H
#define SOFT_ABI_FAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/config/config.h"

struct pp_buf;
struct pp_json;
struct soft_context;
struct soft_cq_object;
struct soft_device;
struct soft_engine;
struct soft_wire;

enum { /* of soft_device_faults.on */
       SOFT_FAULTY_CALLS = 1,
       SOFT_FAULTY_REMOVED = 2,
       SOFT_FAULTY_PORT = 4,
       SOFT_FAULTY_CQS = 8,
};

enum { SOFT_GID_NONE = 0xff };

struct soft_device_faults {
	_Atomic unsigned int on;
	pthread_mutex_t lock; /* of what follows; no other is taken under it */
	struct soft_fault_set set;
	uint64_t random;
	_Atomic uint8_t gid_at[SOFT_CONFIG_GIDS_MAX]; /* the address, by index in the GID table */
	_Atomic uint32_t cq_depth;		      /* 0: as asked for */
};

/* Takes over what the device's description says. Once, before anybody sees the device. */
void soft_device_init_faults(struct soft_device *d);
/* The same for a wire that was opened just now. */
void soft_device_infect_wire(struct soft_device *d, struct soft_engine *engine,
			     struct soft_wire *wire);

/*
 * At run time, under the devices' lock, for a device that is attached to @wire. -EINVAL, -ENOSPC,
 * -ENOMEM. What is cleared is as if it had never been set; a device that was taken away stays so.
 */
int soft_device_set_fault(struct soft_device *d, struct soft_engine *engine, struct soft_wire *wire,
			  const struct soft_fault_spec *spec, struct pp_error *err);
void soft_device_clear_faults(struct soft_device *d, struct soft_engine *engine,
			      struct soft_wire *wire);

/* Not for use: soft_device_fault(). */
int soft_device_fault_slow(struct soft_device *d, enum soft_fault_noun noun);

/* Which of the device's addresses stands at @index of its GID table; -1: none. */
int soft_device_gid_at(const struct soft_device *d, uint32_t index);

/* A completion queue that was made while SOFT_FAULTY_CQS was set: takes part in it. */
void soft_device_infect_cq(struct soft_context *c, struct soft_cq_object *cq);
/* A fault that fired by itself. */
void soft_device_count_fault(struct soft_device *d, enum soft_fault_noun noun);

/* The engine's thread: `peerpath soft fault`. Appends the answer, one JSON object. */
void soft_fault_process(void *arg, struct soft_engine *engine, const char *request, size_t len,
			struct pp_buf *out);
/* Writes "faults" and "fault_log" of a device; the engine's lock is held. */
void soft_show_faults(struct pp_json *json, struct soft_device *d);

#endif
