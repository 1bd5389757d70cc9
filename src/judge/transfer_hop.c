/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hops between two memories: ports, the PCIe links of hcas and GPUs, the route between them. A
 * hop whose bandwidth is not known cannot be the narrowest one, so what is known bounds a pass
 * from above: not knowing a hop never makes a verdict better.
 */
#include <math.h>
#include <string.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

struct hop {
	double mbytes; /* one direction; 0 unknown */
	const char *what;
	unsigned int end;
};

enum { HOPS = 6 };

const char *pp_end_name(const struct pp_transfer_case *c, unsigned int end)
{
	const struct pp_bench_end *e = &c->p->end[end];
	const struct pp_bench_node *n = e->node < c->b->n_nodes ? &c->b->nodes[e->node] : NULL;
	const char *node = n ? n->id ? n->id : n->host : NULL; /* ids differ, hosts may not */
	return pp_arena_printf(c->arena, "%s:%s", node ? node : "?",
			       e->device ? e->device : "no hca");
}

static unsigned int hops_of(const struct pp_transfer_case *c, enum pp_rung rung,
			    struct hop hop[HOPS])
{
	bool gpu = pp_rung_is_direct(rung) || rung == PP_RUNG_STAGED;
	unsigned int n = 0;

	for (unsigned int i = 0; i < 2; i++) {
		const struct pp_bench_end *e = &c->p->end[i];

		if (e->port_mbps > 0)
			hop[n++] = (struct hop){(double)e->port_mbps / 8, "port", i};
		if (e->pci_mbytes > 0)
			hop[n++] = (struct hop){(double)e->pci_mbytes, "PCIe link of the hca", i};
		if (gpu && e->gpu_pci_mbytes > 0)
			hop[n++] =
				(struct hop){(double)e->gpu_pci_mbytes, "PCIe link of the GPU", i};
	}
	return n;
}

static const char *named(const struct pp_transfer_case *c, const struct hop *hop)
{
	return pp_arena_printf(c->arena, "%s at %s (%.0f MB/s)", hop->what,
			       pp_end_name(c, hop->end), hop->mbytes);
}

double pp_hop_narrowest(const struct pp_transfer_case *c, enum pp_rung rung, const char **ret_name)
{
	struct hop hop[HOPS], best = {INFINITY, NULL, 0};
	unsigned int n = hops_of(c, rung, hop);

	for (unsigned int i = 0; i < n; i++)
		if (hop[i].mbytes < best.mbytes)
			best = hop[i];
	if (!n)
		return 0;
	*ret_name = best.what;
	return best.mbytes;
}

/* A GPU's link that is no wider than what was reached, and narrower than what host memory got. */
static const char *narrow_link(const struct pp_transfer_case *c, double mbytes, double host)
{
	struct hop best = {INFINITY, "PCIe link of the GPU", 0};

	for (unsigned int i = 0; i < 2; i++) {
		double link = (double)c->p->end[i].gpu_pci_mbytes;

		if (link > 0 && link < best.mbytes && mbytes >= 0.7 * link && host > link) {
			best.mbytes = link;
			best.end = i;
		}
	}
	return isfinite(best.mbytes) ? named(c, &best) : NULL;
}

static const char *slow_route(const struct pp_transfer_case *c)
{
	/* worst first: the first that is on the way of either end is named */
	static const struct {
		const char *word, *text;
	} routes[] = {
		{"cross-socket", "the way between the sockets"},
		{"translated", "the IOMMU, which translates between GPU and hca"},
		{"root-complex", "the root complex between GPU and hca"},
	};

	for (size_t k = 0; k < PP_ARRAY_LEN(routes); k++)
		for (unsigned int i = 0; i < 2; i++) {
			const char *route = c->p->end[i].route, *distance = c->p->end[i].distance;

			if (route && strstr(route, routes[k].word))
				return pp_arena_printf(c->arena, "%s at %s (%s%s%s)",
						       routes[k].text, pp_end_name(c, i),
						       distance ? distance : "",
						       distance ? ", " : "", route);
		}
	return NULL;
}

const char *pp_hop_of_gpu(const struct pp_transfer_case *c, double mbytes, double host)
{
	const char *found = narrow_link(c, mbytes, host);

	if (!found)
		found = slow_route(c);
	return found ? found : "between GPU and hca; which hop is not known";
}
