/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/rail.h"
#include "base/banned.h"

void pp_topo_done(struct pp_topo *t)
{
	free(t->members);
	*t = (struct pp_topo){0};
}

static void add(struct pp_topo *t, const struct pp_object *o, int pci, const char *prefix,
		unsigned int number)
{
	struct pp_topo_member *m = &t->members[t->n++];

	*m = (struct pp_topo_member){.o = o, .pci = pci};
	(void)snprintf(m->name, sizeof(m->name), "%s%u", prefix, number);
}

static void add_kind(struct pp_topo *t, enum pp_kind kind, const char *prefix, unsigned int *count)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&t->node->facts, kind, o)))
		if (o->pci >= 0)
			add(t, o, o->pci, prefix, (*count)++);
}

static void add_ports(struct pp_topo *t)
{
	const struct pp_object *port = NULL;

	while ((port = pp_object_next(&t->node->facts, PP_PORT, port)))
		for (unsigned int i = t->gpus; i < t->n; i++)
			if (t->members[i].o == port->parent &&
			    pp_rail_port_speaks(port, t->members[i].port))
				t->members[i].port = port;
}

static struct pp_topo_member *member_at(const struct pp_topo *t, int pci)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (t->members[i].pci == pci)
			return &t->members[i];
	return NULL;
}

static int add_devices(const struct pp_session *s, struct pp_topo *t)
{
	struct pp_topo_member *m;
	const char *text;
	struct pp_bdf bdf;
	int pci;

	for (size_t i = 0; i < pp_args_count(s->args, "device"); i++) {
		text = pp_args_nth(s->args, "device", i);
		if (pp_bdf_parse(text, &bdf))
			return pp_complain(s->args, PP_EXIT_USAGE,
					   "--device '%.40s': not a PCI address (0000:3b:00.0)",
					   text);
		pci = pp_pci_find(&s->node->pci, &bdf);
		if (pci < 0)
			return pp_complain(s->args, PP_EXIT_INPUT,
					   "--device %.40s: this node has no such PCI function",
					   text);
		m = member_at(t, pci);
		if (m)
			m->asked = true;
		else
			add(t, NULL, pci, "DEV", t->n - t->gpus - t->nics);
	}
	return 0;
}

int pp_topo_members(const struct pp_session *s, struct pp_topo *ret)
{
	const struct pp_facts *f = &s->node->facts;
	size_t extra = pp_args_count(s->args, "device");
	struct pp_topo t = {.node = s->node};
	int r;

	if (extra > PP_TOPO_EXTRA)
		return pp_complain(s->args, PP_EXIT_USAGE, "at most %d times --device",
				   PP_TOPO_EXTRA);
	t.members = calloc(f->count[PP_GPU] + f->count[PP_HCA] + extra + 1, sizeof(*t.members));
	if (!t.members)
		return pp_complain(s->args, PP_EXIT_INTERNAL, "out of memory");
	add_kind(&t, PP_GPU, "GPU", &t.gpus);
	add_kind(&t, PP_HCA, "NIC", &t.nics);
	add_ports(&t);
	r = add_devices(s, &t);
	if (r) {
		pp_topo_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

int pp_topo_shown(const struct pp_topo *t, struct pp_topo *ret)
{
	bool *PP_AUTO_FREE rail = calloc(t->node->pci.n + (size_t)1, sizeof(*rail));
	struct pp_topo s = {.node = t->node, .gpus = t->gpus};
	const struct pp_object *pair = NULL;

	s.members = calloc(t->n + (size_t)1, sizeof(*s.members));
	if (!s.members || !rail) {
		pp_topo_done(&s);
		return -ENOMEM;
	}
	while ((pair = pp_object_next(&t->node->facts, PP_PAIR, pair)))
		if (pair->peer && pair->peer->pci >= 0 && pp_fact_is(pair, PP_F_PAIR_RAIL))
			rail[pair->peer->pci] = true;
	for (unsigned int i = 0; i < t->n; i++) {
		const struct pp_topo_member *m = &t->members[i];
		bool is_nic = i >= t->gpus && i < t->gpus + t->nics;

		if (is_nic && t->node->pci.dev[m->pci].is_virtual && !m->asked && !rail[m->pci]) {
			s.left_out++;
			continue;
		}
		s.members[s.n++] = *m;
		s.nics += is_nic;
	}
	*ret = s;
	return 0;
}

/* Bonded NVLinks between two GPUs, -1 unknown. */
static int nvlinks(const struct pp_topo *t, unsigned int a, unsigned int b)
{
	const struct pp_node *n = t->node;

	if (!n->nvlinks || a >= t->gpus || b >= t->gpus || a >= n->n_gpus || b >= n->n_gpus)
		return -1;
	return n->nvlinks[a * n->n_gpus + b];
}

const char *pp_topo_cell(const struct pp_topo *t, unsigned int a, unsigned int b,
			 char text[PP_TOPO_NAME])
{
	int links = a == b ? 0 : nvlinks(t, a, b);
	enum pp_distance d = pp_distance(&t->node->pci, t->members[a].pci, t->members[b].pci);

	if (links > 0)
		(void)snprintf(text, PP_TOPO_NAME, "NV%d", links);
	else
		(void)snprintf(text, PP_TOPO_NAME, "%s", pp_distance_name(d));
	return text;
}
