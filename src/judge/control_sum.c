/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the nodes of a run add up to. A sum is known when every node's part is, and none is missing:
 * what was seen counts in any case, what was not seen only then.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "judge/control_parts.h"
#include "base/banned.h"

static const double GB = 1e9;
/* Sent less, nothing is said for each byte of it: what else the machine does would be divided. */
static const double LEAST = 64 << 20;

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t gpu_regions(const struct pp_nccl_run_registered *r)
{
	uint64_t n = r->gpu_unknown;

	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++)
		if (i != PP_REGISTERED_HOST)
			n = add(n, r->made[i]);
	return n;
}

static void add_registered(struct pp_sum_registered *s, const struct pp_nccl_run_registered *r,
			   bool known, const char *why)
{
	uint64_t gpu = gpu_regions(r);

	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++)
		s->made[i] = add(s->made[i], r->made[i]);
	s->gpu = add(s->gpu, gpu);
	s->everywhere &= gpu > 0;
	if (s->known && !known)
		s->why = why;
	s->known &= known;
}

static void add_traffic(struct pp_sum *s, const struct pp_traffic *t)
{
	for (unsigned int i = 0; i < t->n_ports; i++)
		s->sent += (double)t->port[i].sent;
	if (s->bytes_known && !t->n_ports)
		s->bytes_why = *t->why_ports ? t->why_ports : "no port's counters were read";
	s->bytes_known &= t->n_ports > 0;
	if (s->memory_known && !t->host.known)
		s->memory_why = *t->host.why ? t->host.why : "not counted";
	s->memory_known &= t->host.known;
	s->memory += t->host.read + t->host.written;
}

static void note_end(struct pp_sum *s, const struct pp_nccl_run_node *n)
{
	const char *how = *n->died	   ? n->died
			  : n->timed_out   ? "it did not end in time"
			  : n->interrupted ? "it was interrupted"
			  : n->status	   ? "its status is not 0"
					   : NULL;

	if (!how || !s->ended_well)
		return;
	s->ended_well = false;
	(void)snprintf(s->ended, sizeof(s->ended), "%.64s: %.120s", n->host, how);
}

static void add_peermem(struct pp_sum *s, const struct pp_nccl_run_node *n, bool first)
{
	if (first)
		s->peermem = n->peermem;
	else if (s->peermem != n->peermem)
		s->peermem = PP_NCCL_PRESENCE_UNKNOWN;
	s->peermem_known &= n->peermem_known;
	s->peermem_moved &= n->peermem_moved;
}

static void add_node(struct pp_sum *s, const struct pp_nccl_run_node *n, bool first)
{
	bool observed = n->was_observed && !n->library.why[0] && !n->observed.malformed;

	add_registered(&s->library, &n->library, observed,
		       n->library.why[0] ? n->library.why : "the job was not observed");
	add_registered(&s->kernel, &n->kernel, !n->kernel.why[0], n->kernel.why);
	s->gpu_everywhere &= gpu_regions(&n->library) > 0 || gpu_regions(&n->kernel) > 0;
	add_traffic(s, &n->traffic);
	s->cpu_known &= n->cpu_seconds > 0;
	s->cpu += n->cpu_seconds;
	add_peermem(s, n, first);
	note_end(s, n);
}

void pp_sum_run(const struct pp_nccl_run *r, struct pp_sum *ret)
{
	static const char MISSING[] = "a node gave no report";
	bool whole = r->n_nodes && !r->missing;
	const struct pp_sum_registered empty = {
		.everywhere = whole, .known = whole, .why = MISSING};
	struct pp_sum s = {.library = empty,
			   .kernel = empty,
			   .bytes_known = whole,
			   .bytes_why = MISSING,
			   .memory_known = whole,
			   .memory_why = MISSING,
			   .cpu_known = whole,
			   .gpu_everywhere = whole,
			   .peermem_known = whole,
			   .peermem_moved = whole,
			   .ended_well = whole};

	if (!whole)
		(void)snprintf(s.ended, sizeof(s.ended), "%s", MISSING);
	for (uint32_t i = 0; i < r->n_nodes; i++)
		add_node(&s, &r->node[i], !i);
	if (!whole)
		s.peermem = PP_NCCL_PRESENCE_UNKNOWN;
	if (s.ended_well && *r->root_error) {
		s.ended_well = false;
		(void)snprintf(s.ended, sizeof(s.ended), "%.190s", r->root_error);
	}
	*ret = s;
}

bool pp_sum_cpu_per_gb(const struct pp_sum *s, double *ret)
{
	if (!s->cpu_known || !s->bytes_known || s->sent < LEAST)
		return false;
	*ret = s->cpu / (s->sent / GB);
	return true;
}

bool pp_control_gpu_regions(const struct pp_nccl_run *r, uint64_t *ret)
{
	struct pp_sum s;

	pp_sum_run(r, &s);
	*ret = s.kernel.gpu > s.library.gpu ? s.kernel.gpu : s.library.gpu;
	return *ret || s.kernel.known || s.library.known;
}

double pp_control_sent_gb(const struct pp_nccl_run *r)
{
	struct pp_sum s;

	pp_sum_run(r, &s);
	return s.bytes_known ? s.sent / GB : NAN;
}

double pp_control_cpu_per_gb(const struct pp_nccl_run *r)
{
	struct pp_sum s;
	double each;

	pp_sum_run(r, &s);
	return pp_sum_cpu_per_gb(&s, &each) ? each : NAN;
}

bool pp_sum_memory_per_byte(const struct pp_sum *s, double *ret)
{
	if (!s->memory_known || !s->bytes_known || s->sent < LEAST)
		return false;
	*ret = s->memory / s->sent;
	return true;
}

/*
 * Of @s bytes of the size column, over @m hosts of @n ranks in all: what no algorithm can do
 * without. Sizes as nccl-tests counts them (all_gather and reduce_scatter: of all ranks together).
 */
static double all_reduce(double s, double m, double n)
{
	(void)n;
	return 2 * (m - 1) * s;
}

static double once(double s, double m, double n)
{
	(void)n;
	return (m - 1) * s;
}

static double to_all(double s, double m, double n)
{
	return n * s * (m - 1) / m;
}

static double to_next(double s, double m, double n)
{
	(void)n;
	return m * s;
}

static const struct {
	const char *collective;
	double (*least)(double s, double m, double n);
} collectives[] = {
	{"all_reduce", all_reduce}, {"all_gather", once},   {"reduce_scatter", once},
	{"broadcast", once},	    {"reduce", once},	    {"all_to_all", to_all},
	{"alltoall", to_all},	    {"send_recv", to_next}, {"sendrecv", to_next},
};

bool pp_sum_must_send(const struct pp_nccl_run *r, double *ret, const char **ret_why)
{
	/* Ranks of one node are hosts of their own where NCCL_HOSTID says so. */
	double n = (double)r->judgement.ranks, m = r->n_nodes > 1 ? r->n_nodes : n;
	const struct pp_nccl_run_speed *s = &r->speed;

	if (!s->known || !s->payload_bytes) {
		*ret_why = "how many bytes the job had to move is not known";
		return false;
	}
	if (!(m > 1)) {
		*ret_why = "how many ranks there were is not known";
		return false;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(collectives); i++) {
		if (strcmp(s->collective, collectives[i].collective) != 0)
			continue;
		*ret = collectives[i].least((double)s->payload_bytes, m, n);
		return true;
	}
	*ret_why = "of this collective nobody has said what it must move";
	return false;
}
