/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rung: did it run, whole, and did the right bytes arrive where they may? Speed and counters
 * are judged elsewhere.
 */
#include <inttypes.h>
#include <errno.h>
#include <string.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

static const char NEXT_FABRIC[] = "peerpath check --details",
		  NEXT_REGISTRATION[] = "peerpath check --probe",
		  NEXT_AGAIN[] = "peerpath bench PEER", NEXT_ASKED[] = "peerpath bench --help",
		  NEXT_THROTTLE[] = "nvidia-smi -q -d PERFORMANCE,CLOCK",
		  NEXT_BYTES[] = "peerpath topo",
		  NEXT_NEGATIVE[] = "peerpath bench PEER --negative";

/* What the verdict stands on; tcp and staged are there to be compared with. */
static bool counts(enum pp_rung rung)
{
	return rung == PP_RUNG_HOST || pp_rung_is_direct(rung);
}

static bool has_gpu(enum pp_rung rung)
{
	return pp_rung_is_direct(rung) || rung == PP_RUNG_STAGED;
}

static const struct pp_bench_attempt *failed_attempt(const struct pp_bench_rung *r)
{
	for (unsigned int i = r->n_attempts; i--;)
		if (r->attempts[i].error)
			return &r->attempts[i];
	return NULL;
}

static bool is_registration(const char *call)
{
	return call && (strstr(call, "reg_") || strstr(call, "cuMem") || strstr(call, "Handle"));
}

/* The rung's own call, else that of the last attempt to register. */
static struct pp_failure failure_of(const struct pp_bench_rung *r)
{
	const struct pp_bench_attempt *a = failed_attempt(r);
	struct pp_failure f = {.call = r->call,
			       .error = r->error,
			       .status = r->status,
			       .why = r->why,
			       .end = r->end < 2 ? r->end : 0};

	f.cuda = a && a->cuda && f.call && a->call && !strcmp(f.call, a->call);
	if (!f.status && !f.error && a) {
		f.error = a->error;
		f.cuda = a->cuda;
		f.call = a->call;
		f.end = a->end < 2 ? a->end : 0;
	}
	return f;
}

static bool never_registered(const struct pp_failure *f)
{
	return !f->status && is_registration(f->call);
}

/* Refused by ourselves before any call: what was asked for (a GID, an MTU) is not there. */
static bool never_tried(const struct pp_failure *f)
{
	return !f->call && !f->status && f->why &&
	       (f->error == EINVAL || f->error == ENOENT || f->error == EADDRNOTAVAIL);
}

/* Calls before anything could be sent: the device, or a limit of this process. */
static bool is_of_setup(const char *call)
{
	static const char *const calls[] = {"dlopen",	      "ibv_open_device", "ibv_query_device",
					    "ibv_query_port", "ibv_alloc_pd",	 "ibv_create_cq",
					    "ibv_create_qp"};

	for (size_t i = 0; call && i < PP_ARRAY_LEN(calls); i++)
		if (!strcmp(calls[i], call))
			return true;
	return false;
}

static void say_failure(struct pp_transfer_case *c, enum pp_rung rung, const struct pp_failure *f,
			const char *what)
{
	struct pp_remarks *m = &c->rung[rung];
	const char *next = never_registered(f)	  ? NEXT_REGISTRATION
			   : rung == PP_RUNG_HOST ? NEXT_FABRIC
						  : NEXT_AGAIN;
	const char *cause = pp_transfer_cause(c, rung, f, &next), *text = pp_failure_text(c, f);
	/* Of a verb the reason is its errno in other words; of CUDA it may be all that tells. */
	bool why = f->why && (!*text || !strstr(f->why, pp_errno_name(f->error)));

	pp_remark(c, rung, counts(rung) ? PP_FAIL : PP_UNKNOWN, PP_REMARK_SOUND, next,
		  "%s at %s%s%s%s%s%s%s%s%s", what, pp_end_name(c, f->end), f->call ? ": " : "",
		  f->call ? f->call : "", *text ? ": " : "", text, why ? ": " : "",
		  why ? f->why : "", cause ? "; cause: " : "", cause ? cause : "");
	if (cause && !m->cause)
		m->cause = cause;
	m->fabric |= rung == PP_RUNG_HOST;
}

static void rung_failed(struct pp_transfer_case *c, enum pp_rung rung)
{
	struct pp_failure f = failure_of(&c->p->rung[rung]);
	bool refused = never_registered(&f);
	const char *what;

	if (never_tried(&f)) {
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_ASKED, "not tried: %s", f.why);
		c->rung[rung].fabric |= rung == PP_RUNG_HOST;
		return;
	}
	if (rung == PP_RUNG_HOST)
		what = refused		     ? "host memory could not be registered"
		       : is_of_setup(f.call) ? "the hca could not be set up"
					     : "fabric: host memory over RDMA failed";
	else if (rung == PP_RUNG_TCP)
		what = "the TCP socket failed";
	else if (rung == PP_RUNG_STAGED)
		what = "staging through host memory failed";
	else
		what = refused ? pp_arena_printf(c->arena,
						 "registration: GPU memory was refused by %s",
						 pp_rung_name(rung))
			       : pp_arena_printf(c->arena, "GPU memory by %s failed",
						 pp_rung_name(rung));
	say_failure(c, rung, &f, what);
	c->rung[rung].refused = refused;
}

static void cell_failed(struct pp_transfer_case *c, const struct pp_bench_cell *cell)
{
	struct pp_failure f = {
		.error = cell->error,
		.status = cell->status,
		.why = cell->why,
		.end = cell->end < 2 ? cell->end : 0,
	};
	const char *where = pp_arena_printf(
		c->arena, "%s%s of %s failed%s", cell->rung == PP_RUNG_HOST ? "fabric: " : "",
		pp_measure_name(cell->measure), pp_size_text(c->arena, cell->size),
		cell->together ? " with all pairs at once" : "");

	say_failure(c, cell->rung, &f, where);
}

/* Bytes are wrong or right whatever else became of the rung. */
static void sound_cells(struct pp_transfer_case *c, enum pp_rung rung)
{
	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];

		if (cell->rung != rung || !cell->wrong)
			continue;
		pp_remark(c, rung, PP_FAIL, PP_REMARK_SOUND, NEXT_BYTES,
			  "%s%" PRIu64 " of %" PRIu64 " bytes arrived wrong at %s, the first at "
			  "offset %" PRIu64,
			  rung == PP_RUNG_HOST ? "fabric: " : "", cell->wrong, cell->checked,
			  pp_size_text(c->arena, cell->size), cell->first_wrong);
		c->rung[rung].unsound = true;
		c->rung[rung].fabric |= rung == PP_RUNG_HOST;
		return;
	}
}

static void sound_keys(struct pp_transfer_case *c, enum pp_rung rung)
{
	const struct pp_bench_rung *r = &c->p->rung[rung];

	for (unsigned int i = 0; i < r->n_negatives; i++) {
		const struct pp_bench_negative *n = &r->negatives[i];
		const char *kind = n->kind ? n->kind : "a request", *status = n->status;

		if (n->run && !n->refused) {
			pp_remark(c, rung, PP_FAIL, PP_REMARK_SOUND, NEXT_NEGATIVE,
				  "keys are not enforced: %s was not refused", kind);
			c->rung[rung].unsound = true;
		} else if (!n->run && counts(rung)) {
			pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_NEGATIVE,
				  "negative control '%s' was not run%s%s", kind, status ? ": " : "",
				  status ? status : "");
		}
	}
}

static void throttled(struct pp_transfer_case *c, const struct pp_bench_cell *cell)
{
	for (unsigned int i = 0; i < 2 && has_gpu(cell->rung); i++) {
		if (cell->throttle[i])
			pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_THROTTLE,
				  "void: the GPU at %s was throttled (%s)", pp_end_name(c, i),
				  cell->throttle[i]);
		else if (!c->simulated && counts(cell->rung) && c->p->end[i].gpu &&
			 cell->gpu_mhz[i] < 0)
			pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_THROTTLE,
				  "the clocks of the GPU at %s could not be read: throttling is "
				  "not excluded",
				  pp_end_name(c, i));
	}
}

static void cell_ran(struct pp_transfer_case *c, const struct pp_bench_cell *cell)
{
	if (!cell->n_samples || !cell->bytes) {
		pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_AGAIN,
			  "%s of %s has no samples", pp_measure_name(cell->measure),
			  pp_size_text(c->arena, cell->size));
		return;
	}
	c->rung[cell->rung].moved = true;
	if (cell->rung != PP_RUNG_TCP && pp_cell_is_bandwidth(cell) && cell->checked < cell->size)
		pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_AGAIN,
			  "the payload of %s was not compared whole",
			  pp_size_text(c->arena, cell->size));
	throttled(c, cell);
}

static void cell_state(struct pp_transfer_case *c, const struct pp_bench_cell *cell)
{
	switch (cell->state) {
	case PP_BENCH_RUN:
		return cell_ran(c, cell);
	case PP_BENCH_FAILED:
		return cell_failed(c, cell);
	case PP_BENCH_VOID:
	case PP_BENCH_SKIPPED:
	case PP_BENCH_NOT_REACHED:
		break;
	}
	pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND,
		  cell->state == PP_BENCH_VOID ? NEXT_THROTTLE : NEXT_AGAIN, "%s of %s %s%s%s",
		  pp_measure_name(cell->measure), pp_size_text(c->arena, cell->size),
		  cell->state == PP_BENCH_VOID	    ? "is void"
		  : cell->state == PP_BENCH_SKIPPED ? "was skipped"
						    : "was not reached",
		  cell->why ? ": " : "", cell->why ? cell->why : "");
}

/* A cell that only one of two rungs has cannot be compared: something was taken away. */
static void partners(struct pp_transfer_case *c, enum pp_rung rung, enum pp_rung other)
{
	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];

		if (cell->rung != other || pp_cell_like(c, cell, rung))
			continue;
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_AGAIN,
			  "%s of %s is there for %s and not for %s", pp_measure_name(cell->measure),
			  pp_size_text(c->arena, cell->size), pp_rung_name(other),
			  pp_rung_name(rung));
		c->rung[rung].gap = true;
		return;
	}
}

static void rung_ran(struct pp_transfer_case *c, enum pp_rung rung)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		if (c->p->cells[i].rung != rung)
			continue;
		cell_state(c, &c->p->cells[i]);
		n++;
	}
	if (!n)
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_AGAIN, "nothing was measured");
	for (unsigned int i = 0; i < PP_RUNGS && rung != PP_RUNG_TCP; i++) {
		enum pp_rung other = (enum pp_rung)i;

		/* the host's cells against each way's, and each way's against the host's */
		if (other != rung &&
		    (other == PP_RUNG_HOST || (rung == PP_RUNG_HOST && pp_rung_is_direct(other))))
			partners(c, rung, other);
	}
}

static void not_run(struct pp_transfer_case *c, enum pp_rung rung, const char *how,
		    const char *next)
{
	const char *why = c->p->rung[rung].why;

	pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, next, "%s%s%s", how, why ? ": " : "",
		  why ? why : "");
}

void pp_transfer_rung(struct pp_transfer_case *c, enum pp_rung rung)
{
	c->rung[rung] = (struct pp_remarks){.verdict = PP_PASS, .whole = true};
	sound_cells(c, rung);
	sound_keys(c, rung);
	if (pp_rung_is_direct(rung) && c->rung[PP_RUNG_HOST].fabric &&
	    c->p->rung[rung].state != PP_BENCH_SKIPPED) {
		pp_remark(c, rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_FABRIC,
			  "GPU memory is not judged: host memory failed on the same hca and port");
		return;
	}
	switch (c->p->rung[rung].state) {
	case PP_BENCH_RUN:
		return rung_ran(c, rung);
	case PP_BENCH_FAILED:
		return rung_failed(c, rung);
	case PP_BENCH_SKIPPED:
		return not_run(c, rung, "not run", NEXT_AGAIN);
	case PP_BENCH_VOID:
		return not_run(c, rung, "void", NEXT_THROTTLE);
	case PP_BENCH_NOT_REACHED:
		return not_run(c, rung, "not reached", NEXT_AGAIN);
	}
}
