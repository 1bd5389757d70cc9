/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device must refuse, asked of the pair's own agents: end 0 reaches for memory of end 1 in
 * a way that it may not. Refused means both: the completion says so, and not a byte of the memory
 * changed. After each the queue pairs are in error, so both ends reset and connect again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/coordinator_state.h"
#include "base/banned.h"

enum { BYTES = 64, PARTS_KEY = 0x5a };

static const pp_ns STEP = 30 * PP_SECOND;

enum what { WRONG_KEY, BEYOND, NOT_WRITABLE, NOT_READABLE };

static const struct {
	const char *kind;
	enum what what;
	enum pp_operation op;
} attempts[] = {
	{"wrong rkey", WRONG_KEY, PP_WRITE},
	/* a READ: memory behind the region is another's, and a device that fails must not harm it
	 */
	{"beyond the region", BEYOND, PP_READ},
	{"write without the right", NOT_WRITABLE, PP_WRITE},
	{"read without the right", NOT_READABLE, PP_READ},
};

struct denial {
	struct pp_climb *c;
	struct pp_climber *m;
	enum pp_rung rung;
	int64_t seed[2];
	const char *why; /* it could not be tried */
};

static const char *keep(struct denial *d, const struct pp_order *o)
{
	return pp_arena_printf(d->c->b->arena, "%s", o->why);
}

/* One step by one end, or by both (@end 2), whose answers are the caller's. */
static bool step(struct denial *d, struct pp_order *o, unsigned int n)
{
	unsigned int bad;

	if (pp_climb_do(d->c, o, n, STEP))
		d->why = d->c->b->ended;
	else if (!pp_orders_good(o, n, &bad))
		d->why = keep(d, &o[bad]);
	else
		return true;
	return false;
}

static bool fill_both(struct denial *d)
{
	struct pp_order o[2];
	bool good;

	for (unsigned int e = 0; e < 2; e++) {
		d->seed[e] = pp_climb_seed(d->c);
		pp_json_i64(pp_order_begin(&o[e], &d->m->seat[d->rung][e], PP_DO_FILL), "seed",
			    d->seed[e]);
	}
	good = step(d, o, 2);
	pp_orders_free(o, 2);
	return good;
}

/* The key that is to be misused: one that was made for it, or the rung's own. */
static bool find_part(struct denial *d, enum what what, struct pp_part *ret)
{
	json_t *const keys = json_object_get(d->m->seat[d->rung][1].opened, "keys");
	struct pp_part part[PP_SLOTS_PARTS];
	struct pp_error err = {0};
	struct pp_order o;
	struct pp_json *j;
	unsigned int n = 0;
	bool good = true;

	if (what == WRONG_KEY || what == BEYOND) {
		good = !pp_parts_parse(keys, part, &n, &err);
	} else {
		j = pp_order_begin(&o, &d->m->seat[d->rung][1], PP_DO_RESTRICT);
		pp_json_bool(j, "writable", what == NOT_READABLE);
		pp_json_bool(j, "readable", what == NOT_WRITABLE);
		good = step(d, &o, 1) &&
		       !pp_parts_parse(json_object_get(o.answer, "keys"), part, &n, &err);
		pp_orders_free(&o, 1);
	}
	if (!good) {
		d->why = d->why ? d->why : pp_arena_str(d->c->b->arena, err.text);
		return false;
	}
	*ret = part[n - 1];
	return true;
}

static bool reach(struct denial *d, unsigned int i, struct pp_bench_negative *ret)
{
	struct pp_part part;
	struct pp_order o;
	struct pp_json *j;
	uint64_t address;
	bool good;

	if (!find_part(d, attempts[i].what, &part))
		return false;
	address = part.address;
	if (attempts[i].what == BEYOND)
		address += part.length - BYTES / 2;
	if (attempts[i].what == WRONG_KEY)
		part.key ^= PARTS_KEY;
	j = pp_order_begin(&o, &d->m->seat[d->rung][0], PP_DO_NEGATIVE);
	pp_json_str(j, "op", pp_operation_name(attempts[i].op));
	pp_json_u64(j, "address", address);
	pp_json_u64(j, "key", part.key);
	pp_json_i64(j, "from", 0);
	pp_json_i64(j, "size", BYTES);
	good = step(d, &o, 1);
	if (good) {
		ret->status = pp_climb_text(d->c, o.answer, "status_name");
		ret->refused = json_is_true(json_object_get(o.answer, "refused"));
		ret->run = json_is_true(json_object_get(o.answer, "decided"));
	}
	pp_orders_free(&o, 1);
	return good;
}

static bool unchanged(struct denial *d, struct pp_bench_negative *ret)
{
	struct pp_order o;
	struct pp_json *j = pp_order_begin(&o, &d->m->seat[d->rung][1], PP_DO_CHECK);
	bool good;
	int64_t wrong;

	pp_json_i64(j, "seed", d->seed[0]);
	pp_json_i64(j, "own", d->seed[1]);
	pp_json_i64(j, "size", 0);
	pp_json_i64(j, "way", 0);
	good = step(d, &o, 1);
	wrong = good ? pp_climb_number(o.answer, "wrong", 0) : 0;
	if (wrong) {
		ret->run = true;
		ret->refused = false;
		ret->status = pp_arena_printf(d->c->b->arena, "%s, and %lld bytes changed",
					      ret->status, (long long)wrong);
	}
	pp_orders_free(&o, 1);
	return good;
}

static bool mend(struct denial *d)
{
	struct pp_order o[2], again[2];
	unsigned int bad;
	bool good;

	for (unsigned int e = 0; e < 2; e++)
		(void)pp_order_begin(&o[e], &d->m->seat[d->rung][e], PP_DO_RESET);
	good = step(d, o, 2);
	if (good) {
		json_t *const answer[2] = {o[0].answer, o[1].answer};

		good = pp_climb_connect(d->c, d->m, d->rung, answer, again);
		if (good && !pp_orders_good(again, 2, &bad)) {
			d->why = keep(d, &again[bad]);
			good = false;
		}
		pp_orders_free(again, 2);
	}
	pp_orders_free(o, 2);
	return good;
}

static void deny(struct pp_climb *c, struct pp_climber *m, enum pp_rung r)
{
	struct denial d = {.c = c, .m = m, .rung = r};
	struct pp_bench_rung *rung = &m->pair->rung[r];

	rung->negatives =
		pp_arena_array(c->b->arena, PP_ARRAY_LEN(attempts), sizeof(*rung->negatives));
	if (!rung->negatives)
		return;
	for (unsigned int i = 0; i < PP_ARRAY_LEN(attempts); i++) {
		struct pp_bench_negative *n = &rung->negatives[rung->n_negatives++];

		n->kind = attempts[i].kind;
		if (d.why || !fill_both(&d) || !reach(&d, i, n) || !unchanged(&d, n) || !mend(&d))
			n->status = n->status ? n->status : d.why;
	}
}

void pp_climb_negative(struct pp_climb *c, struct pp_climber *m)
{
	for (unsigned int r = PP_RUNG_HOST; r < PP_RUNG_STAGED && !c->over; r++)
		if (pp_rung_is_open(m, (enum pp_rung)r))
			deny(c, m, (enum pp_rung)r);
}
