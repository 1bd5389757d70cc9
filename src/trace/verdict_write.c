/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence records of a judged table, for JSON documents and bundles.
 */
#include "trace/verdict_parts.h"
#include "base/banned.h"

static const char *const mixes[] = {
	[PP_MIX_NONE] = "none",
	[PP_MIX_ONE] = "one",
	[PP_MIX_MIXED] = "mixed",
	[PP_MIX_UNKNOWN] = "unknown",
};

const char *pp_mix_name(enum pp_mix m)
{
	return mixes[m];
}

/* Kernel objects are said by the kernel; the software device is a library of the process. */
static const char *witness(bool simulated)
{
	return pp_witness_name(simulated ? PP_BY_LIBRARY : PP_BY_KERNEL);
}

static void begin(struct pp_json *j, enum pp_scope scope, bool simulated)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "about", pp_about_name(PP_REGISTRATION));
	pp_json_str(j, "witness", witness(simulated));
	pp_json_str(j, "scope", pp_scope_name(scope));
}

static void write_text(struct pp_json *j, const char *key, const char *text)
{
	pp_json_str(j, key, text && *text ? text : NULL);
}

static void write_missing(struct pp_json *j, unsigned int missing)
{
	pp_json_array(j, "missing");
	for (unsigned int i = 0; i < PP_SURFACES; i++)
		if (missing >> i & 1)
			pp_json_str(j, NULL, pp_surface_name((enum pp_surface)i));
	pp_json_end_array(j);
}

static void write_sightings(struct pp_json *j, const struct pp_region *r)
{
	pp_json_array(j, "sightings");
	for (unsigned int i = 0; i < r->n_sightings; i++) {
		const struct pp_sighting *s = &r->sighting[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "surface", pp_surface_name(s->by));
		pp_json_str(j, "registration", pp_registration_name(s->says));
		pp_json_bool(j, "sufficient", s->sufficient);
		write_text(j, "raw", s->raw);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

/* Another witness's word for the same region. */
static void write_call(struct pp_json *j, const struct pp_region *r)
{
	if (!r->called)
		return;
	pp_json_object(j, "call");
	pp_json_str(j, "witness", pp_witness_name(PP_BY_LIBRARY));
	pp_json_str(j, "surface", pp_surface_name(PP_SURFACE_LIBRARY));
	pp_json_str(j, "function", r->called);
	pp_json_str(j, "state", pp_claim_name(r->called_state));
	pp_json_end_object(j);
}

static void write_owner(struct pp_json *j, const struct pp_region *r)
{
	if (r->pid)
		pp_json_i64(j, "pid", r->pid);
	else
		pp_json_null(j, "pid");
	if (r->pid && r->process)
		pp_json_u64(j, "started_ticks", r->process->started);
	if (r->tid)
		pp_json_i64(j, "tid", r->tid);
	write_text(j, "comm", r->comm);
	if (!r->pid)
		write_text(j, "why_pid", r->why_process);
}

static void write_number(struct pp_json *j, const char *key, bool has, uint64_t value)
{
	if (has)
		pp_json_u64(j, key, value);
	else
		pp_json_null(j, key);
}

static void write_region(struct pp_json *j, const struct pp_region *r)
{
	begin(j, PP_OF_MR, r->simulated);
	pp_json_str(j, "registration", r->known ? pp_registration_name(r->registration) : NULL);
	pp_json_str(j, "state", pp_claim_name(r->state));
	pp_json_bool(j, "gpu_memory", r->gpu_memory);
	write_owner(j, r);
	pp_json_str(j, "hca", r->hca);
	write_text(j, "bdf", r->bdf);
	write_number(j, "mrn", r->has_mrn, r->mrn);
	write_number(j, "lkey", r->has_keys, r->lkey);
	write_number(j, "length_bytes", r->length != 0, r->length);
	write_number(j, "address", r->address != 0, r->address);
	write_text(j, "exporter", r->exporter);
	write_number(j, "buffer_inode", r->buffer_inode != 0, r->buffer_inode);
	write_number(j, "buffer_size_bytes", r->buffer_size != 0, r->buffer_size);
	write_text(j, "importer", r->importer);
	pp_json_bool(j, "gone", r->gone);
	write_number(j, "added_monotonic_ns", r->added != 0, (uint64_t)r->added);
	write_number(j, "removed_monotonic_ns", r->removed != 0, (uint64_t)r->removed);
	write_sightings(j, r);
	write_call(j, r);
	pp_json_str(j, "why", r->why);
	write_missing(j, r->missing);
	pp_json_bool(j, "simulated", r->simulated);
	pp_json_end_object(j);
}

static void write_process(struct pp_json *j, const struct pp_trace_process *p)
{
	begin(j, PP_OF_PROCESS, p->simulated);
	write_number(j, "pid", p->pid != 0, (uint64_t)p->pid);
	write_text(j, "comm", p->comm);
	pp_json_str(j, "gpu_registrations", pp_mix_name(p->mix));
	pp_json_str(j, "registration",
		    p->mix == PP_MIX_ONE ? pp_registration_name(p->gpu_by) : NULL);
	pp_json_str(j, "state", pp_claim_name(p->state));
	pp_json_bool(j, "host_staged", p->host_staged);
	pp_json_object(j, "regions");
	for (unsigned int i = 0; i < PP_ARRAY_LEN(p->count); i++)
		pp_json_u64(j, pp_registration_name((enum pp_registration)i), p->count[i]);
	pp_json_u64(j, "unknown", p->unknown);
	pp_json_end_object(j);
	pp_json_object(j, "length_bytes");
	for (unsigned int i = 0; i < PP_ARRAY_LEN(p->bytes); i++)
		pp_json_u64(j, pp_registration_name((enum pp_registration)i), p->bytes[i]);
	pp_json_end_object(j);
	if (p->process && p->process->pinned_kb >= 0)
		pp_json_i64(j, "vm_pin_kb", p->process->pinned_kb);
	pp_json_str(j, "why", p->why);
	write_missing(j, p->missing);
	pp_json_bool(j, "simulated", p->simulated);
	pp_json_end_object(j);
}

void pp_trace_write(struct pp_json *j, const char *key, const struct pp_trace_table *t)
{
	pp_json_array(j, key);
	for (size_t i = 0; i < t->n; i++)
		write_region(j, &t->region[i]);
	for (size_t i = 0; i < t->n_processes; i++)
		write_process(j, &t->process[i]);
	pp_json_end_array(j);
}

void pp_trace_write_surfaces(struct pp_json *j, const char *key, const struct pp_trace_table *t)
{
	pp_json_array(j, key);
	for (unsigned int i = 0; i < PP_SURFACES; i++) {
		const struct pp_surface_report *r = &t->surface[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "surface", pp_surface_name((enum pp_surface)i));
		pp_json_str(j, "state", pp_surface_state_name(r->state));
		write_text(j, "why", r->why);
		if (r->state != PP_SURFACE_READ)
			pp_json_str(j, "how", pp_surface_how((enum pp_surface)i, r->state));
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}
