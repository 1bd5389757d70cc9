/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `peerpath soft fault` seen from the process that it changes: requests in, JSON out; and what
 * `soft show` says of faults.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "soft/abi/object.h"
#include "soft/fault/request.h"
#include "base/banned.h"

enum { LOG_SHOWN = 64 };

struct changing {
	struct soft_engine *engine;
	const struct soft_fault_request *request;
	struct pp_json *json;
	struct pp_error err;
};

static void change(void *arg, struct soft_device *d)
{
	struct changing *c = arg;
	const struct soft_fault_request *q = c->request;
	const struct soft_attach *a = d->attach;

	if (!a || a->engine != c->engine || c->err.code ||
	    (strcmp(q->device, "*") != 0 && strcmp(q->device, d->config.name) != 0))
		return;
	if (q->clear)
		soft_device_clear_faults(d, a->engine, a->wire);
	for (unsigned int i = 0; i < q->num && !c->err.code; i++)
		(void)soft_device_set_fault(d, a->engine, a->wire, &q->specs[i], &c->err);
	if (!c->err.code)
		pp_json_str(c->json, NULL, d->config.name);
}

void soft_fault_process(void *arg, struct soft_engine *engine, const char *bytes, size_t len,
			struct pp_buf *out)
{
	struct pp_json json = PP_JSON(out, /* is_pretty= */ false);
	struct soft_fault_request request;
	struct changing c = {.engine = engine, .request = &request, .json = &json};

	(void)arg;
	pp_json_object(&json, NULL);
	pp_json_i64(&json, "pid", getpid());
	pp_json_str(&json, "program", program_invocation_short_name);
	pp_json_u64(&json, "slot", soft_engine_slot(engine));
	pp_json_array(&json, "changed");
	if (!soft_fault_request_parse(bytes, len, &request, &c.err))
		soft_devices_each(&c, change);
	pp_json_end_array(&json);
	if (c.err.code)
		pp_json_str(&json, "error", c.err.text);
	else
		pp_json_null(&json, "error");
	pp_json_end_object(&json);
}

static void show_set(struct pp_json *json, const struct soft_fault_set *set)
{
	for (unsigned int i = 0; i < set->num; i++) {
		pp_json_object(json, NULL);
		pp_json_str(json, "fault", set->rules[i].spec.text);
		pp_json_u64(json, "matched", set->rules[i].seen);
		pp_json_u64(json, "fired", set->rules[i].fired);
		pp_json_end_object(json);
	}
}

static void show_log(struct pp_json *json, const struct soft_fault *f)
{
	uint64_t first = f->logged > LOG_SHOWN ? f->logged - LOG_SHOWN : 0;
	char hash[24];

	(void)snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)f->hash);
	pp_json_object(json, "fault_log");
	pp_json_u64(json, "seed", f->seed);
	pp_json_u64(json, "packets", f->packets);
	pp_json_u64(json, "cut", f->cut);
	pp_json_u64(json, "entries", f->logged);
	pp_json_str(json, "hash", hash);
	pp_json_array(json, "last");
	for (uint64_t i = first; i < f->logged; i++) {
		const struct soft_fault_entry *e = &f->log[i % SOFT_FAULT_LOG];

		pp_json_object(json, NULL);
		pp_json_u64(json, "packet", e->packet);
		pp_json_str(json, "opcode", soft_opcode_find(e->opcode)->name);
		pp_json_u64(json, "psn", e->psn);
		pp_json_str(json, "fate", soft_fault_noun_name(e->noun));
		pp_json_end_object(json);
	}
	pp_json_end_array(json);
	pp_json_end_object(json);
}

void soft_show_faults(struct pp_json *json, struct soft_device *d)
{
	const struct soft_fault *of_wire = soft_wire_fault(d->attach->wire);

	pp_json_str(json, "port_state",
		    atomic_load(&d->faults.on) & SOFT_FAULTY_PORT ? "down" : "active");
	pp_json_array(json, "faults");
	pthread_mutex_lock(&d->faults.lock);
	show_set(json, &d->faults.set);
	pthread_mutex_unlock(&d->faults.lock);
	show_set(json, &of_wire->set);
	pp_json_end_array(json);
	show_log(json, of_wire);
}
