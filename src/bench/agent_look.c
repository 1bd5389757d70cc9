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
#include <stdlib.h>
#include <string.h>

#include "bench/agent_look.h"
#include "base/banned.h"

enum { RAILS = 64 };

/* A device that was named without a GPU: the one whose rail it is, else the first. */
static const struct pp_object *gpu_beside(const struct pp_node *n, const struct pp_object *hca)
{
	const struct pp_object *p = NULL;

	while (hca && (p = pp_object_next(&n->facts, PP_PAIR, p)))
		if (p->peer == hca && pp_fact_is(p, PP_F_PAIR_RAIL))
			return p->parent;
	return pp_object_next(&n->facts, PP_GPU, NULL);
}

static const struct pp_object *pair_of(const struct pp_node *n, const struct pp_object *gpu,
				       const struct pp_object *hca)
{
	const struct pp_object *p = NULL;

	while (hca && (p = pp_object_next(&n->facts, PP_PAIR, p)))
		if (p->parent == gpu && p->peer == hca)
			return p;
	return NULL;
}

static int choose(const struct pp_look *l, struct pp_choice *ret, unsigned int *ret_n,
		  struct pp_error *err)
{
	const struct pp_choose_options options = {.device = l->asked->device,
						  .gpu = l->asked->gpu,
						  .port = (unsigned int)l->asked->port,
						  .listed = l->listed};
	int r;

	if (!l->asked->device && !l->asked->gpu)
		return pp_choose_rails(l->node, &options, ret, l->asked->all_rails ? RAILS : 1,
				       ret_n, err);
	r = pp_choose(l->node, &options, ret, err);
	if (r)
		return r;
	*ret_n = 1;
	if (!ret->gpu) {
		ret->gpu = gpu_beside(l->node, ret->hca);
		ret->pair = ret->gpu ? pair_of(l->node, ret->gpu, ret->hca) : NULL;
	}
	return 0;
}

static int64_t link_mbytes(const struct pp_node *n, const struct pp_object *o)
{
	const struct pp_object *link = o ? pp_object_find(&n->facts, PP_LINK, o->id) : NULL;

	return link ? pp_fact_int_or(link, PP_F_LINK_CEILING, -1) : -1;
}

static void write_gpu(const struct pp_look *l, const struct pp_choice *r, struct pp_json *out)
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

static void write_busy(const struct pp_look *l, const struct pp_choice *r, struct pp_json *out)
{
	const char *uverbs = r->hca ? pp_fact_str_or(r->hca, PP_F_HCA_UVERBS, "") : "";
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

static void write_port(const struct pp_choice *r, struct pp_json *out)
{
	char address[PP_LOOK_ADDRESS];

	pp_json_i64(out, "port", r->number);
	pp_json_str(out, "netdev", r->netdev);
	if (r->netdev && !pp_look_address(r->netdev, address))
		pp_json_str(out, "address", address);
	if (!r->port)
		return;
	pp_json_str(out, "link_layer", pp_fact_str_or(r->port, PP_F_PORT_LINK, NULL));
	pp_json_i64(out, "port_mbps", pp_fact_int_or(r->port, PP_F_PORT_RATE, -1));
	if (!strcmp(pp_fact_str_or(r->port, PP_F_PORT_TRUST, ""), "dscp"))
		pp_json_bool(out, "by_dscp", true);
}

static void write_end(const struct pp_look *l, const struct pp_choice *r, struct pp_json *out)
{
	pp_json_object(out, NULL);
	pp_json_str(out, "device", r->device);
	pp_json_str(out, "hca", r->id);
	if (r->hca)
		pp_json_str(out, "driver", pp_fact_str_or(r->hca, PP_F_HCA_DRIVER, NULL));
	pp_json_bool(out, "simulated", r->simulated);
	pp_json_i64(out, "numa", r->numa);
	pp_json_i64(out, "pci_mbytes", link_mbytes(l->node, r->hca));
	write_port(r, out);
	write_gpu(l, r, out);
	write_busy(l, r, out);
	pp_json_end_object(out);
}

static void write_ends(const struct pp_look *l, struct pp_json *out)
{
	struct pp_choice *PP_AUTO_FREE choice = calloc(RAILS, sizeof(*choice));
	struct pp_error why = {0};
	unsigned int n = 0;
	int r = choice ? choose(l, choice, &n, &why) : -ENOMEM;

	pp_json_array(out, "ends");
	for (unsigned int i = 0; !r && i < n; i++)
		write_end(l, &choice[i], out);
	pp_json_end_array(out);
	/* the choice of one says what there is, and why it is none */
	if (!r && !n && choice)
		(void)pp_choose(l->node,
				&(struct pp_choose_options){.port = (unsigned int)l->asked->port,
							    .listed = l->listed},
				choice, &why);
	if (r || !n)
		pp_json_str(out, "none", *why.text ? why.text : "no RDMA device");
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
	struct pp_answer users = {.data = NULL}, listed = {.data = NULL};
	const char *names[PP_LOOK_LISTED + 1];
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
	if (!r && pp_look_listed(&l, &listed, names))
		l.listed = names;
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
	if (listed.data)
		pp_answer_done(&listed);
	pp_node_free(l.node);
	pp_source_free(src);
	return r;
}
