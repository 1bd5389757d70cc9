/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fates of packets. Each packet takes the same count of numbers whatever its fate, so that one
 * packet's fate does not depend on which faults are switched on.
 */
#include "soft/link/fault.h"

#include "base/banned.h"

enum { BEHIND_MAX = 3 };

/* Maps 32 random bits to 0 .. bound-1 without a division. */
static uint32_t below(uint32_t random, uint32_t bound)
{
	return (uint32_t)((uint64_t)random * bound >> 32);
}

static void look(struct soft_fault *f)
{
	f->active = f->port_down || f->num_dead;
	for (unsigned int i = 0; i < f->set.num; i++)
		f->active |= f->set.rules[i].spec.noun != SOFT_FAULT_SEED;
}

static void add_share(struct soft_fault *f, const char *text, enum soft_fault_noun noun,
		      uint32_t ppm)
{
	struct soft_fault_spec spec;
	struct pp_error err = {0};

	if (!ppm || soft_fault_spec_parse(text, &spec, &err))
		return;
	spec.noun = noun;
	spec.when.ppm = ppm;
	(void)soft_fault_set_add(&f->set, &spec, &err);
}

void soft_fault_init(struct soft_fault *f, const struct soft_fault_plan *plan)
{
	*f = (struct soft_fault){.seed = plan->seed, .random = plan->seed};
	add_share(f, "loss=any@100%", SOFT_FAULT_LOSS, plan->loss_ppm);
	add_share(f, "duplicate=any@100%", SOFT_FAULT_DUPLICATE, plan->duplicate_ppm);
	add_share(f, "reorder=any@100%", SOFT_FAULT_REORDER, plan->reorder_ppm);
	add_share(f, "corrupt=any@100%", SOFT_FAULT_CORRUPT, plan->corrupt_ppm);
	look(f);
}

int soft_fault_apply(struct soft_fault *f, const struct soft_fault_spec *spec, struct pp_error *err)
{
	int r = soft_fault_set_add(&f->set, spec, err);

	if (r)
		return r;
	if (spec->noun == SOFT_FAULT_SEED) {
		f->seed = f->random = spec->off ? 0 : spec->number;
		f->packets = f->logged = f->hash = 0;
	}
	look(f);
	return 0;
}

void soft_fault_clear(struct soft_fault *f)
{
	f->set.num = 0;
	f->port_down = false;
	f->num_dead = 0;
	look(f);
}

void soft_fault_set_port(struct soft_fault *f, bool down)
{
	f->port_downs += down && !f->port_down;
	f->port_down = down;
	look(f);
}

void soft_fault_set_dead(struct soft_fault *f, const struct soft_gid *gid, bool dead)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < f->num_dead; i++)
		if (!soft_gid_equal(&f->dead[i], gid))
			f->dead[kept++] = f->dead[i];
	if (dead && kept < SOFT_FAULT_DEAD_MAX)
		f->dead[kept++] = *gid;
	f->num_dead = kept;
	look(f);
}

static void write_down(struct soft_fault *f, const struct soft_fault_packet *p,
		       enum soft_fault_noun noun)
{
	struct soft_fault_entry *e = &f->log[f->logged++ % SOFT_FAULT_LOG];
	const uint64_t words[] = {f->packets, p->psn, p->opcode, noun};

	*e = (struct soft_fault_entry){f->packets, p->psn, p->opcode, (uint8_t)noun};
	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		f->hash = (f->hash ^ words[i]) * 0x100000001b3u;
}

static bool is_dead(const struct soft_fault *f, const struct soft_gid *ours)
{
	for (unsigned int i = 0; i < f->num_dead; i++)
		if (soft_gid_equal(&f->dead[i], ours))
			return true;
	return false;
}

/* Is the wire cut between us and @theirs? @way: PARTITION_IN or PARTITION_OUT. */
static bool is_cut(struct soft_fault *f, const struct soft_gid *theirs, enum soft_fault_noun way)
{
	bool cut = false;

	for (unsigned int i = 0; i < f->set.num; i++) {
		struct soft_fault_rule *r = &f->set.rules[i];

		if ((r->spec.noun != way && r->spec.noun != SOFT_FAULT_PARTITION) ||
		    (!r->spec.all && !soft_gid_equal(&r->spec.address, theirs)))
			continue;
		r->seen++;
		r->fired++;
		cut = true;
	}
	return cut;
}

bool soft_fault_refuses(struct soft_fault *f, const struct soft_gid *src,
			const struct soft_gid *dst)
{
	bool refused = f->port_down || is_dead(f, dst) || is_cut(f, src, SOFT_FAULT_PARTITION_IN);

	f->cut += refused;
	return refused;
}

/* Does a rule mean this packet for @noun? All that match count it. */
static struct soft_fault_rule *meant(struct soft_fault *f, const struct soft_fault_packet *p,
				     enum soft_fault_noun noun, uint32_t random)
{
	struct soft_fault_rule *by = NULL;

	for (unsigned int i = 0; i < f->set.num; i++) {
		struct soft_fault_rule *r = &f->set.rules[i];

		if (r->spec.noun != noun ||
		    !soft_fault_which_is(&r->spec.which, p->opcode, p->syndrome))
			continue;
		r->seen++;
		if (by || !soft_fault_when_fires(&r->spec.when, r->seen, random))
			continue;
		r->fired++;
		by = r;
	}
	if (by)
		write_down(f, p, noun);
	return by;
}

/* What goes with others: who is lost is not corrupted as well. */
static void draw_rest(struct soft_fault *f, const struct soft_fault_packet *p,
		      const uint64_t random[5], struct soft_fault_fate *fate)
{
	const struct soft_fault_rule *late;

	fate->duplicated = meant(f, p, SOFT_FAULT_DUPLICATE, (uint32_t)(random[0] >> 32));
	fate->reordered = meant(f, p, SOFT_FAULT_REORDER, (uint32_t)random[1]);
	fate->corrupted = meant(f, p, SOFT_FAULT_CORRUPT, (uint32_t)(random[1] >> 32));
	fate->behind = (uint8_t)(1 + below((uint32_t)(random[2] >> 32), BEHIND_MAX));
	fate->corrupt_bit = (uint32_t)random[2];
	fate->marked = meant(f, p, SOFT_FAULT_ECN, (uint32_t)random[3]);
	fate->spoiled =
		p->has_payload && meant(f, p, SOFT_FAULT_SPOIL, (uint32_t)(random[4] >> 32));
	late = meant(f, p, SOFT_FAULT_DELAY, (uint32_t)(random[3] >> 32));
	if (late)
		fate->delay = (pp_ns)(late->spec.number +
				      (late->spec.more ? random[4] % (late->spec.more + 1) : 0));
	f->duplicated += fate->duplicated;
	f->reordered += fate->reordered;
	f->corrupted += fate->corrupted;
	f->marked += fate->marked;
	f->spoiled += fate->spoiled;
	f->delayed += late != NULL;
}

struct soft_fault_fate soft_fault_draw(struct soft_fault *f, const struct soft_fault_packet *p)
{
	struct soft_fault_fate fate = {0};
	uint64_t random[5];

	f->packets++;
	for (unsigned int i = 0; i < sizeof(random) / sizeof(random[0]); i++)
		random[i] = soft_fault_random(&f->random);
	if (f->port_down || is_dead(f, p->src) || is_cut(f, p->dst, SOFT_FAULT_PARTITION_OUT)) {
		f->cut++;
		fate.lost = true;
	} else if (meant(f, p, SOFT_FAULT_LOSS, (uint32_t)random[0])) {
		f->lost++;
		fate.lost = true;
	} else {
		draw_rest(f, p, random, &fate);
	}
	return fate;
}

uint64_t soft_fault_bandwidth(struct soft_fault *f)
{
	const struct soft_fault_rule *r = soft_fault_set_find(&f->set, SOFT_FAULT_BANDWIDTH);

	return r ? r->spec.number : 0;
}

void soft_fault_dropped(struct soft_fault *f, const struct soft_fault_packet *p)
{
	struct soft_fault_rule *r = soft_fault_set_find(&f->set, SOFT_FAULT_BANDWIDTH);

	f->lost++;
	if (r)
		r->fired++;
	write_down(f, p, SOFT_FAULT_BANDWIDTH);
}
