/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each control's expectation, check by check. One that could not be looked at says what is missing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "judge/control_parts.h"
#include "base/banned.h"

/* Of what the hcas sent: the same within that. */
static const double SAME = 0.05;
/* Host work that shows staging: CPU by that factor; memory by bytes for each byte sent. */
static const double CPU_MORE = 1.05, MEMORY_MORE = 0.5;

/* All that the checks of one control look at. */
struct exam {
	const struct pp_nccl_run *whole, *run;
	const struct pp_sum *before, *after;
	struct pp_control *c;
};

static PP_PRINTF(5, 6) void say(struct exam *e, enum pp_control_state state, const char *what,
				const char *expected, const char *fmt, ...)
{
	struct pp_control_check *k = &e->c->check[e->c->n_checks];
	va_list ap;

	if (e->c->n_checks == PP_CONTROL_CHECKS)
		return;
	e->c->n_checks++;
	k->what = what;
	k->state = state;
	(void)snprintf(k->expected, sizeof(k->expected), "%s", expected);
	va_start(ap, fmt);
	(void)vsnprintf(k->seen, sizeof(k->seen), fmt, ap);
	va_end(ap);
}

static const char *carriers(const struct pp_nccl_run *r)
{
	return *r->networks ? r->networks : "a network that no line names";
}

static void check_end(struct exam *e)
{
	if (e->after->ended_well)
		say(e, PP_CONTROL_AS_EXPECTED, "end", "the job ends well", "it did");
	else
		say(e, PP_CONTROL_UNKNOWN, "end", "the job ends well", "%s", e->after->ended);
}

/* Connections of which it is known whether they have the marker. */
static bool ends_whole(const struct pp_nccl_run *r)
{
	const struct pp_nccl_ends *n = &r->judgement.ends;

	return r->judgement.coverage == PP_NCCL_COVER_ALL && !n->unpaired && !n->ambiguous &&
	       n->gdr + n->staged > 0;
}

static void marker_unseen(struct exam *e, const char *expected)
{
	const struct pp_nccl_judgement *j = &e->run->judgement;

	say(e, PP_CONTROL_UNKNOWN, "marker", expected,
	    "%" PRIu32 " ends with, %" PRIu32 " without GDRDMA; lines of %" PRIu64 " of %" PRIu64
	    " ranks",
	    j->ends.gdr, j->ends.staged, j->ranks_seen, j->ranks);
}

static void marker_gone(struct exam *e)
{
	static const char EXPECTED[] = "no connection between hosts has GDRDMA";
	const struct pp_nccl_ends *n = &e->run->judgement.ends;

	if (n->gdr)
		say(e, PP_CONTROL_OTHER, "marker", EXPECTED,
		    "%" PRIu32 " of %" PRIu32 " ends still have it", n->gdr, n->gdr + n->staged);
	else if (n->socket)
		say(e, PP_CONTROL_OTHER, "marker", EXPECTED,
		    "it fell to TCP: %" PRIu32 " ends over %s", n->socket, carriers(e->run));
	else if (!ends_whole(e->run))
		marker_unseen(e, EXPECTED);
	else
		say(e, PP_CONTROL_AS_EXPECTED, "marker", EXPECTED,
		    "%" PRIu32 " ends, all without it, over %s", n->staged, carriers(e->run));
}

static void marker_stays(struct exam *e)
{
	static const char EXPECTED[] = "GDRDMA on every connection still: by peermem";
	const struct pp_nccl_ends *n = &e->run->judgement.ends;

	if (n->staged || n->socket)
		say(e, PP_CONTROL_OTHER, "marker", EXPECTED,
		    "%" PRIu32 " ends without it, %" PRIu32 " over TCP", n->staged, n->socket);
	else if (!ends_whole(e->run))
		marker_unseen(e, EXPECTED);
	else
		say(e, PP_CONTROL_AS_EXPECTED, "marker", EXPECTED, "on all %" PRIu32 " ends",
		    n->gdr);
}

static void marker_of_sends(struct exam *e)
{
	static const char EXPECTED[] = "sending ends lose GDRDMA, receiving ends keep it";
	const struct pp_nccl_ends *n = &e->run->judgement.ends;
	uint32_t sends = n->gdr_sends, receives = n->gdr - n->gdr_sends,
		 staged_receives = n->staged - n->staged_sends;

	if (sends || n->socket)
		say(e, PP_CONTROL_OTHER, "marker", EXPECTED,
		    "%" PRIu32 " sending ends still have it, %" PRIu32 " ends are over TCP", sends,
		    n->socket);
	else if (!ends_whole(e->run))
		marker_unseen(e, EXPECTED);
	else if (!receives || staged_receives)
		say(e, PP_CONTROL_OTHER, "marker", EXPECTED,
		    "%" PRIu32 " receiving ends lost it too", staged_receives);
	else
		say(e, PP_CONTROL_AS_EXPECTED, "marker", EXPECTED,
		    "%" PRIu32 " sending ends without, %" PRIu32 " receiving ends with it",
		    n->staged_sends, receives);
}

/*
 * Each witness that saw GPU memory in the unchanged run must be there and see none: another one
 * that sees none would not be the same look.
 */
static void registrations_gone(struct exam *e)
{
	static const char EXPECTED[] = "no GPU memory is registered";
	const struct pp_sum *b = e->before, *a = e->after;
	bool library = b->library.gpu > 0, kernel = b->kernel.gpu > 0;

	if (a->library.gpu || a->kernel.gpu)
		say(e, PP_CONTROL_OTHER, "registrations", EXPECTED,
		    "observer: %" PRIu64 " regions of GPU memory, kernel: %" PRIu64, a->library.gpu,
		    a->kernel.gpu);
	else if (!library && !kernel)
		say(e, PP_CONTROL_UNKNOWN, "registrations", EXPECTED,
		    "nobody saw any in the unchanged run: none now tells nothing");
	else if (library && !a->library.known)
		say(e, PP_CONTROL_UNKNOWN, "registrations", EXPECTED, "observer: %s",
		    a->library.why);
	else if (kernel && !a->kernel.known)
		say(e, PP_CONTROL_UNKNOWN, "registrations", EXPECTED, "kernel: %s", a->kernel.why);
	else
		say(e, PP_CONTROL_AS_EXPECTED, "registrations", EXPECTED, "none, by %s",
		    !kernel    ? "observer"
		    : !library ? "kernel"
			       : "observer and kernel");
}

static void registrations_by_peermem(struct exam *e)
{
	static const char EXPECTED[] = "GPU memory by peermem, none by DMA-BUF";
	const struct pp_sum *a = e->after;
	uint64_t dmabuf = a->library.made[PP_REGISTERED_DMABUF] +
			  a->kernel.made[PP_REGISTERED_DMABUF],
		 peermem = a->library.made[PP_REGISTERED_PEERMEM] +
			   a->kernel.made[PP_REGISTERED_PEERMEM];
	bool library = a->library.known || !e->before->library.gpu,
	     kernel = a->kernel.known || !e->before->kernel.gpu;

	if (dmabuf)
		say(e, PP_CONTROL_OTHER, "registrations", EXPECTED,
		    "%" PRIu64 " regions by DMA-BUF", dmabuf);
	else if (!peermem)
		say(e, PP_CONTROL_UNKNOWN, "registrations", EXPECTED,
		    "nobody saw GPU memory registered");
	else if (!library || !kernel)
		say(e, PP_CONTROL_UNKNOWN, "registrations", EXPECTED, "%s: %s",
		    library ? "kernel" : "observer", library ? a->kernel.why : a->library.why);
	else
		say(e, PP_CONTROL_AS_EXPECTED, "registrations", EXPECTED,
		    "%" PRIu64 " regions by peermem", peermem);
}

static void peermem_moves(struct exam *e)
{
	static const char EXPECTED[] = "peermem's counters move";

	if (!e->after->peermem_known)
		say(e, PP_CONTROL_UNKNOWN, "peermem", EXPECTED,
		    "neither counters nor a reference count could be read on every node");
	else if (!e->after->peermem_moved)
		say(e, PP_CONTROL_OTHER, "peermem", EXPECTED, "on some node they did not");
	else
		say(e, PP_CONTROL_AS_EXPECTED, "peermem", EXPECTED, "on every node");
}

static void same_bytes(struct exam *e)
{
	static const char EXPECTED[] = "the hcas send the same, within 5 %";
	const struct pp_sum *b = e->before, *a = e->after;

	if (!a->bytes_known || !b->bytes_known || !(b->sent > 0)) {
		say(e, PP_CONTROL_UNKNOWN, "hca bytes", EXPECTED, "%s",
		    !a->bytes_known   ? a->bytes_why
		    : !b->bytes_known ? b->bytes_why
				      : "the unchanged run sent nothing");
		return;
	}
	if (fabs(a->sent - b->sent) <= SAME * b->sent)
		say(e, PP_CONTROL_AS_EXPECTED, "hca bytes", EXPECTED, "%.2f GB, unchanged %.2f GB",
		    a->sent / 1e9, b->sent / 1e9);
	else
		say(e, PP_CONTROL_OTHER, "hca bytes", EXPECTED, "%.2f GB, unchanged %.2f GB%s",
		    a->sent / 1e9, b->sent / 1e9,
		    a->sent < b->sent / 2 ? ": the rest went another way (TCP, NVLink)" : "");
}

/* Not of software: there the hca itself is host work. */
static bool host_cpu(struct exam *e)
{
	static const char EXPECTED[] = "more CPU for each GB";
	double before, after;
	bool more;

	if (e->whole->simulated || e->run->simulated) {
		say(e, PP_CONTROL_NOT_RUN, "host CPU", EXPECTED,
		    "not asked: a software device is host work itself");
		return true;
	}
	if (!pp_sum_cpu_per_gb(e->before, &before) || !pp_sum_cpu_per_gb(e->after, &after)) {
		say(e, PP_CONTROL_UNKNOWN, "host CPU", EXPECTED, "not known of both runs");
		return false;
	}
	more = after >= CPU_MORE * before;
	say(e, more ? PP_CONTROL_AS_EXPECTED : PP_CONTROL_UNKNOWN, "host CPU", EXPECTED,
	    "%.3f s/GB, unchanged %.3f%s", after, before,
	    more ? "" : ": cores that poll may hide it");
	return more;
}

static bool host_memory(struct exam *e)
{
	static const char EXPECTED[] = "more host memory traffic for each byte";
	double before, after;
	bool more;

	if (e->whole->simulated || e->run->simulated) {
		say(e, PP_CONTROL_NOT_RUN, "host memory", EXPECTED,
		    "not asked: a software device is host work itself");
		return true;
	}
	if (!pp_sum_memory_per_byte(e->before, &before) ||
	    !pp_sum_memory_per_byte(e->after, &after)) {
		say(e, PP_CONTROL_UNKNOWN, "host memory", EXPECTED, "%s",
		    !e->before->memory_known  ? e->before->memory_why
		    : !e->after->memory_known ? e->after->memory_why
					      : "the hcas' bytes are not known");
		return false;
	}
	more = after >= before + MEMORY_MORE;
	say(e, more ? PP_CONTROL_AS_EXPECTED : PP_CONTROL_UNKNOWN, "host memory", EXPECTED,
	    "%.2f bytes for each byte sent, unchanged %.2f%s", after, before,
	    more ? "" : ": a cache may hold what is staged");
	return more;
}

/* The last two checks are one: their worst does not count where the other is good. */
static void conclude(struct pp_control *c, bool host_shown, unsigned int of_host)
{
	c->state = PP_CONTROL_AS_EXPECTED;
	for (unsigned int i = 0; i < c->n_checks - of_host; i++) {
		if (c->check[i].state == PP_CONTROL_OTHER)
			c->state = PP_CONTROL_OTHER;
		else if (c->check[i].state == PP_CONTROL_UNKNOWN && c->state != PP_CONTROL_OTHER)
			c->state = PP_CONTROL_UNKNOWN;
	}
	if (!host_shown && c->state == PP_CONTROL_AS_EXPECTED)
		c->state = PP_CONTROL_UNKNOWN;
}

static void staged_whole(struct exam *e)
{
	bool cpu, memory;

	check_end(e);
	marker_gone(e);
	registrations_gone(e);
	same_bytes(e);
	cpu = host_cpu(e);
	memory = host_memory(e);
	conclude(e->c, cpu || memory, 2);
}

static void not_applicable(struct pp_control *c, enum pp_control_state state, const char *says)
{
	c->state = state;
	(void)snprintf(c->says, sizeof(c->says), "%s", says);
}

static void judge_a(struct exam *e)
{
	staged_whole(e);
}

static void judge_b(struct exam *e)
{
	const struct pp_sum *b = e->before;

	if (b->library.made[PP_REGISTERED_DATA_DIRECT] ||
	    b->kernel.made[PP_REGISTERED_DATA_DIRECT]) {
		not_applicable(e->c, PP_CONTROL_NOT_APPLICABLE,
			       "data-direct registers by its own call: DMA-BUF off is no control "
			       "of it");
		return;
	}
	if (e->after->peermem == PP_NCCL_PRESENCE_UNKNOWN) {
		not_applicable(e->c, PP_CONTROL_UNKNOWN,
			       "whether every node has peermem, or none, is not known: both the "
			       "marker and its absence could be right");
		return;
	}
	if (e->after->peermem == PP_NCCL_ABSENT) {
		staged_whole(e);
		return;
	}
	check_end(e);
	marker_stays(e);
	registrations_by_peermem(e);
	peermem_moves(e);
	same_bytes(e);
	conclude(e->c, true, 0);
}

static void judge_c(struct exam *e)
{
	if (!e->whole->judgement.ends.gdr_sends) {
		not_applicable(
			e->c, PP_CONTROL_UNKNOWN,
			"no sending end had GDRDMA to lose: NCCL_NET_GDR_READ=0, or NCCL's "
			"default on GPUs without NVLink (before 2.19 all, later those before "
			"compute capability 8.0)");
		return;
	}
	check_end(e);
	marker_of_sends(e);
	same_bytes(e);
	conclude(e->c, true, 0);
}

static void sentence(struct pp_control *c)
{
	const struct pp_control_check *k = NULL;

	for (unsigned int i = 0; i < c->n_checks && !k; i++)
		if (c->check[i].state == c->state && c->state != PP_CONTROL_AS_EXPECTED)
			k = &c->check[i];
	if (*c->says)
		return;
	if (!k)
		(void)snprintf(c->says, sizeof(c->says), "did what it must");
	else
		(void)snprintf(c->says, sizeof(c->says), "%s: %s%.180s", k->what,
			       c->state == PP_CONTROL_OTHER ? "not as it must be: " : "", k->seen);
}

void pp_control_judge(const struct pp_nccl_run *whole, const struct pp_sum *before,
		      const struct pp_nccl_run *r, enum pp_nccl_arm arm, struct pp_control *ret)
{
	static void (*const judges[PP_NCCL_ARMS])(struct exam * e) = {
		[PP_NCCL_ARM_A] = judge_a,
		[PP_NCCL_ARM_B] = judge_b,
		[PP_NCCL_ARM_C] = judge_c,
	};
	struct pp_sum after;
	struct exam e = {whole, r, before, &after, ret};

	*ret = (struct pp_control){.arm = arm};
	if (!r || !judges[arm]) {
		(void)snprintf(ret->says, sizeof(ret->says), "was not run");
		return;
	}
	pp_sum_run(r, &after);
	judges[arm](&e);
	sentence(ret);
}
