/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look: what an agent's node has, and the ends that it offers for a run.
 *
 * Answers "fingerprint", "topology", "peermem" (absent: not known), "ends" and, where there is
 * none, "none": why. An end is an hca's port with the GPU whose rail it is; without a GPU, the port
 * alone. "busy" says who else has the hca or the GPU open.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "bench/agent_look.h"
#include "base/banned.h"

enum { RAILS = 64 };

struct rail {
	const struct pp_object *hca, *gpu, *pair, *port; /* gpu, pair NULL: none, not known */
};

struct rails {
	struct rail one[RAILS];
	unsigned int n;
};

static bool is_it(const struct pp_object *o, enum pp_fact_id name, const char *wanted)
{
	return !strcasecmp(o->id, wanted) || !strcmp(pp_fact_str_or(o, name, ""), wanted) ||
	       (o->kind == PP_GPU && !strcmp(pp_fact_str_or(o, PP_F_GPU_UUID, ""), wanted));
}

static const struct pp_object *pair_of(const struct pp_node *n, const struct pp_object *gpu,
				       const struct pp_object *hca)
{
	const struct pp_object *p = NULL;

	while ((p = pp_object_next(&n->facts, PP_PAIR, p)))
		if (p->parent == gpu && p->peer == hca)
			return p;
	return NULL;
}

/* @number 0: the first that is ACTIVE, else the first. */
static const struct pp_object *port_of(const struct pp_node *n, const struct pp_object *hca,
				       int64_t number)
{
	const struct pp_object *p = NULL, *first = NULL;

	while ((p = pp_object_next(&n->facts, PP_PORT, p))) {
		if (p->parent != hca)
			continue;
		if (number && pp_fact_int_or(p, PP_F_PORT_NUMBER, -1) == number)
			return p;
		if (!number && !strcmp(pp_fact_str_or(p, PP_F_PORT_STATE, ""), "ACTIVE"))
			return p;
		first = first ? first : p;
	}
	return number ? NULL : first;
}

static void add(const struct pp_look *l, struct rails *r, const struct pp_object *hca,
		const struct pp_object *gpu)
{
	const struct pp_object *port = port_of(l->node, hca, l->asked->port);

	for (unsigned int i = 0; i < r->n; i++)
		if (r->one[i].hca == hca && r->one[i].gpu == gpu)
			return;
	if (r->n == RAILS || !port || !pp_fact_get(hca, PP_F_HCA_NAME))
		return;
	r->one[r->n++] = (struct rail){.hca = hca,
				       .gpu = gpu,
				       .pair = gpu ? pair_of(l->node, gpu, hca) : NULL,
				       .port = port};
}

/* What the node's own choice of rails gives, within what was asked for. */
static void add_rails(const struct pp_look *l, struct rails *r)
{
	const struct pp_object *p = NULL;

	while ((p = pp_object_next(&l->node->facts, PP_PAIR, p))) {
		bool device = l->asked->device && is_it(p->peer, PP_F_HCA_NAME, l->asked->device);
		bool gpu = l->asked->gpu && is_it(p->parent, PP_F_GPU_NAME, l->asked->gpu);

		if ((l->asked->device && !device) || (l->asked->gpu && !gpu))
			continue;
		if (pp_fact_is(p, PP_F_PAIR_RAIL) || (device && gpu))
			add(l, r, p->peer, p->parent);
	}
}

static const struct pp_object *nth_gpu(const struct pp_look *l, unsigned int i)
{
	const struct pp_object *g = NULL;
	unsigned int n = l->node->facts.count[PP_GPU];

	if (!n)
		return NULL;
	for (i = i % n + 1; i; i--)
		g = pp_object_next(&l->node->facts, PP_GPU, g);
	return g;
}

/* hcas that are nobody's rail: one that was named, or where no GPU has a rail at all. */
static void add_devices(const struct pp_look *l, struct rails *r)
{
	const struct pp_object *h = NULL, *g = NULL, *named = NULL;
	unsigned int i = 0;

	while (l->asked->gpu && (g = pp_object_next(&l->node->facts, PP_GPU, g)))
		if (is_it(g, PP_F_GPU_NAME, l->asked->gpu))
			named = named ? named : g;
	while ((h = pp_object_next(&l->node->facts, PP_HCA, h))) {
		if (l->asked->device ? !is_it(h, PP_F_HCA_NAME, l->asked->device)
				     : !pp_fact_int_or(h, PP_F_HCA_ACTIVE_PORTS, 0))
			continue;
		add(l, r, h, l->asked->gpu ? named : nth_gpu(l, i));
		i++;
	}
}

static int64_t link_mbytes(const struct pp_node *n, const struct pp_object *o)
{
	const struct pp_object *link = o ? pp_object_find(&n->facts, PP_LINK, o->id) : NULL;

	return link ? pp_fact_int_or(link, PP_F_LINK_CEILING, -1) : -1;
}

static void write_gpu(const struct pp_look *l, const struct rail *r, struct pp_json *out)
{
	if (!r->gpu)
		return;
	pp_json_str(out, "gpu", r->gpu->id);
	pp_json_str(out, "gpu_uuid", pp_fact_str_or(r->gpu, PP_F_GPU_UUID, NULL));
	pp_json_str(out, "gpu_name", pp_fact_str_or(r->gpu, PP_F_GPU_NAME, NULL));
	pp_json_i64(out, "gpu_pci_mbytes", link_mbytes(l->node, r->gpu));
	if (r->pair) {
		pp_json_str(out, "distance", pp_fact_str_or(r->pair, PP_F_PAIR_DISTANCE, NULL));
		pp_json_str(out, "route", pp_fact_str_or(r->pair, PP_F_PAIR_ROUTE, NULL));
	}
}

static void write_busy(const struct pp_look *l, const struct rail *r, struct pp_json *out)
{
	const char *uverbs = pp_fact_str_or(r->hca, PP_F_HCA_UVERBS, "");
	int64_t pid = *uverbs ? pp_users_pid(l->users, uverbs) : 0;
	int64_t contexts = r->gpu ? pp_fact_int_or(r->gpu, PP_F_GPU_PROCESSES, 0) : 0;
	char text[160];

	if (pid)
		(void)snprintf(text, sizeof(text), "process %lld has %s (%s) open", (long long)pid,
			       pp_fact_str_or(r->hca, PP_F_HCA_NAME, "?"), uverbs);
	else if (contexts > 0)
		(void)snprintf(text, sizeof(text), "%lld process%s a context on GPU %s",
			       (long long)contexts, contexts > 1 ? "es have" : " has", r->gpu->id);
	else
		return;
	pp_json_str(out, "busy", text);
}

static void write_port(const struct pp_look *l, const struct rail *r, struct pp_json *out)
{
	const char *netdev = pp_fact_str_or(r->port, PP_F_PORT_NETDEV, NULL);
	char address[PP_LOOK_ADDRESS];

	pp_json_i64(out, "port", pp_fact_int_or(r->port, PP_F_PORT_NUMBER, 1));
	pp_json_str(out, "state", pp_fact_str_or(r->port, PP_F_PORT_STATE, NULL));
	pp_json_str(out, "link_layer", pp_fact_str_or(r->port, PP_F_PORT_LINK, NULL));
	pp_json_i64(out, "port_mbps", pp_fact_int_or(r->port, PP_F_PORT_RATE, -1));
	pp_json_str(out, "netdev", netdev);
	if (netdev && !pp_look_address(netdev, address))
		pp_json_str(out, "address", address);
	if (!strcmp(pp_fact_str_or(r->port, PP_F_PORT_TRUST, ""), "dscp"))
		pp_json_bool(out, "by_dscp", true);
	(void)l;
}

static void write_end(const struct pp_look *l, const struct rail *r, struct pp_json *out)
{
	pp_json_object(out, NULL);
	pp_json_str(out, "device", pp_fact_str_or(r->hca, PP_F_HCA_NAME, NULL));
	pp_json_str(out, "hca", r->hca->id);
	pp_json_bool(out, "simulated", pp_object_simulated(r->hca));
	pp_json_i64(out, "numa", pp_fact_int_or(r->hca, PP_F_HCA_NUMA, -1));
	pp_json_i64(out, "pci_mbytes", link_mbytes(l->node, r->hca));
	write_port(l, r, out);
	write_gpu(l, r, out);
	write_busy(l, r, out);
	pp_json_end_object(out);
}

static void write_ends(const struct pp_look *l, struct pp_json *out)
{
	struct rails r = {.n = 0};

	add_rails(l, &r);
	if (!r.n)
		add_devices(l, &r);
	pp_json_array(out, "ends");
	for (unsigned int i = 0; i < r.n && (i == 0 || l->asked->all_rails); i++)
		write_end(l, &r.one[i], out);
	/* the software device without a made /sys: no facts, only libibverbs' list */
	if (!r.n)
		r.n = pp_look_listed(l, out);
	pp_json_end_array(out);
	if (!r.n)
		pp_look_nothing(l, out);
}

static void write_peermem(const struct pp_look *l, struct pp_json *out)
{
	const struct pp_fact *loaded = pp_fact_get(l->node->self, PP_F_PEERMEM_LOADED);

	if (loaded && loaded->known)
		pp_json_bool(out, "peermem", loaded->i64);
}

int pp_agent_look(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		  struct pp_error *err)
{
	struct pp_answer users = {.data = NULL};
	struct pp_look l = {.asked = &c->look, .users = &users};
	struct pp_source *src;
	int r;

	if (a->open)
		return pp_error_set(err, -EBUSY, "look: something is open");
	r = pp_source_live(&src, err);
	if (r)
		return r;
	r = pp_node_collect(src, &l.node, err);
	if (!r && pp_users_ask(src, &users))
		r = pp_error_set(err, -ENOMEM, "out of memory");
	if (!r) {
		pp_json_str(out, "fingerprint",
			    pp_fact_str_or(l.node->self, PP_F_SOFTWARE_FINGERPRINT, NULL));
		pp_json_str(out, "topology",
			    pp_fact_str_or(l.node->self, PP_F_TOPOLOGY_CLASS, NULL));
		write_peermem(&l, out);
		write_ends(&l, out);
	}
	if (users.data)
		pp_answer_done(&users);
	pp_node_free(l.node);
	pp_source_free(src);
	return r;
}
