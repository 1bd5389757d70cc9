/* SPDX-License-Identifier: Apache-2.0 */
#include "ends.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

enum {
	STRIDE = ENDS_SLOT_MOST + 2 * ENDS_GUARD,
	BYTES = 2 * ENDS_SLOTS * STRIDE,
	MESSAGE = 32768,
	GUARD = 0xa5
};

void ends_fault(const struct end *e, const char *format, ...)
{
	va_list args;

	(void)fprintf(stderr, "%s end, %s: ", e->first ? "first" : "second",
		      e->doing ? e->doing : "at the start");
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fprintf(stderr, "\n");
	_exit(1);
}

static unsigned char *slot(const struct end *e, bool in, unsigned int i)
{
	return e->memory + (size_t)((in ? ENDS_SLOTS : 0) + i) * STRIDE + ENDS_GUARD;
}

static unsigned char byte_of(unsigned int seed, unsigned int i, size_t at)
{
	return (unsigned char)(seed * 31 + i * 7 + at + (at >> 8) * 13 + (at >> 16) * 5 + 1);
}

void ends_fill(struct end *e, uint32_t size, unsigned int seed)
{
	for (unsigned int i = 0; i < ENDS_SLOTS; i++) {
		unsigned char *in = slot(e, true, i);

		for (size_t at = 0; at < size; at++)
			slot(e, false, i)[at] = byte_of(seed, i, at);
		memset(in - ENDS_GUARD, GUARD, ENDS_GUARD);
		memset(in, 0, size);
		memset(in + size, GUARD, ENDS_GUARD);
	}
	ends_meet(e);
}

void ends_verify(struct end *e, uint32_t size, unsigned int seed, unsigned int slots)
{
	for (unsigned int i = 0; i < ENDS_SLOTS; i++) {
		const unsigned char *in = slot(e, true, i);

		for (size_t at = 0; at < size; at++)
			if (in[at] != (i < slots ? byte_of(seed, i, at) : 0))
				ends_fault(e, "slot %u, byte %zu of %u is %u", i, at, size, in[at]);
		for (size_t at = 0; at < ENDS_GUARD; at++)
			if (in[size + at] != GUARD || in[-1 - (ptrdiff_t)at] != GUARD)
				ends_fault(e, "a guard of slot %u was written to", i);
	}
}

/* ── what the ends tell each other ── */

static void all(const struct end *e, void *bytes, size_t len, bool out)
{
	char *at = bytes;
	ssize_t n;

	for (; len; at += n, len -= (size_t)n) {
		n = out ? write(e->wire, at, len) : read(e->wire, at, len);
		if (n <= 0)
			ends_fault(e, "the other end is gone");
	}
}

void ends_tell(const struct end *e, void *bytes, size_t len)
{
	uint32_t length = (uint32_t)len;

	all(e, &length, sizeof(length), true);
	all(e, bytes, len, true);
}

size_t ends_hear(const struct end *e, void *bytes, size_t size)
{
	uint32_t length;

	all(e, &length, sizeof(length), false);
	ends_check(e, length <= size);
	all(e, bytes, length, false);
	return length;
}

void ends_meet(const struct end *e)
{
	char c = 'm';

	ends_tell(e, &c, 1);
	(void)ends_hear(e, &c, 1);
}

static void say_address(struct end *e)
{
	struct pp_buf b = PP_BUF(MESSAGE);
	struct pp_json j = PP_JSON(&b, false);

	pp_json_object(&j, NULL);
	pp_json_u64(&j, "memory", (uintptr_t)e->memory);
	pp_json_u64(&j, "rkey", e->mr->rkey);
	pp_json_array(&j, "addresses");
	for (unsigned int q = 0; q < e->endpoint.options.qps; q++) {
		struct pp_address a;

		pp_endpoint_address(&e->endpoint, q, &a);
		pp_address_write(&j, NULL, &a);
	}
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	ends_tell(e, b.data, b.len);
	pp_buf_done(&b);
}

static void place_slots(struct end *e, uint64_t memory, uint32_t rkey)
{
	for (unsigned int i = 0; i < ENDS_SLOTS; i++) {
		uint64_t out = (uint64_t)(slot(e, false, i) - e->memory);
		uint64_t in = (uint64_t)(slot(e, true, i) - e->memory);
		uint64_t here = (uintptr_t)e->memory;

		e->out[i] = (struct pp_slot){here + out, memory + in, e->mr->lkey, rkey};
		e->in[i] = (struct pp_slot){here + in, memory + in, e->mr->lkey, rkey};
		e->from[i] = (struct pp_slot){here + in, memory + out, e->mr->lkey, rkey};
	}
}

/* The first listens. */
static void connect_by_cm(struct end *e)
{
	struct pp_cm_options o = {.nonce = 0x1234567890abcdef,
				  .deadline = pp_clock_monotonic() + 20 * PP_SECOND};
	struct ends_place place = {0};
	struct pp_error err;
	int r;

	o.address = place.address;
	if (e->first) {
		r = pp_cm_address(&e->endpoint, NULL, place.address, &err);
		if (!r)
			r = pp_cm_listen(&e->endpoint, &o, &e->connections, &place.port, &err);
		if (r)
			ends_fault(e, "%s", err.text);
		ends_tell(e, &place, sizeof(place));
		r = pp_cm_accept(e->connections, &err);
	} else {
		(void)ends_hear(e, &place, sizeof(place));
		o.port = place.port;
		r = pp_cm_connect(&e->endpoint, &o, &e->connections, &err);
	}
	if (r)
		ends_fault(e, "%s", err.text);
}

static void connect_by_addresses(struct end *e, const json_t *addresses)
{
	struct pp_address peer;
	struct pp_error err;
	json_t *each;
	size_t q;

	json_array_foreach(addresses, q, each)
	{
		if (pp_address_parse(each, &peer, &err) ||
		    pp_endpoint_connect(&e->endpoint, (unsigned int)q, &peer, &err))
			ends_fault(e, "%s", err.text);
	}
}

void ends_connect(struct end *e)
{
	char text[MESSAGE];
	json_t *said;

	say_address(e);
	said = json_loadb(text, ends_hear(e, text, sizeof(text)), 0, NULL);
	ends_check(e, said != NULL);
	if (e->by_cm)
		connect_by_cm(e);
	else
		connect_by_addresses(e, json_object_get(said, "addresses"));
	place_slots(e, (uint64_t)json_integer_value(json_object_get(said, "memory")),
		    (uint32_t)json_integer_value(json_object_get(said, "rkey")));
	json_decref(said);
	ends_meet(e);
}

void ends_open(struct end *e, const struct pp_endpoint_options *options, int access)
{
	struct pp_error err;

	if (pp_endpoint_open(&e->verbs, options, &e->endpoint, &err)) {
		if (err.code == -EADDRINUSE) {
			(void)fprintf(stderr, "skipped: %s\n", err.text);
			_exit(77);
		}
		ends_fault(e, "%s", err.text);
	}
	if (posix_memalign((void **)&e->memory, 4096, BYTES))
		ends_fault(e, "no memory");
	e->mr = e->verbs.reg_memory(e->endpoint.pd, e->memory, BYTES, access);
	ends_check(e, e->mr != NULL);
	ends_connect(e);
}

void ends_reset(struct end *e)
{
	struct pp_error err;

	ends_meet(e);
	e->connections = pp_cm_free(e->connections);
	for (unsigned int q = 0; q < e->endpoint.options.qps; q++)
		if (pp_endpoint_reset(&e->endpoint, q, &err))
			ends_fault(e, "%s", err.text);
	ends_meet(e);
	ends_connect(e);
}

void ends_close(struct end *e)
{
	e->connections = pp_cm_free(e->connections);
	ends_check(e, e->verbs.dereg_mr(e->mr) == 0);
	pp_endpoint_close(&e->endpoint);
	free(e->memory);
}
