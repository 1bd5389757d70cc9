/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks, NICs, GPUs and settings: what a process could do or meant to do, never what it did.
 */
#include <string.h>

#include "nccl/gather.h"
#include "base/banned.h"

static void add_choice(struct pp_nccl_said *s, struct pp_nccl_span name)
{
	struct pp_nccl_choice key = {{s->process, 0, s->event->kind}, {0}}, *c;
	bool is_new;
	uint32_t i;

	key.key.network = pp_nccl_job_intern(s->job, name);
	i = pp_nccl_table_put(&s->job->choices, &key, &is_new);
	if (i == PP_NCCL_NONE || !is_new)
		return;
	c = pp_nccl_table_at(&s->job->choices, i);
	c->place = pp_nccl_job_here(s->job);
}

/* peerpath's software device and the kernel's: no NIC reads GPU memory there. */
static void note_simulated(struct pp_nccl_said *s, struct pp_nccl_span name)
{
	static const char *const heads[] = {"soft", "rxe", "siw"};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t n = strlen(heads[i]);

		/* soft_eth0: the one of an interface, without a description */
		if (name.len > n && !memcmp(name.at, heads[i], n) &&
		    ((name.at[n] >= '0' && name.at[n] <= '9') || (!i && name.at[n] == '_')) &&
		    s->job->simulated.file == PP_NCCL_NONE)
			s->job->simulated = pp_nccl_job_here(s->job);
	}
}

/* A device without a PCI function behind it is software, whatever it is called. */
static void note_no_pci(struct pp_nccl_said *s)
{
	if (pp_nccl_span_find(s->line->message, "pciPath=(null)") &&
	    s->job->simulated.file == PP_NCCL_NONE)
		s->job->simulated = pp_nccl_job_here(s->job);
}

static void add_nic(struct pp_nccl_said *s, struct pp_nccl_span network, uint64_t index,
		    struct pp_nccl_span name, enum pp_nccl_able able)
{
	struct pp_nccl_nic key = {{s->process, 0, 0}, 0, PP_NCCL_UNSAID, {0}}, *nic;
	struct pp_nccl_process *p = pp_nccl_table_at(&s->job->processes, s->process);
	bool is_new;
	uint32_t i;

	if (index > INT32_MAX)
		return;
	while (name.len && name.at[name.len - 1] == '\'')
		name.len--;
	note_simulated(s, name);
	key.key.index = (uint32_t)index;
	key.key.network = pp_nccl_job_intern(s->job, network);
	i = pp_nccl_table_put(&s->job->nics, &key, &is_new);
	if (i == PP_NCCL_NONE)
		return;
	nic = pp_nccl_table_at(&s->job->nics, i);
	nic->name = pp_nccl_job_intern(s->job, name);
	if (is_new || able != PP_NCCL_UNSAID)
		nic->place = pp_nccl_job_here(s->job);
	if (!pp_nccl_span_find(network, "Socket")) {
		p->hca_able |= able == PP_NCCL_ABLE;
		p->hca_unable |= able == PP_NCCL_UNABLE;
	}
	/* of two words the worse one stays */
	if (able > nic->able)
		nic->able = able;
}

static struct pp_nccl_span word(const char *text)
{
	return (struct pp_nccl_span){text, strlen(text)};
}

/* "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>": physical devices in order. */
static void add_list(struct pp_nccl_said *s, struct pp_nccl_span list)
{
	const char *end = list.at + list.len, *at = list.at, *close, *colon;
	struct pp_nccl_span rest;
	uint64_t index;
	size_t n;

	for (unsigned int k = 0; k < 256 && at < end; k++) {
		at = memchr(at, '[', (size_t)(end - at));
		if (!at)
			return;
		rest = (struct pp_nccl_span){at + 1, (size_t)(end - at - 1)};
		n = pp_nccl_digits(rest, false, &index);
		at++;
		if (!n || n >= rest.len || rest.at[n] != ']')
			continue;
		close = rest.at + n + 1;
		colon = memchr(close, ':', (size_t)(end - close));
		if (!colon)
			return;
		if (colon > close && *close != '=')
			add_nic(s, word("IB"), index,
				(struct pp_nccl_span){close, (size_t)(colon - close)},
				PP_NCCL_UNSAID);
		at = colon;
	}
}

static void add_pair(struct pp_nccl_said *s, uint64_t gpu, struct pp_nccl_span verdict,
		     uint64_t distance, uint64_t limit)
{
	struct pp_nccl_gpu key = {{s->process, 0, gpu}, 0, 0, 0, 0, {0}}, *g;
	bool is_new, on = pp_nccl_span_is(verdict, "Enabled");
	uint32_t i = pp_nccl_table_put(&s->job->gpus, &key, &is_new);

	if (i == PP_NCCL_NONE)
		return;
	g = pp_nccl_table_at(&s->job->gpus, i);
	if (is_new || (!on && !g->far)) {
		g->place = pp_nccl_job_here(s->job);
		g->distance = distance;
		g->limit = limit;
	}
	g->near += on;
	g->far += !on;
}

static bool same_word(struct pp_nccl_span s, const char *lower)
{
	size_t i = 0;

	for (; i < s.len && lower[i]; i++)
		if ((s.at[i] | 0x20) != lower[i])
			return false;
	return i == s.len && !lower[i];
}

/*
 * NCCL_PROTO: a list of what is allowed, or behind ^ of what is not. LL's senders keep their
 * buffers in host memory; LL128 and Simple do not. A list by function is not taken apart.
 */
static void read_protocols(struct pp_nccl_process *p, struct pp_nccl_span value)
{
	bool except = value.len && *value.at == '^', large = except, ll128 = except, ll = except;
	const char *comma, *end = value.at + value.len;
	struct pp_nccl_span word;

	p->protocol_unclear = memchr(value.at, ':', value.len) || memchr(value.at, ';', value.len);
	p->ll_only = false;
	for (const char *at = value.at + except; at < end && !p->protocol_unclear;
	     at = comma + (comma < end)) {
		comma = memchr(at, ',', (size_t)(end - at));
		comma = comma ? comma : end;
		word = (struct pp_nccl_span){at, (size_t)(comma - at)};
		if (same_word(word, "simple"))
			large = !except;
		else if (same_word(word, "ll128"))
			ll128 = !except;
		else if (same_word(word, "ll"))
			ll = !except;
		else
			p->protocol_unclear = true;
	}
	if (!p->protocol_unclear)
		p->ll_only = ll && !large && !ll128;
}

/*
 * Does this line show that the subsystem ENV is printed? Levels of the topology, names of plug-ins
 * and a few more are printed without it, and up to 2.15 every number was.
 */
static bool shows_env(struct pp_nccl_span name)
{
	static const char *const always[] = {"_LEVEL", "_DISABLE", "_PLUGIN", "IBVERBS_LIB",
					     "COLLNET_ENABLE"};

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (pp_nccl_span_find(name, always[i]))
			return false;
	return true;
}

static void add_setting(struct pp_nccl_said *s, struct pp_nccl_span name, struct pp_nccl_span value)
{
	struct pp_nccl_setting key = {{s->process, 0}, {0}, {0}}, *v;
	struct pp_nccl_process *p = pp_nccl_table_at(&s->job->processes, s->process);
	bool is_new, number = value.len && value.at[value.len - 1] == '.';
	uint32_t i;

	if (number)
		value.len--;
	if (shows_env(name))
		*(number ? &p->env_number : &p->env_shown) = true;
	key.key.name = pp_nccl_job_intern(s->job, name);
	i = pp_nccl_table_put(&s->job->settings, &key, &is_new);
	if (i == PP_NCCL_NONE || !is_new)
		return;
	v = pp_nccl_table_at(&s->job->settings, i);
	v->place = pp_nccl_job_here(s->job);
	memcpy(v->value, value.at, value.len < PP_NCCL_NAME - 1 ? value.len : PP_NCCL_NAME - 1);
	if (pp_nccl_span_is(name, "DMABUF_ENABLE") && pp_nccl_span_is(value, "0"))
		p->dmabuf_off = v->place;
	if (pp_nccl_span_is(name, "PROTO"))
		read_protocols(p, value);
}

static void add_provider(struct pp_nccl_said *s, struct pp_nccl_span name)
{
	static const char *const rdma[] = {"efa", "verbs", "cxi"};
	struct pp_nccl_process *p = pp_nccl_table_at(&s->job->processes, s->process);

	for (size_t i = 0; i < sizeof(rdma) / sizeof(rdma[0]); i++)
		p->provider_rdma |= pp_nccl_span_begins(name, rdma[i]);
	if ((pp_nccl_span_begins(name, "tcp") || pp_nccl_span_begins(name, "sockets")) &&
	    s->job->provider_tcp.file == PP_NCCL_NONE)
		s->job->provider_tcp = pp_nccl_job_here(s->job);
}

static void add_nvlink(struct pp_nccl_said *s, struct pp_nccl_span paths)
{
	const char *gpu = pp_nccl_span_find(paths, "GPU/"), *end = paths.at + paths.len, *close;

	while (gpu) {
		close = memchr(gpu, ')', (size_t)(end - gpu));
		if (!close)
			return;
		if (close - gpu > 4 && !memcmp(close - 4, "/NVL", 4) &&
		    s->job->nvlink.file == PP_NCCL_NONE)
			s->job->nvlink = pp_nccl_job_here(s->job);
		gpu = memmem(close, (size_t)(end - close), "GPU/", 4);
	}
}

static void add_capability(struct pp_nccl_said *s)
{
	struct pp_nccl_process *process = pp_nccl_table_at(&s->job->processes, s->process);
	const struct pp_nccl_field *f = s->event->field;

	switch (s->event->kind) {
	case PP_NCCL_GPU_DMABUF: /* what the GPU could do decides nothing */
		break;
	case PP_NCCL_HCA_ON:
		add_nic(s, f[0].text, f[1].value, f[2].text, PP_NCCL_ABLE);
		break;
	case PP_NCCL_HCA_OFF:
		add_nic(s, f[0].text, f[1].value, f[2].text, PP_NCCL_UNABLE);
		break;
	case PP_NCCL_HCA_WORDS: /* a plug-in's opinion; the library decides by itself */
		add_nic(s, f[0].text, f[2].value, f[3].text, PP_NCCL_UNSAID);
		break;
	case PP_NCCL_PAIR:
		add_pair(s, f[1].value, f[0].text, f[3].value, f[5].value);
		break;
	case PP_NCCL_PAIR_RANK:
		add_pair(s, f[2].value, f[0].text, f[4].value, f[6].value);
		break;
	case PP_NCCL_TUNER:
		process->tuner = true;
		break;
	case PP_NCCL_SETTING:
		add_setting(s, f[0].text, f[1].text);
		break;
	default:
		add_nvlink(s, f[1].text);
	}
}

static void add_plugin(struct pp_nccl_said *s, struct pp_nccl_span name)
{
	struct pp_nccl_process *p = pp_nccl_table_at(&s->job->processes, s->process);

	p->ib_plugin |= pp_nccl_span_find(name, "IBext") != NULL;
	add_choice(s, name);
}

void pp_nccl_gather_device(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;

	switch (s->event->kind) {
	case PP_NCCL_IB_USING:
		if (s->event->newest == PP_NCCL_NEWEST)
			add_list(s, f[0].text);
		break;
	case PP_NCCL_IB_VIRTUAL:
	case PP_NCCL_IB_DEVICE:
		note_no_pci(s);
		add_nic(s, word("IB"), f[0].value, f[1].text, PP_NCCL_UNSAID);
		break;
	case PP_NCCL_PROVIDER:
		add_provider(s, f[1].text);
		break;
	case PP_NCCL_IB_NONE:
	case PP_NCCL_NET_NONE:
	case PP_NCCL_SOCKET_USING:
		add_choice(s, word(s->event->kind == PP_NCCL_IB_NONE ? "IB" : ""));
		break;
	case PP_NCCL_PLUGIN:
		add_plugin(s, f[0].text);
		break;
	default:
		if (s->event->kind < PP_NCCL_GPU_DMABUF)
			add_choice(s, f[0].text);
		else
			add_capability(s);
	}
}
