/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a job that change its path, or what its figures mean. Facts of rules are of nodes
 * (data/rules); these are of one job, beside what it was seen to do, so they stand here as a table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "judge/control_parts.h"
#include "base/banned.h"

/* A rail with less than this part of an even share is idle; below these bytes nothing is said. */
static const double IDLE = 0.05, LITTLE = 1e8;

/* What a test looks at. @text gets what was observed beside the setting. */
struct look {
	const struct pp_nccl_run *whole;
	const struct pp_nccl_run_setting *s;
	const struct pp_gate_library *g;
	struct pp_control_finding *f;
};

static struct pp_control_finding *add(struct pp_gate_library *g, const char *id)
{
	struct pp_control_finding *f = &g->finding[g->n_findings];

	if (g->n_findings == PP_CONTROL_FINDINGS)
		return NULL;
	g->n_findings++;
	*f = (struct pp_control_finding){.verdict = PP_PASS};
	(void)snprintf(f->id, sizeof(f->id), "%s", id);
	return f;
}

static const char *origin(const struct pp_nccl_run_setting *s)
{
	return s->from == PP_NCCL_FROM_CONF ? "an nccl.conf" : "the environment";
}

static bool is_off(const char *value)
{
	return !strcmp(value, "0");
}

static bool is_on(const char *value)
{
	uint64_t number;

	return !pp_parse_u64(value, 1, UINT32_MAX, &number);
}

static bool is_level_loc(const char *value)
{
	return !strcmp(value, "LOC") || is_off(value);
}

static bool level_loc(struct look *l)
{
	if (!is_level_loc(l->s->value))
		return false;
	(void)snprintf(l->f->text, sizeof(l->f->text),
		       "NCCL_NET_GDR_LEVEL=%.16s in %s switches the direct path off; path seen: %s",
		       l->s->value, origin(l->s), pp_nccl_path_name(l->whole->judgement.path));
	return true;
}

/* The software device hangs on no GPU's bus: there a level is what makes it reachable at all. */
static bool level_forced(struct look *l)
{
	const struct pp_control_gain *g = &l->g->gain;
	char seen[100] = "no control shows what it is worth";

	if (is_level_loc(l->s->value) || l->g->simulated)
		return false;
	if (g->bandwidth_known && g->bandwidth_ratio < 1)
		(void)snprintf(seen, sizeof(seen),
			       "harmful: %.2f of the bandwidth that host memory gives",
			       g->bandwidth_ratio);
	else if (g->latency_known && g->latency_ratio > 1.05)
		(void)snprintf(seen, sizeof(seen),
			       "harmful to small messages: %.2f times the time by host memory",
			       g->latency_ratio);
	else if (g->bandwidth_known && g->bandwidth_ratio < 1.05)
		(void)snprintf(seen, sizeof(seen), "useless: %.2f of the bandwidth without",
			       g->bandwidth_ratio);
	else if (g->bandwidth_known)
		(void)snprintf(seen, sizeof(seen),
			       "with it %.2f times the bandwidth of host memory",
			       g->bandwidth_ratio);
	l->f->verdict = g->bandwidth_known && g->bandwidth_ratio < 1 ? PP_DEGRADED : PP_PASS;
	(void)snprintf(l->f->text, sizeof(l->f->text),
		       "NCCL_NET_GDR_LEVEL=%.16s in %s forces the direct path whatever the "
		       "distance; %s",
		       l->s->value, origin(l->s), seen);
	return true;
}

static bool dmabuf_off(struct look *l)
{
	if (!is_off(l->s->value))
		return false;
	(void)snprintf(l->f->text, sizeof(l->f->text),
		       "NCCL_DMABUF_ENABLE=0 in %s leaves peermem alone; mechanism seen: %s",
		       origin(l->s), l->g->mechanism);
	return true;
}

static bool read_set(struct look *l)
{
	(void)snprintf(l->f->text, sizeof(l->f->text),
		       "NCCL_NET_GDR_READ=%.16s in %s: sending ends %s read by the hca from GPU "
		       "memory, whatever NCCL would choose for this GPU",
		       l->s->value, origin(l->s), is_off(l->s->value) ? "are not" : "are");
	return true;
}

static bool has_other_network(const struct pp_nccl_run *r)
{
	return *r->networks && strcmp(r->networks, "IB") != 0 && !strstr(r->networks, "Socket");
}

static bool ib_off(struct look *l)
{
	if (!is_on(l->s->value))
		return false;
	if (has_other_network(l->whole))
		(void)snprintf(
			l->f->text, sizeof(l->f->text),
			"NCCL_IB_DISABLE=%.8s in %s, but traffic went over %.60s: the "
			"setting speaks to the built-in IB alone, not to an external plug-in",
			l->s->value, origin(l->s), l->whole->networks);
	else
		(void)snprintf(l->f->text, sizeof(l->f->text),
			       "NCCL_IB_DISABLE=%.8s in %s: without a plug-in all goes over TCP; "
			       "networks seen: %.60s",
			       l->s->value, origin(l->s),
			       *l->whole->networks ? l->whole->networks : "none");
	return true;
}

static bool left_over(struct look *l)
{
	if (!is_on(l->s->value))
		return false;
	(void)snprintf(l->f->text, sizeof(l->f->text),
		       "%.40s=%.8s in %s: GPUs of one host do not reach each other the short way; "
		       "it is for tests, and is easily left behind",
		       l->s->name, l->s->value, origin(l->s));
	return true;
}

/* NCCL takes "mlx5_1" for a beginning: mlx5_10 is one of them. "=" in front wants the whole name.
 */
static bool prefix(struct look *l)
{
	const char *value = l->s->value;
	char name[64];
	size_t n;

	value += *value == '^';
	if (*value == '=')
		return false;
	for (; *value; value += n + (value[n] == ',')) {
		n = strcspn(value, ",");
		(void)snprintf(name, sizeof(name), "%.*s", (int)(n < 60 ? n : 60), value);
		name[strcspn(name, ":")] = '\0';
		for (uint32_t i = 0; *name && i < l->whole->n_nodes; i++) {
			const struct pp_traffic *t = &l->whole->node[i].traffic;

			for (unsigned int k = 0; k < t->n_ports; k++) {
				if (strncmp(t->port[k].hca, name, strlen(name)) != 0 ||
				    !strcmp(t->port[k].hca, name))
					continue;
				(void)snprintf(
					l->f->text, sizeof(l->f->text),
					"NCCL_IB_HCA=%.40s in %s is a beginning of names: it "
					"takes %.40s, too",
					l->s->value, origin(l->s), t->port[k].hca);
				return true;
			}
		}
	}
	return false;
}

static bool low_latency(struct look *l)
{
	if (strcmp(l->s->value, "LL") != 0)
		return false;
	(void)snprintf(l->f->text, sizeof(l->f->text),
		       "NCCL_PROTO=LL in %s: senders keep their buffers in host memory even with "
		       "GDRDMA, and bandwidth is lost",
		       origin(l->s));
	return true;
}

static const struct {
	const char *id, *setting;
	bool (*test)(struct look *l);
	const char *fix;
} settings[] = {
	{"gdr-level-off", "NCCL_NET_GDR_LEVEL", level_loc,
	 "unset NCCL_NET_GDR_LEVEL in the image, the job and nccl.conf"},
	{"gdr-level-forced", "NCCL_NET_GDR_LEVEL", level_forced,
	 "unset NCCL_NET_GDR_LEVEL unless a measurement says otherwise: NCCL chooses by distance"},
	{"dmabuf-off", "NCCL_DMABUF_ENABLE", dmabuf_off, "unset NCCL_DMABUF_ENABLE"},
	{"gdr-read-set", "NCCL_NET_GDR_READ", read_set, "unset NCCL_NET_GDR_READ"},
	{"ib-disabled", "NCCL_IB_DISABLE", ib_off,
	 "unset NCCL_IB_DISABLE; to leave a plug-in out: NCCL_NET_PLUGIN=none"},
	{"p2p-disabled", "NCCL_P2P_DISABLE", left_over, "unset NCCL_P2P_DISABLE"},
	{"shm-disabled", "NCCL_SHM_DISABLE", left_over, "unset NCCL_SHM_DISABLE"},
	{"hca-prefix", "NCCL_IB_HCA", prefix, "put = in front: names are taken whole then"},
	{"protocol-ll", "NCCL_PROTO", low_latency, "unset NCCL_PROTO"},
};

static void of_setting(const struct pp_nccl_run *whole, const struct pp_nccl_run_setting *s,
		       struct pp_gate_library *g)
{
	struct pp_control_finding found;

	if (s->from != PP_NCCL_FROM_USER && s->from != PP_NCCL_FROM_CONF)
		return;
	for (size_t i = 0; i < PP_ARRAY_LEN(settings); i++) {
		struct look l = {whole, s, g, &found};
		struct pp_control_finding *f;

		found = (struct pp_control_finding){.verdict = PP_PASS};
		if (strcmp(s->name, settings[i].setting) != 0 || !settings[i].test(&l))
			continue;
		f = add(g, settings[i].id);
		if (!f)
			return;
		memcpy(f->text, found.text, sizeof(f->text));
		f->verdict = found.verdict;
		(void)snprintf(f->fix, sizeof(f->fix), "%s", settings[i].fix);
		(void)snprintf(f->undo, sizeof(f->undo), "%s=%.120s", s->name, s->value);
	}
}

/* Ranks of one job are told different things. Logging and arms are ours, the same everywhere. */
static void of_difference(const struct pp_nccl_run *whole, uint32_t i, struct pp_gate_library *g)
{
	const struct pp_nccl_run_setting *s = &whole->setting[i];
	struct pp_control_finding *f;
	const char *other = NULL;

	for (uint32_t k = 0; k < whole->n_settings; k++) {
		if (k == i || strcmp(whole->setting[k].name, s->name) != 0 ||
		    !strcmp(whole->setting[k].value, s->value))
			continue;
		if (k < i)
			return; /* it was said there */
		other = other ? other : whole->setting[k].value;
	}
	if (s->from == PP_NCCL_FROM_LOGGING || s->from == PP_NCCL_FROM_ARM)
		return;
	if (!other && (!s->nodes || s->nodes >= whole->n_nodes))
		return;
	f = add(g, "settings-differ");
	if (!f)
		return;
	f->verdict = PP_DEGRADED;
	(void)snprintf(f->text, sizeof(f->text),
		       "%.50s differs: %.50s on %" PRIu32 " of %" PRIu32 " nodes, %.50s on others",
		       s->name, s->value, s->nodes, whole->n_nodes, other ? other : "not set");
	(void)snprintf(f->fix, sizeof(f->fix),
		       "one value on every node: by the launcher (srun --export, mpirun -x), the "
		       "image, or nowhere");
	(void)snprintf(f->undo, sizeof(f->undo), "%.50s=%.120s on those nodes", s->name, s->value);
}

static void of_libraries(const struct pp_nccl_run *whole, struct pp_gate_library *g)
{
	const char *first = NULL, *other = NULL;
	struct pp_control_finding *f;
	bool in_one = false;

	for (uint32_t i = 0; i < whole->n_nodes; i++) {
		const struct pp_nccl_run_node *n = &whole->node[i];

		in_one |= n->n_mapped > 1;
		if (!*n->mapped)
			continue;
		if (first && strcmp(first, n->mapped) != 0)
			other = n->mapped;
		first = first ? first : n->mapped;
	}
	if (!in_one && !other)
		return;
	f = add(g, "two-nccl");
	if (!f)
		return;
	f->verdict = PP_DEGRADED;
	if (other)
		(void)snprintf(f->text, sizeof(f->text),
			       "nodes of one job loaded different libraries: %.90s, %.90s", first,
			       other);
	else
		(void)snprintf(f->text, sizeof(f->text),
			       "processes of one node had several libnccl mapped: which one a "
			       "setting or a plug-in meets is chance");
	(void)snprintf(f->fix, sizeof(f->fix),
		       "one libnccl in the image: LD_LIBRARY_PATH and the framework's own copy");
	(void)snprintf(f->undo, sizeof(f->undo), "the former LD_LIBRARY_PATH");
}

/* What an hca's ports sent together; false: none of them was read. */
static bool sent_by(const struct pp_traffic *t, const char *hca, double *ret)
{
	bool any = false;

	*ret = 0;
	for (unsigned int i = 0; i < t->n_ports; i++) {
		if (strcmp(t->port[i].hca, hca) != 0)
			continue;
		*ret += (double)t->port[i].sent;
		any = true;
	}
	return any;
}

/* A rail that had nothing to carry, in a job with a rank for each: @n its node. */
static void of_idle_rail(const struct pp_nccl_run_node *n, const char *hca, double share,
			 struct pp_gate_library *g)
{
	struct pp_control_finding *f;
	double sent;

	if (!sent_by(&n->traffic, hca, &sent) || sent >= IDLE * share)
		return;
	f = add(g, "rail-idle");
	if (!f)
		return;
	(void)snprintf(f->text, sizeof(f->text),
		       "%.40s is a GPU's rail on %.60s and sent %.3f GB, where an even share is "
		       "%.3f GB: its GPU's bytes went by another hca, or not at all",
		       hca, n->id, sent / 1e9, share / 1e9);
	(void)snprintf(f->fix, sizeof(f->fix),
		       "peerpath topo --nccl-xml on that node; NCCL_IB_HCA that names every rail");
	(void)snprintf(f->undo, sizeof(f->undo), "the former NCCL_IB_HCA");
}

static void of_rails(const struct pp_nccl_run_node *n, struct pp_gate_library *g)
{
	double sent = 0;
	uint32_t rails = 1;
	char hca[64];
	size_t len;

	for (const char *at = n->expected_hca; *at; at++)
		rails += *at == ',';
	for (unsigned int i = 0; i < n->traffic.n_ports; i++)
		sent += (double)n->traffic.port[i].sent;
	/* Fewer ranks than rails leave some idle by right. */
	if (rails < 2 || n->ranks < rails || sent < LITTLE)
		return;
	for (const char *at = n->expected_hca; *at; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		(void)snprintf(hca, sizeof(hca), "%.*s", (int)(len < 60 ? len : 60), at);
		of_idle_rail(n, hca, sent / rails, g);
	}
}

static void of_network(const struct pp_nccl_run *whole, struct pp_gate_library *g)
{
	struct pp_control_finding *f = *whole->in_network ? add(g, "in-network") : NULL;

	if (!f)
		return;
	(void)snprintf(f->text, sizeof(f->text),
		       "collectives were reduced on the way by %.60s: the hcas then send less than "
		       "a ring does, and bytes say less of the path",
		       whole->in_network);
	(void)snprintf(f->fix, sizeof(f->fix),
		       "for a proof by bytes only: NCCL_COLLNET_ENABLE=0 NCCL_NVLS_ENABLE=0");
	(void)snprintf(f->undo, sizeof(f->undo), "unset NCCL_COLLNET_ENABLE NCCL_NVLS_ENABLE");
}

void pp_control_findings(const struct pp_nccl_run *const run[PP_NCCL_ARMS],
			 struct pp_gate_library *g)
{
	const struct pp_nccl_run *whole = run[PP_NCCL_ARM_UNCHANGED];

	for (uint32_t i = 0; i < whole->n_settings; i++) {
		of_setting(whole, &whole->setting[i], g);
		of_difference(whole, i, g);
	}
	for (uint32_t i = 0; i < whole->n_nodes; i++)
		of_rails(&whole->node[i], g);
	of_libraries(whole, g);
	of_network(whole, g);
}
