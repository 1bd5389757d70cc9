/* SPDX-License-Identifier: Apache-2.0 */
#include "node/rail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const char NO_DEVICE[] = "no RDMA device on this function";
static const char NO_PORT[] = "no port is ACTIVE";
static const char NO_ACCESS[] = "its uverbs device cannot be opened here, others can";
static const char MINORITY[] = "other link layer or rate than the majority";

void pp_rails_done(struct pp_rails *r)
{
	free(r->gpu);
	free(r->nic);
	free(r->rank);
	free(r->choice);
	*r = (struct pp_rails){0};
}

static struct pp_rail_nic *nic_of(struct pp_rails *r, const struct pp_object *hca)
{
	for (unsigned int i = 0; i < r->n_nics; i++)
		if (r->nic[i].o == hca)
			return &r->nic[i];
	return NULL;
}

/* The fastest port speaks for the hca; a port that is known not to be ACTIVE does not. */
bool pp_rail_port_speaks(const struct pp_object *port, const struct pp_object *best)
{
	if (strcmp(pp_fact_str_or(port, PP_F_PORT_STATE, "ACTIVE"), "ACTIVE") != 0)
		return false;
	return !best || !pp_fact_str_or(best, PP_F_PORT_LINK, NULL) ||
	       pp_fact_int_or(port, PP_F_PORT_RATE, -1) > pp_fact_int_or(best, PP_F_PORT_RATE, -1);
}

static void add_ports(struct pp_rails *r, struct pp_facts *f)
{
	struct pp_object *port = NULL;
	struct pp_rail_nic *nic;

	while ((port = pp_object_next(f, PP_PORT, port))) {
		nic = nic_of(r, port->parent);
		if (!nic || !pp_rail_port_speaks(port, nic->port))
			continue;
		nic->port = port;
		nic->rate_mbps = pp_fact_int_or(port, PP_F_PORT_RATE, -1);
		nic->layer = pp_fact_str_or(port, PP_F_PORT_LINK, NULL);
	}
}

static bool known_to_be(const struct pp_object *o, enum pp_fact_id id, int64_t value)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	return fact && fact->known && fact->i64 == value;
}

static bool is_known(const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	return fact && fact->known;
}

/* Has no RDMA device of its own by design: a bond's, or a guest's. */
static bool serves_another(const struct pp_object *hca)
{
	return pp_fact_get(hca, PP_F_HCA_BOND_DEVICE) ||
	       !strcmp(pp_fact_str_or(hca, PP_F_HCA_DRIVER, ""), "vfio-pci");
}

static void drop(struct pp_rail_nic *nic, const char *why, const char *lacks)
{
	nic->dropped = why;
	nic->lacks = lacks;
}

static void judge_nics(struct pp_rails *r)
{
	bool openable = false;

	for (unsigned int i = 0; i < r->n_nics; i++) {
		struct pp_rail_nic *nic = &r->nic[i];

		if (known_to_be(nic->o, PP_F_HCA_HAS_DEVICE, 0))
			drop(nic, NO_DEVICE,
			     serves_another(nic->o) ? NULL : "carries no RDMA device");
		else if (known_to_be(nic->o, PP_F_HCA_ACTIVE_PORTS, 0))
			drop(nic, NO_PORT, "has no ACTIVE port");
		else if (known_to_be(nic->o, PP_F_HCA_UVERBS_ACCESS, 1))
			openable = true;
		if (!is_known(nic->o, PP_F_HCA_HAS_DEVICE))
			nic->unknown = "whether it carries an RDMA device";
		else if (!is_known(nic->o, PP_F_HCA_ACTIVE_PORTS))
			nic->unknown = "the state of its ports";
		else if (nic->rate_mbps < 0 || !nic->layer)
			nic->unknown = "its link layer or rate";
		else if (!is_known(nic->o, PP_F_HCA_UVERBS_ACCESS))
			nic->unknown = "whether its uverbs device can be opened";
	}
	for (unsigned int i = 0; i < r->n_nics && openable; i++)
		if (!r->nic[i].dropped && known_to_be(r->nic[i].o, PP_F_HCA_UVERBS_ACCESS, 0))
			drop(&r->nic[i], NO_ACCESS, "cannot be opened by this process");
}

static bool same_kind(const struct pp_rail_nic *a, const struct pp_rail_nic *b)
{
	return a->rate_mbps == b->rate_mbps && !strcmp(a->layer, b->layer);
}

static bool counts(const struct pp_pci *pci, const struct pp_rail_nic *nic)
{
	return !nic->dropped && nic->layer && nic->rate_mbps > 0 &&
	       pci->dev[nic->pci].is_virtual <= 0;
}

/*
 * The majority by the sum of rates: eight compute NICs outweigh two front-end ones, and two of
 * 400 Gb/s outweigh three of 25.
 */
static void drop_minority(const struct pp_pci *pci, struct pp_rails *r)
{
	const struct pp_rail_nic *best = NULL;
	int64_t sum, best_sum = 0;

	for (unsigned int i = 0; i < r->n_nics; i++) {
		if (!counts(pci, &r->nic[i]))
			continue;
		sum = 0;
		for (unsigned int k = 0; k < r->n_nics; k++)
			if (counts(pci, &r->nic[k]) && same_kind(&r->nic[i], &r->nic[k]))
				sum += r->nic[k].rate_mbps;
		if (sum > best_sum || (sum == best_sum && r->nic[i].rate_mbps > best->rate_mbps)) {
			best = &r->nic[i];
			best_sum = sum;
		}
	}
	for (unsigned int i = 0; i < r->n_nics && best; i++) {
		if (r->nic[i].dropped || !r->nic[i].layer || r->nic[i].rate_mbps <= 0 ||
		    same_kind(best, &r->nic[i]))
			continue;
		r->nic[i].dropped = MINORITY;
		r->majority_layer = best->layer;
		r->majority_mbps = best->rate_mbps;
	}
}

int pp_rails_list(struct pp_node *n, struct pp_rails *ret)
{
	unsigned int gpus = n->facts.count[PP_GPU], nics = n->facts.count[PP_HCA];
	struct pp_rails r = {0};
	struct pp_object *o;

	if (nics > PP_RAIL_NICS || (uint64_t)gpus * nics > PP_RAIL_PAIRS)
		return -EFBIG;
	r.gpu = calloc(gpus + 1u, sizeof(struct pp_object *));
	r.nic = calloc(nics + 1u, sizeof(*r.nic));
	r.choice = calloc(gpus + 1u, sizeof(*r.choice));
	r.rank = calloc((size_t)gpus * nics + 1, sizeof(*r.rank));
	if (!r.gpu || !r.nic || !r.choice || !r.rank) {
		pp_rails_done(&r);
		return -ENOMEM;
	}
	pp_objects_foreach (&n->facts, o) {
		if (o->pci < 0)
			continue;
		if (o->kind == PP_GPU)
			r.gpu[r.n_gpus++] = o;
		if (o->kind == PP_HCA)
			r.nic[r.n_nics++] =
				(struct pp_rail_nic){.o = o, .pci = o->pci, .rate_mbps = -1};
	}
	add_ports(&r, &n->facts);
	judge_nics(&r);
	drop_minority(&n->pci, &r);
	*ret = r;
	return 0;
}

struct pp_rail_rank pp_rail_rank_of(const struct pp_pci *pci, int gpu,
				    const struct pp_rail_nic *nic, enum pp_distance distance,
				    int64_t ceiling_mbytes)
{
	int common = distance < PP_DISTANCE_PHB ? pp_pci_common(pci, gpu, nic->pci) : -1;
	int top = common < 0 ? -1 : pci->dev[common].depth;
	int64_t port = nic->rate_mbps > 0 ? nic->rate_mbps / 8 : 0;
	int64_t path = ceiling_mbytes > 0 ? ceiling_mbytes : 0;

	return (struct pp_rail_rank){
		.distance = distance,
		.functions = pci->dev[gpu].depth + pci->dev[nic->pci].depth - 2 * top - 1,
		.is_virtual = pci->dev[nic->pci].is_virtual > 0,
		.usable_mbytes = !port || (path && path < port) ? path : port,
	};
}

int pp_rail_compare(const struct pp_rail_rank *a, const struct pp_rail_rank *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	if (a->functions != b->functions)
		return a->functions < b->functions ? -1 : 1;
	if (a->is_virtual != b->is_virtual)
		return a->is_virtual ? 1 : -1;
	if (a->usable_mbytes != b->usable_mbytes)
		return a->usable_mbytes > b->usable_mbytes ? -1 : 1;
	return 0;
}
