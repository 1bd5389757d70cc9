/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runs of one job prove, and the words for it. The first thing that keeps a claim from
 * being proven is the one that is said.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "judge/control_parts.h"
#include "base/banned.h"

/* Of what the collective must at least send: counters and their reading are not exact. */
static const double ABOUT = 0.95;

/* What the claims look at. */
struct stand {
	const struct pp_nccl_run *whole;
	const struct pp_sum *sum;
	struct pp_gate_library *g;
	const char *kernel, *library; /* the way that each saw GPU memory registered; NULL none */
	char doubt[240];	      /* what keeps the claim from being proven; "" nothing */
	char doubt_way[240];	      /* the same of the mechanism */
	char against[240];	      /* witnesses contradict each other; "" they do not */
};

/* "mixed": several ways, or one that nobody could tell. NULL: no GPU memory seen. */
static const char *way_of(const struct pp_sum_registered *s)
{
	const char *way = NULL;
	uint64_t told = 0;

	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++) {
		if (i == PP_REGISTERED_HOST || !s->made[i])
			continue;
		way = way ? "mixed" : pp_registration_name((enum pp_registration)i);
		told += s->made[i];
	}
	return s->gpu > told && way ? "mixed" : s->gpu > told ? "undetermined" : way;
}

static bool is_one(const char *way)
{
	return way && strcmp(way, "mixed") != 0 && strcmp(way, "undetermined") != 0 &&
	       strcmp(way, "n/a") != 0;
}

/* By its address the observer cannot tell EFA's peer-to-peer from peermem. */
static bool agree(const char *kernel, const char *library)
{
	return !strcmp(kernel, library) ||
	       (!strcmp(kernel, "efa-p2p") && !strcmp(library, "peermem"));
}

/* Of a run whose witnesses saw these ways. */
static const char *mechanism_of(const struct pp_nccl_run *r, const char *kernel,
				const char *library)
{
	enum pp_nccl_path path = r->judgement.path;

	if (is_one(kernel))
		return kernel;
	if (library || kernel)
		return library ? library : kernel;
	return path == PP_NCCL_PATH_STAGED || path == PP_NCCL_PATH_SOCKET ||
			       path == PP_NCCL_PATH_NVLINK
		       ? "n/a"
		       : "undetermined";
}

const char *pp_control_mechanism(const struct pp_nccl_run *r)
{
	struct pp_sum sum;

	pp_sum_run(r, &sum);
	return mechanism_of(r, way_of(&sum.kernel), way_of(&sum.library));
}

static void find_ways(struct stand *s)
{
	const struct pp_nccl_judgement *j = &s->whole->judgement;
	const char *log =
		j->claim_mechanism == PP_NCCL_PROVEN ? pp_nccl_mechanism_name(j->mechanism) : NULL;

	s->kernel = way_of(&s->sum->kernel);
	s->library = way_of(&s->sum->library);
	s->g->mechanism = mechanism_of(s->whole, s->kernel, s->library);
	if (is_one(s->kernel) && is_one(s->library) && !agree(s->kernel, s->library))
		(void)snprintf(s->against, sizeof(s->against),
			       "the kernel saw GPU memory registered by %s, the observer by %s: "
			       "one of the two is wrong",
			       s->kernel, s->library);
	else if (is_one(s->g->mechanism) && (s->kernel || s->library) && log &&
		 !agree(s->g->mechanism, log))
		(void)snprintf(s->against, sizeof(s->against),
			       "the logs say %s, GPU memory was registered by %s", log,
			       s->g->mechanism);
}

static void ends_doubt(struct stand *s)
{
	const struct pp_nccl_judgement *j = &s->whole->judgement;
	const struct pp_nccl_ends *n = &j->ends;

	/* What the logs alone leave open of a simulation is that it is one. */
	if (s->g->simulated && j->claim_gdr == PP_NCCL_UNPROVEN && n->gdr && !n->staged &&
	    !n->socket && !n->unpaired && !n->ambiguous && j->coverage == PP_NCCL_COVER_ALL)
		return;
	if (j->claim_gdr != PP_NCCL_PROVEN)
		(void)snprintf(s->doubt, sizeof(s->doubt), "by the logs: %.200s",
			       j->n_why ? j->why[j->n_why - 1].text : "nothing is proven");
}

static void bytes_doubt(struct stand *s)
{
	const char *why;
	double least;

	if (!s->sum->bytes_known)
		(void)snprintf(s->doubt, sizeof(s->doubt), "bytes of the hcas: %.200s",
			       s->sum->bytes_why);
	else if (!pp_sum_must_send(s->whole, &least, &why))
		(void)snprintf(s->doubt, sizeof(s->doubt), "the hcas sent %.2f GB, but %s",
			       s->sum->sent / 1e9, why);
	else if (s->sum->sent < ABOUT * least)
		(void)snprintf(s->doubt, sizeof(s->doubt),
			       "the hcas sent %.2f GB of the %.2f GB that had to leave the nodes: "
			       "the rest went another way%s%.60s",
			       s->sum->sent / 1e9, least / 1e9,
			       *s->whole->in_network ? "; reduced in the network by " : "",
			       s->whole->in_network);
}

static void find_doubt(struct stand *s)
{
	const struct pp_control *a = &s->g->control[PP_NCCL_ARM_A];

	ends_doubt(s);
	if (!*s->doubt && !s->sum->ended_well)
		(void)snprintf(s->doubt, sizeof(s->doubt), "%s", s->sum->ended);
	if (!*s->doubt && !s->sum->gpu_everywhere)
		(void)snprintf(s->doubt, sizeof(s->doubt),
			       "on some node neither observer (%.80s) nor kernel (%.80s) saw GPU "
			       "memory registered",
			       s->sum->library.known ? "none there" : s->sum->library.why,
			       s->sum->kernel.known ? "none there" : s->sum->kernel.why);
	if (!*s->doubt)
		bytes_doubt(s);
	if (!*s->doubt && a->state != PP_CONTROL_AS_EXPECTED)
		(void)snprintf(s->doubt, sizeof(s->doubt), "control A %.200s", a->says);
}

static void find_doubt_of_way(struct stand *s)
{
	const struct pp_control *b = &s->g->control[PP_NCCL_ARM_B];

	if (*s->doubt)
		(void)snprintf(s->doubt_way, sizeof(s->doubt_way), "%s", s->doubt);
	else if (!is_one(s->g->mechanism))
		(void)snprintf(s->doubt_way, sizeof(s->doubt_way),
			       "by which way GPU memory was registered is %s", s->g->mechanism);
	/* A witness that saw several ways is not made to agree by one that saw a single one. */
	else if ((s->kernel && !is_one(s->kernel)) || (s->library && !is_one(s->library)))
		(void)snprintf(s->doubt_way, sizeof(s->doubt_way), "kernel: %s, observer: %s",
			       s->kernel ? s->kernel : "saw none",
			       s->library ? s->library : "saw none");
	else if (b->state != PP_CONTROL_AS_EXPECTED && b->state != PP_CONTROL_NOT_APPLICABLE)
		(void)snprintf(s->doubt_way, sizeof(s->doubt_way), "control B %.200s", b->says);
}

static enum pp_nccl_claim claim_of(const char *doubt, bool refuted, bool simulated)
{
	return refuted ? PP_NCCL_REFUTED : *doubt || simulated ? PP_NCCL_UNPROVEN : PP_NCCL_PROVEN;
}

static bool wrong_data(const struct stand *s)
{
	return s->whole->speed.known && s->whole->speed.wrong;
}

static enum pp_verdict verdict(const struct stand *s)
{
	const struct pp_gate_library *g = s->g;
	bool proven = g->claim == PP_NCCL_PROVEN && g->mechanism_claim == PP_NCCL_PROVEN;

	if (g->claim == PP_NCCL_REFUTED || g->mechanism_claim == PP_NCCL_REFUTED || wrong_data(s))
		return PP_FAIL;
	if (proven && g->control[PP_NCCL_ARM_C].state == PP_CONTROL_AS_EXPECTED)
		return PP_PASS;
	/* All was looked at, and something of it is not as it must be. */
	if (g->claim == PP_NCCL_PROVEN && (g->control[PP_NCCL_ARM_B].state == PP_CONTROL_OTHER ||
					   g->control[PP_NCCL_ARM_C].state == PP_CONTROL_OTHER))
		return PP_DEGRADED;
	return PP_UNKNOWN;
}

/* What NCCL's own figures say of the direct path; "" nothing. Application gain is gate 4. */
static void gain_words(const struct pp_control_gain *g, char *text, size_t size)
{
	*text = '\0';
	if (g->bandwidth_known && g->bandwidth_ratio < 1.05)
		(void)snprintf(text, size, "; it gains nothing here: %.2f of the bandwidth without",
			       g->bandwidth_ratio);
	else if (g->bandwidth_known)
		(void)snprintf(text, size,
			       "; %.2f times the bandwidth without it, of collectives "
			       "alone",
			       g->bandwidth_ratio);
}

static void say_sentence(struct stand *s)
{
	struct pp_gate_library *g = s->g;
	char gained[80];

	gain_words(&g->gain, gained, sizeof(gained));
	if (wrong_data(s))
		(void)snprintf(g->sentence, sizeof(g->sentence),
			       "%" PRIu64 " sizes had wrong data: no path is any good",
			       s->whole->speed.wrong);
	else if (*s->against)
		(void)snprintf(g->sentence, sizeof(g->sentence), "%s", s->against);
	else if (g->claim == PP_NCCL_REFUTED)
		(void)snprintf(g->sentence, sizeof(g->sentence),
			       "large messages between hosts did not go by GDR: path %s, over "
			       "%.100s",
			       pp_nccl_path_name(s->whole->judgement.path),
			       *s->whole->networks ? s->whole->networks : "no network seen");
	else if (g->simulated)
		(void)snprintf(g->sentence, sizeof(g->sentence),
			       "chain exercised in simulation%s%.160s",
			       g->passed ? "" : ", and not all of it did what it must: ",
			       g->passed       ? ""
			       : *s->doubt     ? s->doubt
			       : *s->doubt_way ? s->doubt_way
					       : g->control[PP_NCCL_ARM_C].says);
	else if (g->claim == PP_NCCL_PROVEN && g->mechanism_claim == PP_NCCL_PROVEN)
		(void)snprintf(g->sentence, sizeof(g->sentence),
			       "large messages between hosts went by GDR, memory registered by "
			       "%s%s",
			       g->mechanism, gained);
	else if (g->claim == PP_NCCL_PROVEN)
		(void)snprintf(g->sentence, sizeof(g->sentence),
			       "large messages between hosts went by GDR; by which mechanism is "
			       "not proven%s",
			       gained);
	else
		(void)snprintf(g->sentence, sizeof(g->sentence),
			       "whether large messages between hosts went by GDR is not proven");
}

static void say_evidence(struct stand *s)
{
	const struct pp_nccl_ends *n = &s->whole->judgement.ends;
	const struct pp_sum *sum = s->sum;
	char sent[48] = "not known", kernel[48] = "not known";

	if (sum->kernel.known || sum->kernel.gpu)
		(void)snprintf(kernel, sizeof(kernel), "%" PRIu64, sum->kernel.gpu);
	if (sum->bytes_known)
		(void)snprintf(sent, sizeof(sent), "%.2f GB", sum->sent / 1e9);
	(void)snprintf(s->g->evidence, sizeof(s->g->evidence),
		       "%sGPU memory registered: kernel %s, observer %" PRIu64
		       "; hcas sent %s; GDRDMA on %" PRIu32 " of %" PRIu32
		       " ends; controls A %s, B %s, C %s",
		       s->g->simulated ? "simulated: " : "", kernel, sum->library.gpu, sent, n->gdr,
		       n->gdr + n->staged + n->socket + n->nvlink,
		       pp_control_state_name(s->g->control[PP_NCCL_ARM_A].state),
		       pp_control_state_name(s->g->control[PP_NCCL_ARM_B].state),
		       pp_control_state_name(s->g->control[PP_NCCL_ARM_C].state));
}

static bool any_not_run(const struct pp_gate_library *g)
{
	for (unsigned int i = PP_NCCL_ARM_A; i <= PP_NCCL_ARM_C; i++)
		if (g->control[i].state == PP_CONTROL_NOT_RUN)
			return true;
	return false;
}

static void say_raise(struct stand *s)
{
	struct pp_gate_library *g = s->g;
	const char *doubt = *s->doubt ? s->doubt : *s->doubt_way ? s->doubt_way : NULL;
	const struct pp_control *c = &g->control[PP_NCCL_ARM_C];

	if (g->verdict == PP_PASS)
		return;
	if (*s->against)
		(void)snprintf(g->raise, sizeof(g->raise), "witnesses that agree");
	else if (g->claim == PP_NCCL_REFUTED || wrong_data(s))
		(void)snprintf(g->raise, sizeof(g->raise), "the cause repaired: %.200s",
			       *s->whole->root_error	   ? s->whole->root_error
			       : s->whole->judgement.n_why ? s->whole->judgement.why[0].text
							   : "see the logs");
	else if (g->simulated && g->passed)
		(void)snprintf(g->raise, sizeof(g->raise),
			       "the same job on hosts with an RDMA NIC");
	else if (doubt)
		(void)snprintf(g->raise, sizeof(g->raise), "what is open: %.200s", doubt);
	else
		(void)snprintf(g->raise, sizeof(g->raise), "what is open: control C %.180s",
			       c->says);
	if (any_not_run(g) && g->claim != PP_NCCL_REFUTED)
		(void)snprintf(g->next, sizeof(g->next), "peerpath nccl run --controls -- %.150s",
			       s->whole->command);
	else if (*s->whole->judgement.next && g->claim == PP_NCCL_REFUTED)
		(void)snprintf(g->next, sizeof(g->next), "%.190s", s->whole->judgement.next);
	else
		(void)snprintf(g->next, sizeof(g->next), "peerpath check --details");
}

static bool bad_or_missing(const struct pp_control *c)
{
	return c->state == PP_CONTROL_OTHER || c->state == PP_CONTROL_NOT_RUN;
}

void pp_control_claims(const struct pp_nccl_run *const run[PP_NCCL_ARMS], const struct pp_sum *sum,
		       struct pp_gate_library *g)
{
	struct stand s = {.whole = run[PP_NCCL_ARM_UNCHANGED], .sum = sum, .g = g};

	find_ways(&s);
	find_doubt(&s);
	find_doubt_of_way(&s);
	g->claim = claim_of(s.doubt, s.whole->judgement.claim_gdr == PP_NCCL_REFUTED, g->simulated);
	g->mechanism_claim =
		claim_of(s.doubt_way, *s.against || g->claim == PP_NCCL_REFUTED, g->simulated);
	g->passed = g->simulated && !*s.doubt && !*s.doubt_way && !*s.against && !wrong_data(&s) &&
		    g->claim != PP_NCCL_REFUTED && !bad_or_missing(&g->control[PP_NCCL_ARM_C]);
	g->verdict = verdict(&s);
	say_sentence(&s);
	say_evidence(&s);
	say_raise(&s);
}
