/* SPDX-License-Identifier: Apache-2.0 */
#include "node/choice.h"

#include "base/banned.h"

/* NCCL and UCX keep 16 bits of a PCI domain: Intel VMD's are larger. */
enum { MAX_DOMAIN = 0xffff };

static const char *end_obstacle(const struct pp_node *n, const struct pp_object *o)
{
	const struct pp_pci_dev *d;

	if (n->pci.why)
		return n->pci.why;
	if (!o || o->pci < 0 || (unsigned int)o->pci >= n->pci.n)
		return "one of the two is not in the PCI tree";
	d = &n->pci.dev[o->pci];
	if (d->host_bridge < 0)
		return "the place of one of them in the PCI tree is not known";
	return d->bdf.domain > MAX_DOMAIN ? "a PCI domain above ffff: the libraries cannot name it"
					  : NULL;
}

const char *pp_choice_obstacle(const struct pp_node *n, const struct pp_object *pair)
{
	const char *why = end_obstacle(n, pair->parent);

	return why ? why : end_obstacle(n, pair->peer);
}

void pp_choice_facts(struct pp_node *n)
{
	struct pp_object *pair = NULL;
	const char *why;

	pp_choice_nccl(n);
	while ((pair = pp_object_next(&n->facts, PP_PAIR, pair))) {
		why = pp_choice_obstacle(n, pair);
		if (why) {
			pp_fact_unknown(&n->facts, pair, PP_F_PAIR_UCX, NULL, "%s", why);
			pp_fact_unknown(&n->facts, pair, PP_F_PAIR_NVSHMEM, NULL, "%s", why);
			continue;
		}
		pp_choice_ucx(n, pair);
		pp_choice_nvshmem(n, pair);
	}
}
