/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open: device, memory, registration.
 *
 * Answers "addresses" and "keys" (RDMA), "bounce" and "bounce_key" (staged) or "tcp_port" and
 * "nonce" (TCP, end 1), which the peer's connect takes; "cpus"; "memory"; what the port says;
 * "registration", "flush", "offset", "simulated"; "pid" and "lkeys", by which another process finds
 * what the kernel shows of this memory; and "attempts", also when it failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/agent_state.h"
#include "base/banned.h"

enum { SOFTWARE_TIMEOUT = 16 }; /* 4.096 us times 2^16 */

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static void keep_text(char *to, const char *from)
{
	(void)snprintf(to, PP_AGENT_TEXT, "%s", from ? from : "");
}

static int load_verbs(struct pp_agent *a, struct pp_error *err)
{
	int r = a->verbs_loaded ? 0 : pp_verbs_load(&a->verbs, err);

	a->verbs_loaded = !r;
	a->call = r ? "dlopen" : NULL;
	return r;
}

static int open_endpoint(struct pp_agent *a, const struct pp_open_command *o, struct pp_error *err)
{
	const bool staged = o->rung == PP_RUNG_STAGED;
	struct pp_endpoint_options options = {
		.device = a->device,
		.port = (uint8_t)o->port,
		.gid_index = (int)o->gid_index,
		.qps = staged ? 1 : (unsigned int)o->qps,
		.depth = staged && o->depth < PP_STAGED_DEPTH ? PP_STAGED_DEPTH
							      : (unsigned int)o->depth,
		.mtu = (unsigned int)o->mtu,
		.traffic_class = (int)o->traffic_class,
		.sl = (int)o->sl,
		.pkey_index = (int)o->pkey_index,
	};
	int r = load_verbs(a, err);

	if (r)
		return r;
	/* A software device waits for a processor where a NIC does not; but seven tries end before
	 * the silence of a run is taken for its death. */
	if (pp_verbs_are_software(&a->verbs))
		options.timeout = SOFTWARE_TIMEOUT;
	r = pp_endpoint_open(&a->verbs, &options, &a->endpoint, err);
	a->has_endpoint = !r;
	return r;
}

static int make_memory(struct pp_agent *a, const struct pp_open_command *o, struct pp_error *err)
{
	const struct pp_memory_options options = {
		.kind = (enum pp_memory_kind)o->memory,
		.size = (size_t)o->size,
		.numa = (int)o->numa,
		.gpu = *a->gpu ? a->gpu : NULL,
		.segments = (unsigned int)o->segments,
		.inside = (size_t)o->inside,
	};

	return pp_memory_new(&options, &a->memory, err);
}

static enum pp_registration way_of(enum pp_rung rung)
{
	static const enum pp_registration ways[PP_RUNGS] = {
		[PP_RUNG_HOST] = PP_REGISTERED_HOST,
		[PP_RUNG_DMABUF] = PP_REGISTERED_DMABUF,
		[PP_RUNG_PEERMEM] = PP_REGISTERED_PEERMEM,
		[PP_RUNG_DATA_DIRECT] = PP_REGISTERED_DATA_DIRECT,
	};

	return ways[rung];
}

int pp_agent_register(struct pp_agent *a, int access, struct pp_registered *ret,
		      struct pp_error *err)
{
	const struct pp_registration_options options = {
		.how = way_of(a->rung), .access = access, .data_direct_only_where_shown = true};
	int r = pp_register(&a->verbs, a->endpoint.pd, a->memory, &options, ret, err);

	if (r && ret->n_attempts)
		a->call = ret->attempt[ret->n_attempts - 1].call;
	return r;
}

/* Memory that has no keys, or none that a peer may use, is one part. */
static void one_part(struct pp_agent *a)
{
	a->own[0] = (struct pp_part){.length = a->memory->size, .address = a->memory->at};
	a->n_own = 1;
}

/* A segment without a key would never be written to, and nothing would be found wrong with it. */
static int all_covered(const struct pp_agent *a, struct pp_error *err)
{
	uint64_t end = 0;

	for (unsigned int i = 0; i < a->n_own; i++) {
		if (a->own[i].start != end)
			break;
		end += a->own[i].length;
	}
	if (end == a->memory->size)
		return 0;
	return pp_error_set(err, -EINVAL, "keys cover %llu of the memory's %llu bytes",
			    (unsigned long long)end, (unsigned long long)a->memory->size);
}

static int register_memory(struct pp_agent *a, struct pp_error *err)
{
	int r;

	if (a->rung == PP_RUNG_STAGED) {
		one_part(a);
		r = pp_staged_new(&a->endpoint, a->memory, &a->staged, err);
		return r;
	}
	r = pp_agent_register(a, ACCESS, &a->registered, err);
	a->has_registered = !r;
	if (r)
		return r;
	for (unsigned int i = 0; i < a->registered.n && i < PP_SLOTS_PARTS; i++) {
		const struct pp_key *k = &a->registered.key[i];

		a->own[a->n_own++] = (struct pp_part){.start = k->start,
						      .length = k->length,
						      .address = k->address,
						      .key = k->lkey};
	}
	return all_covered(a, err);
}

static void write_attempts(const struct pp_agent *a, struct pp_json *out)
{
	const struct pp_registered *r = &a->registered;

	pp_json_array(out, "attempts");
	for (unsigned int i = 0; i < r->n_attempts; i++) {
		pp_json_object(out, NULL);
		pp_json_str(out, "how", pp_registration_name(r->attempt[i].how));
		pp_json_str(out, "call", r->attempt[i].call);
		pp_json_str(out, "arguments", r->attempt[i].arguments);
		pp_json_i64(out, "error", r->attempt[i].error);
		pp_json_bool(out, "cuda", r->attempt[i].cuda);
		pp_json_i64(out, "took_ns", r->attempt[i].took);
		pp_json_i64(out, "bar1_before", r->attempt[i].bar1_before);
		pp_json_i64(out, "bar1_after", r->attempt[i].bar1_after);
		pp_json_end_object(out);
	}
	pp_json_end_array(out);
}

void pp_agent_write_addresses(const struct pp_agent *a, struct pp_json *out)
{
	struct pp_address address;

	pp_json_array(out, "addresses");
	for (unsigned int i = 0; i < a->endpoint.options.qps; i++) {
		pp_endpoint_address(&a->endpoint, i, &address);
		pp_address_write(out, NULL, &address);
	}
	pp_json_end_array(out);
}

static void write_endpoint(const struct pp_agent *a, struct pp_json *out)
{
	const struct pp_endpoint *e = &a->endpoint;
	char gid[INET6_ADDRSTRLEN];

	pp_agent_write_addresses(a, out);
	pp_json_str(out, "gid", inet_ntop(AF_INET6, e->gid.raw, gid, sizeof(gid)));
	pp_json_str(out, "gid_type", e->gid_type);
	pp_json_i64(out, "gid_index", e->options.gid_index);
	pp_json_i64(out, "mtu", e->options.mtu);
	pp_json_i64(out, "port", e->options.port);
	pp_json_str(out, "link_layer",
		    e->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
}

static void write_keys(const struct pp_agent *a, struct pp_json *out)
{
	struct pp_part part[PP_SLOTS_PARTS];
	const struct pp_registered *r = &a->registered;
	uint64_t bounce;
	uint32_t key;

	memcpy(part, a->own, sizeof(part));
	for (unsigned int i = 0; i < a->n_own; i++)
		part[i].key = a->has_registered ? r->key[i].rkey : 0;
	pp_parts_write(out, "keys", part, a->n_own);
	pp_json_i64(out, "pid", getpid());
	pp_json_array(out, "lkeys");
	for (unsigned int i = 0; a->has_registered && i < a->n_own; i++)
		pp_json_u64(out, NULL, r->key[i].lkey);
	pp_json_end_array(out);
	if (a->staged) {
		pp_staged_place(a->staged, &bounce, &key);
		pp_json_u64(out, "bounce", bounce);
		pp_json_u64(out, "bounce_key", key);
	}
	if (a->tcp.listener >= 0) {
		pp_json_i64(out, "tcp_port", a->tcp.port);
		pp_json_str(out, "nonce", a->tcp.nonce);
	}
}

static void write_memory(const struct pp_agent *a, struct pp_json *out)
{
	const struct pp_registered *r = &a->registered;
	bool software = a->verbs_loaded && pp_verbs_are_software(&a->verbs);

	pp_json_str(out, "memory", pp_memory_kind_name(a->memory->options.kind));
	pp_json_u64(out, "size", a->memory->size);
	pp_json_bool(out, "simulated", a->memory->simulated || software);
	if (!a->has_registered)
		return;
	pp_json_str(out, "registration", pp_registration_name(r->how));
	pp_json_str(out, "flush", r->flush[0] ? r->flush : NULL);
	/* our own clients tell the software device the range; of others it knows none */
	if (r->how == PP_REGISTERED_DMABUF)
		pp_json_str(out, "offset", "honoured");
}

static int open_all(struct pp_agent *a, const struct pp_open_command *o, struct pp_error *err)
{
	int r = 0;

	if (o->rung != PP_RUNG_TCP)
		r = open_endpoint(a, o, err);
	r = r ? r : make_memory(a, o, err);
	if (r)
		return r;
	if (o->rung != PP_RUNG_TCP) {
		r = register_memory(a, err);
		return r || !a->by_cm ? r : pp_agent_cm_listen(a, err);
	}
	one_part(a);
	if (a->end)
		r = pp_tcp_listen(a->address, &a->tcp, err);
	return r;
}

int pp_agent_open(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		  struct pp_error *err)
{
	const struct pp_open_command *o = &c->open;
	char cpus[PP_AGENT_TEXT];
	int r;

	if (a->open)
		return pp_error_set(err, -EBUSY, "open: another is open; close it first");
	a->open = true;
	a->rung = (enum pp_rung)o->rung;
	a->end = (unsigned int)o->end;
	a->by_cm = o->cm;
	a->tcp = PP_TCP_NONE;
	a->registered = (struct pp_registered){0};
	keep_text(a->device, o->device);
	keep_text(a->gpu, o->gpu);
	keep_text(a->netdev, o->netdev);
	keep_text(a->address, o->address);
	/* first, so that the provider's threads and memory come to lie there too */
	pp_agent_pin((int)o->numa, cpus, sizeof(cpus));
	pp_json_str(out, "cpus", *cpus ? cpus : NULL);
	r = open_all(a, o, err);
	write_attempts(a, out);
	if (r) {
		pp_agent_shut(a);
		return r;
	}
	if (a->has_endpoint)
		write_endpoint(a, out);
	write_keys(a, out);
	pp_agent_write_cm(a, out);
	write_memory(a, out);
	if (*a->gpu && a->memory->options.kind != PP_MEMORY_HOST &&
	    a->memory->options.kind != PP_MEMORY_SIM)
		a->watch = pp_gpu_watch_new(a->gpu);
	return 0;
}
