/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/registration.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/find.h"
#include "base/parse.h"
#include "base/banned.h"

static const char *const states[] = {
	[PP_LOG_RECORDED] = "recorded",
	[PP_LOG_AGREES] = "agrees",
	[PP_LOG_OPEN] = "open",
	[PP_LOG_REFUTED] = "refuted",
};

/* NCCL 2.13 and later; perftest with --use_cuda_dmabuf. */
static const struct {
	const char *phrase;
	enum pp_about about;
	enum pp_registration says; /* of PP_REGISTRATION */
} phrases[] = {
	{"DMA-BUF is available on GPU device", PP_CAPABILITY, PP_REGISTERED_DMABUF},
	{"GPU Direct RDMA Enabled for HCA", PP_CAPABILITY, PP_REGISTERED_PEERMEM},
	{"using DMA-BUF for GPU buffer", PP_REGISTRATION, PP_REGISTERED_DMABUF},
};

const char *pp_log_state_name(enum pp_log_state s)
{
	return states[s];
}

/* A refuted one takes the place of one that is only recorded, when there is no room. */
static struct pp_log_claim *add(struct pp_log_claims *c, enum pp_log_state state,
				enum pp_about about)
{
	struct pp_log_claim *at = NULL;

	if (c->n < PP_LOG_CLAIMS)
		at = &c->item[c->n++];
	else
		c->more++;
	for (unsigned int i = 0; !at && state == PP_LOG_REFUTED && i < c->n; i++)
		if (c->item[i].state != PP_LOG_REFUTED)
			at = &c->item[i];
	if (at)
		*at = (struct pp_log_claim){.state = state, .about = about};
	return at;
}

static void set_file(struct pp_log_claim *at, const char *file, uint32_t line)
{
	size_t len = strlen(file), most = sizeof(at->file) - 1;

	(void)snprintf(at->file, sizeof(at->file), "%s", file + (len > most ? len - most : 0));
	at->line = line;
}

void pp_log_line(struct pp_log_claims *c, const char *file, uint32_t number, const char *text,
		 size_t len)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(phrases); i++) {
		struct pp_log_claim *at;

		if (!pp_find(text, len, phrases[i].phrase, strlen(phrases[i].phrase)))
			continue;
		if (++c->of[i] > PP_LOG_LINES) {
			c->more++;
			continue;
		}
		at = add(c, phrases[i].about == PP_CAPABILITY ? PP_LOG_RECORDED : PP_LOG_OPEN,
			 phrases[i].about);
		if (!at)
			continue;
		(void)snprintf(at->text, sizeof(at->text), "%.*s", (int)(len < 199 ? len : 199),
			       text);
		pp_sanitize(at->text, false);
		set_file(at, file, number);
		(void)snprintf(at->why, sizeof(at->why), "%s",
			       phrases[i].about == PP_CAPABILITY
				       ? "says what could be used, not what is"
				       : "the kernel's view leaves it open");
	}
}

static void settle(struct pp_log_claim *at, enum pp_log_state state, const char *fmt, ...)
	PP_PRINTF(3, 4);

static void settle(struct pp_log_claim *at, enum pp_log_state state, const char *fmt, ...)
{
	va_list ap;

	at->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(at->why, sizeof(at->why), fmt, ap);
	va_end(ap);
}

struct seen {
	size_t regions, open; /* of hardware; those that are not proven */
	size_t of[PP_REGISTERED_EFA_P2P + 1];
};

/* What the kernel shows of @pid, or of the node (0). */
static struct seen look(const struct pp_trace_table *t, pid_t pid)
{
	struct seen s = {0};

	for (size_t i = 0; i < t->n; i++) {
		const struct pp_region *r = &t->region[i];

		if (r->simulated || (pid && r->pid && r->pid != pid))
			continue;
		/* Whoever has it may be the one that is asked about. */
		s.open += !r->known || r->state != PP_PROVEN || (pid && !r->pid);
		s.regions++;
		if (r->known && r->state == PP_PROVEN && r->gpu_memory)
			s.of[r->registration]++;
	}
	if (t->surface[PP_SURFACE_RESOURCES].state != PP_SURFACE_READ)
		s.open++;
	return s;
}

static size_t gpu_regions(const struct seen *s)
{
	size_t n = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(s->of); i++)
		n += s->of[i];
	return n;
}

/*
 * A claim that GPU memory is registered, by @how if that is said. It is refuted only where every
 * region is proven to be something else; where there is none, the job may be over.
 */
static void against(struct pp_log_claim *at, const struct pp_trace_table *t, pid_t pid,
		    const enum pp_registration *how)
{
	struct seen s = look(t, pid);
	const char *what = how ? pp_registration_name(*how) : "any way";

	if (how ? s.of[*how] > 0 : gpu_regions(&s) > 0)
		settle(at, PP_LOG_AGREES, "the kernel shows %zu regions of GPU memory by %s",
		       how ? s.of[*how] : gpu_regions(&s), what);
	else if (how && *how == PP_REGISTERED_PEERMEM && t->peers == 0 && s.regions)
		settle(at, PP_LOG_REFUTED, "no peer client has a live region on this node");
	else if (!s.regions)
		settle(at, PP_LOG_OPEN, "the kernel lists no region now");
	else if (s.open)
		settle(at, PP_LOG_OPEN, "%zu of %zu regions are not proven to be anything", s.open,
		       s.regions);
	else
		settle(at, PP_LOG_REFUTED,
		       "the kernel shows %zu regions, and none of GPU memory by %s", s.regions,
		       what);
}

void pp_log_judge_lines(struct pp_log_claims *c, const struct pp_trace_table *t)
{
	for (unsigned int i = 0; i < c->n; i++)
		for (size_t k = 0; k < PP_ARRAY_LEN(phrases); k++)
			if (phrases[k].about == PP_REGISTRATION &&
			    c->item[i].about == PP_REGISTRATION &&
			    strstr(c->item[i].text, phrases[k].phrase))
				against(&c->item[i], t, 0, &phrases[k].says);
}

static void set_place(struct pp_log_claim *at, const struct pp_nccl_job *job,
		      const struct pp_nccl_place *place)
{
	const struct pp_nccl_file *f;

	if (place->file == PP_NCCL_NONE || place->file >= job->files.n)
		return;
	f = pp_nccl_table_at(&job->files, place->file);
	set_file(at, f->text, place->line);
}

static bool is_of(const struct pp_nccl_job *job, const struct pp_nccl_process *p, const char *host)
{
	return !*host || !strcmp(pp_nccl_job_name(job, p->key.host), host);
}

/* Is there a direct connection of this process in the log? */
static const struct pp_nccl_end *direct(const struct pp_nccl_job *job, uint32_t process)
{
	for (uint32_t i = 0; i < job->ends.n; i++) {
		const struct pp_nccl_end *e = pp_nccl_table_at(&job->ends, i);

		if (e->key.gdr && e->key.process == process)
			return e;
	}
	return NULL;
}

static bool mechanism(const struct pp_nccl_judgement *j, enum pp_registration *ret)
{
	*ret = j->mechanism == PP_NCCL_MECHANISM_DMABUF ? PP_REGISTERED_DMABUF
							: PP_REGISTERED_PEERMEM;
	return j->mechanism == PP_NCCL_MECHANISM_DMABUF ||
	       j->mechanism == PP_NCCL_MECHANISM_PEERMEM;
}

void pp_log_judge_nccl(struct pp_log_claims *c, const struct pp_trace_table *t,
		       const struct pp_nccl_job *job, const struct pp_nccl_judgement *j,
		       const char *host)
{
	enum pp_registration how;
	bool named = mechanism(j, &how);

	for (uint32_t i = 0; i < job->processes.n; i++) {
		const struct pp_nccl_process *p = pp_nccl_table_at(&job->processes, i);
		const struct pp_nccl_end *e = p->same_as ? NULL : direct(job, i);
		struct pp_log_claim *at;

		if (!e || !p->key.pid || !is_of(job, p, host))
			continue;
		at = add(c, PP_LOG_OPEN, PP_REGISTRATION);
		if (!at)
			continue;
		at->pid = (pid_t)p->key.pid;
		(void)snprintf(at->text, sizeof(at->text),
			       "process %u sends and receives GPU memory directly%s%s", p->key.pid,
			       named ? ", by " : "",
			       named ? pp_nccl_mechanism_name(j->mechanism) : "");
		set_place(at, job, &e->place);
		against(at, t, at->pid, named ? &how : NULL);
	}
}

bool pp_log_refuted(const struct pp_log_claims *c)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (c->item[i].state == PP_LOG_REFUTED)
			return true;
	return false;
}

void pp_log_write(struct pp_json *j, const char *key, const struct pp_log_claims *c)
{
	pp_json_array(j, key);
	for (unsigned int i = 0; i < c->n; i++) {
		const struct pp_log_claim *at = &c->item[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "about", pp_about_name(at->about));
		pp_json_str(j, "witness", pp_witness_name(PP_BY_LOG));
		pp_json_str(j, "scope", pp_scope_name(at->pid ? PP_OF_PROCESS : PP_OF_NODE));
		pp_json_str(j, "state", pp_log_state_name(at->state));
		if (at->pid)
			pp_json_i64(j, "pid", at->pid);
		pp_json_str(j, "raw", at->text);
		pp_json_str(j, "file", *at->file ? at->file : NULL);
		pp_json_u64(j, "line", at->line);
		pp_json_str(j, "why", at->why);
		pp_json_bool(j, "simulated", false);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}
