/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process over its regions, and the node. What netlink does not list (DevX) shows as an
 * attachment or a reference too many: then nothing is said of the whole process.
 */
#include <stdio.h>
#include <string.h>

#include "trace/verdict_parts.h"
#include "base/banned.h"

static const char *const words[] = {
	[PP_REGISTERED_HOST] = "host",		 [PP_REGISTERED_DMABUF] = "DMA-BUF",
	[PP_REGISTERED_PEERMEM] = "peer memory", [PP_REGISTERED_DATA_DIRECT] = "data-direct",
	[PP_REGISTERED_EFA_P2P] = "EFA's P2P",
};

static void count(const struct pp_region *r, struct pp_trace_process *p, unsigned int *gpu)
{
	p->gone += r->gone;
	p->missing |= r->missing;
	if (!r->known) {
		p->unknown++;
		return;
	}
	p->unproven += r->state != PP_PROVEN;
	p->count[r->registration]++;
	p->bytes[r->registration] += r->length;
	if (r->gpu_memory)
		gpu[r->registration]++;
}

static bool by_dmabuf(const struct pp_region *r)
{
	return r->known && (r->registration == PP_REGISTERED_DMABUF ||
			    r->registration == PP_REGISTERED_DATA_DIRECT);
}

int pp_unlisted(const struct pp_trace_table *t)
{
	int64_t dmabuf = 0, peers = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct pp_region *r = &t->region[i];

		if (r->simulated || r->gone)
			continue;
		dmabuf += by_dmabuf(r);
		peers += r->known && r->registration == PP_REGISTERED_PEERMEM;
	}
	if (t->attachments > dmabuf || t->peers > peers)
		return 1;
	return t->attachments < 0 || t->peers < 0 ? -1 : 0;
}

/* mlx5's DevX alone registers what is not listed: of other drivers nothing has to be excluded. */
static bool has_devx(const struct pp_trace_table *t, const struct pp_run *run)
{
	for (size_t i = run->first; i < run->end; i++)
		if (!t->region[i].of || !*t->region[i].of->driver ||
		    !strncmp(t->region[i].of->driver, "mlx5", strlen("mlx5")))
			return true;
	return false;
}

static const char *sizes(struct pp_arena *a, const struct pp_trace_process *p)
{
	char text[160];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < PP_ARRAY_LEN(p->count); i++)
		if (p->count[i] && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u %s",
						len ? ", " : "", p->count[i], words[i]);
	if (p->unknown && len < sizeof(text))
		(void)snprintf(text + len, sizeof(text) - len, "%s%u unknown", len ? ", " : "",
			       p->unknown);
	return pp_arena_str(a, text);
}

static void settle(struct pp_trace_process *p, const unsigned int *gpu)
{
	unsigned int kinds = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(p->count); i++)
		if (gpu[i]) {
			kinds++;
			p->gpu_by = (enum pp_registration)i;
		}
	if (kinds > 1)
		p->mix = PP_MIX_MIXED;
	else if (p->unknown)
		p->mix = PP_MIX_UNKNOWN;
	else
		p->mix = kinds ? PP_MIX_ONE : PP_MIX_NONE;
}

static bool only_host(const struct pp_trace_process *p)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(p->count); i++)
		if (i != PP_REGISTERED_HOST && p->count[i])
			return false;
	return true;
}

/* No region of GPU memory: what it means depends on whether a GPU is in use at all. */
static const char *say_none(struct pp_trace_table *t, struct pp_trace_process *p)
{
	if (!p->process || !p->process->descriptors_read) {
		p->mix = PP_MIX_UNKNOWN;
		p->state = PP_UNPROVEN;
		p->missing |= 1U << PP_SURFACE_PROCESSES;
		return pp_arena_printf(
			t->arena, "Registers no GPU memory (%s); whether it uses a GPU is unknown.",
			sizes(t->arena, p));
	}
	if (!p->process->gpu_descriptors)
		return pp_arena_printf(t->arena, "Uses no GPU; regions: %s.", sizes(t->arena, p));
	p->host_staged = only_host(p);
	return pp_arena_printf(
		t->arena, "Uses a GPU and registers none of its memory (%s)%s.", sizes(t->arena, p),
		p->host_staged ? ": what it sends of it goes through host memory" : "");
}

static const char *say(struct pp_trace_table *t, struct pp_trace_process *p, bool hides)
{
	const char *all = sizes(t->arena, p);

	switch (p->mix) {
	case PP_MIX_MIXED:
		return pp_arena_printf(t->arena, "Registers GPU memory in several ways: %s.", all);
	case PP_MIX_ONE:
		return pp_arena_printf(t->arena, "Registers GPU memory by %s (%s)%s%s.",
				       words[p->gpu_by], all, p->unproven ? ", not proven" : "",
				       hides ? "; something is registered that is not listed" : "");
	case PP_MIX_NONE:
		if (!hides)
			return say_none(t, p);
		p->mix = PP_MIX_UNKNOWN;
		if (!pp_surface_whole(t, PP_SURFACE_BUFINFO))
			p->missing |= 1U << PP_SURFACE_BUFINFO;
		return pp_arena_printf(t->arena,
				       "No listed region is GPU memory (%s); what DevX registers "
				       "is not listed.",
				       all);
	default:
		return pp_arena_printf(t->arena, "Which way it registers is unknown: %s.", all);
	}
}

void pp_process_judge(const struct pp_judging *g, const struct pp_run *run,
		      struct pp_trace_process *p)
{
	struct pp_trace_table *t = g->t;
	unsigned int gpu[PP_ARRAY_LEN(p->count)] = {0};
	bool in_use = p->process && p->process->gpu_descriptors;

	for (size_t i = run->first; i < run->end; i++)
		count(&t->region[i], p, gpu);
	settle(p, gpu);
	if (p->simulated) {
		p->state = PP_UNPROVEN;
		p->why = pp_arena_printf(t->arena, "Simulated: %s.", sizes(t->arena, p));
		return;
	}
	p->state = p->unknown || p->unproven || g->unlisted > 0 ||
				   !pp_surface_whole(t, PP_SURFACE_RESOURCES)
			   ? PP_UNPROVEN
			   : PP_PROVEN;
	/* That nothing of the GPU is registered needs all to be seen. */
	p->why = run->first == run->end
			 ? pp_surface_whole(t, PP_SURFACE_RESOURCES)
				   ? "Registers nothing that the kernel lists."
				   : "What it registers is not known."
			 : say(t, p,
			       g->unlisted > 0 || (g->unlisted < 0 && in_use && has_devx(t, run)));
	if (p->mix == PP_MIX_UNKNOWN)
		p->state = PP_UNPROVEN;
}

enum pp_verdict pp_trace_verdict(const struct pp_trace_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->region[i].called && t->region[i].called_state == PP_REFUTED)
			return PP_FAIL;
	if (!pp_surface_whole(t, PP_SURFACE_RESOURCES))
		return PP_UNKNOWN;
	for (size_t i = 0; i < t->n; i++)
		if (!t->region[i].simulated &&
		    (!t->region[i].known || t->region[i].state != PP_PROVEN))
			return PP_UNKNOWN;
	return PP_PASS;
}
