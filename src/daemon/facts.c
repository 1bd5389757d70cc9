/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each part of the software tuple is a look of its own: a signal then says what changed, not that
 * a digest did. The module's flavour and nvidia_peermem have kinds of their own and are left out
 * there; so is the image of the container, which is the monitor's.
 */
#include "daemon/facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/watch.h"
#include "daemon/wiring.h"
#include "node/distance.h"
#include "base/banned.h"

enum { VALUE = 400 };

static const enum pp_fact_id elsewhere[] = {PP_F_NVIDIA_FLAVOUR, PP_F_PEERMEM_LOADED,
					    PP_F_CONTAINER_IMAGE};

/* The fact as a state; unknown with its reason; nothing when it was never set. */
static int tell(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		const struct pp_object *of, enum pp_fact_id id, const char *prefix)
{
	const struct pp_fact *f = pp_fact_get(of, id);
	char text[VALUE];

	if (!f)
		return 0;
	if (!f->known)
		return pp_look_unknown(into, kind, object, "%s", f->why ? f->why : "not known");
	return pp_look_state(into, kind, object, f->source, "%s%s", prefix,
			     pp_fact_text(f, text, sizeof(text)));
}

static bool is_elsewhere(enum pp_fact_id id)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(elsewhere); i++)
		if (elsewhere[i] == id)
			return true;
	return false;
}

static int software(const struct pp_node *n, struct pp_looks *into)
{
	struct pp_object *hca = NULL;
	int r = 0;

	for (const enum pp_fact_id *id = pp_software_tuple; !r && *id != PP_FACTS; id++)
		if (!is_elsewhere(*id))
			r = tell(into, PP_SIGNAL_FINGERPRINT, pp_fact_table[*id].key, n->self, *id,
				 "");
	while (!r && (hca = pp_object_next(&n->facts, PP_HCA, hca)))
		r = tell(into, PP_SIGNAL_FINGERPRINT, hca->id, hca, PP_F_HCA_FW, "firmware ");
	return r;
}

static int modules(const struct pp_node *n, struct pp_looks *into)
{
	const struct pp_fact *loaded = pp_fact_get(n->self, PP_F_PEERMEM_LOADED);
	const struct pp_fact *nvidia = pp_fact_get(n->self, PP_F_NVIDIA_LOADED);
	int r;

	if (nvidia && nvidia->known && !nvidia->i64)
		r = pp_look_state(into, PP_SIGNAL_FLAVOUR, "node", nvidia->source, "not loaded");
	else
		r = tell(into, PP_SIGNAL_FLAVOUR, "node", n->self, PP_F_NVIDIA_FLAVOUR, "");
	if (r)
		return r;
	if (!loaded || !loaded->known)
		return pp_look_unknown(into, PP_SIGNAL_PEERMEM, "node", "%s",
				       loaded && loaded->why ? loaded->why : "not known");
	if (loaded->i64)
		return pp_look_state(into, PP_SIGNAL_PEERMEM, "node", loaded->source,
				     "nvidia_peermem %s",
				     pp_fact_str_or(n->self, PP_F_PEERMEM_VERSION, "loaded"));
	return pp_look_state(into, PP_SIGNAL_PEERMEM, "node", loaded->source, "%s",
			     pp_fact_is(n->self, PP_F_NV_PEER_MEM_LOADED) ? "nv_peer_mem"
									  : "not loaded");
}

/* The hcas that are nearest to a gpu by wiring alone: a rail goes elsewhere with a port's state. */
struct near {
	const struct pp_object *gpu;
	enum pp_distance distance;
	bool is_virtual; /* no physical function is there at all */
	const char *route, *why, *route_why;
	char hcas[VALUE];
};

static enum pp_distance distance_of(const char *name)
{
	unsigned int d = 0;

	while (d < PP_DISTANCE_UNKNOWN && strcmp(pp_distance_name(d), name) != 0)
		d++;
	return d;
}

static const char *word_of(const struct pp_object *pair, enum pp_fact_id id, const char **why)
{
	const struct pp_fact *f = pp_fact_get(pair, id);

	if (!f || !f->known)
		*why = f && f->why ? f->why : "not told";
	return f && f->known ? f->str : "unknown";
}

static void meet(const struct pp_node *n, struct near *near, const struct pp_object *pair)
{
	enum pp_distance d = distance_of(word_of(pair, PP_F_PAIR_DISTANCE, &near->why));
	bool is_virtual = pair->peer->pci >= 0 && n->pci.dev[pair->peer->pci].is_virtual > 0;
	size_t used = strlen(near->hcas);
	bool nearer = is_virtual != near->is_virtual ? near->is_virtual : d < near->distance;
	const char *route, *why = NULL;

	if (used && !nearer && (is_virtual != near->is_virtual || d > near->distance))
		return;
	route = word_of(pair, PP_F_PAIR_ROUTE, &why);
	if (!used || nearer) {
		near->distance = d;
		near->is_virtual = is_virtual;
		near->route = route;
		near->route_why = NULL;
		used = 0;
	}
	if (why)
		near->route_why = why;
	if (!strcmp(route, near->route))
		(void)snprintf(near->hcas + used, sizeof(near->hcas) - used, "%s%s",
			       used ? ", " : "", pair->peer->id);
}

static int tell_near(const struct near *near, struct pp_looks *into)
{
	/* A word that says unknown would be another word than the baseline's. */
	if (near->why || near->route_why)
		return pp_look_unknown(into, PP_SIGNAL_TOPOLOGY, near->gpu->id, "%s",
				       near->why ? near->why : near->route_why);
	if (!*near->hcas)
		return pp_look_state(into, PP_SIGNAL_TOPOLOGY, near->gpu->id, NULL, "no hca");
	return pp_look_state(into, PP_SIGNAL_TOPOLOGY, near->gpu->id, NULL, "%s, %s, to %s",
			     pp_distance_name(near->distance), near->route, near->hcas);
}

/* The pairs of a gpu follow one another. */
static int nearest(const struct pp_node *n, struct pp_looks *into)
{
	struct pp_object *pair = pp_object_next(&n->facts, PP_PAIR, NULL), *gpu = NULL;
	const char *why =
		!pair && n->facts.count[PP_HCA] ? "too many pairs to find their paths" : NULL;
	int r = 0;

	while (!r && (gpu = pp_object_next(&n->facts, PP_GPU, gpu))) {
		struct near near = {.gpu = gpu,
				    .why = gpu->pci < 0 ? "its PCI function is not known" : why};

		for (; pair && pair->parent == gpu; pair = pp_object_next(&n->facts, PP_PAIR, pair))
			if (pair->peer)
				meet(n, &near, pair);
		r = tell_near(&near, into);
	}
	return r;
}

/* The digest names nobody: how many of each are a first answer, the rest is in other looks. */
static int topology(const struct pp_node *n, struct pp_looks *into)
{
	const struct pp_fact *class = pp_fact_get(n->self, PP_F_TOPOLOGY_CLASS);
	int r = nearest(n, into);

	if (r || !class)
		return r;
	if (!class->known)
		return pp_look_unknown(into, PP_SIGNAL_TOPOLOGY, "node", "%s",
				       class->why ? class->why : "not known");
	return pp_look_state(into, PP_SIGNAL_TOPOLOGY, "node", class->str,
			     "class %.16s, gpus: %u, hcas: %u", class->str, n->facts.count[PP_GPU],
			     n->facts.count[PP_HCA]);
}

static int acs_of(const struct pp_pci_dev *d, struct pp_looks *into)
{
	char bdf[PP_BDF_TEXT], bits[32];

	(void)pp_bdf_format(&d->bdf, bdf);
	if (d->acs_state == PP_ACS_UNREADABLE)
		return d->config_len < 0
			       ? pp_look_unknown(into, PP_SIGNAL_ACS, bdf,
						 "its config space could not be read")
			       : pp_look_unknown(into, PP_SIGNAL_ACS, bdf,
						 "only %d bytes of its config space could be "
						 "read: run as root",
						 d->config_len);
	if (d->acs_state == PP_ACS_ABSENT)
		return pp_look_state(into, PP_SIGNAL_ACS, bdf, d->path, "no ACS capability");
	return pp_look_state(into, PP_SIGNAL_ACS, bdf, d->path, "%s",
			     pp_acs_bits(d->acs_ctl, bits, sizeof(bits)));
}

/* Bridges above gpus and hcas, each once: which of them are rails may change with a port. */
static int acs(struct pp_node *n, struct pp_looks *into)
{
	const bool *above = pp_wiring_bridges(n, &n->arena);
	int r = above ? 0 : -ENOMEM;

	for (unsigned int i = 0; !r && i < n->pci.n; i++)
		if (above[i])
			r = acs_of(&n->pci.dev[i], into);
	return r;
}

static int iommu(const struct pp_node *n, struct pp_looks *into)
{
	static const struct {
		enum pp_kind kind;
		enum pp_fact_id id;
	} of[] = {{PP_GPU, PP_F_GPU_IOMMU}, {PP_HCA, PP_F_HCA_IOMMU}};
	int r = tell(into, PP_SIGNAL_IOMMU, "node", n->self, PP_F_IOMMU_ACTIVE, "groups: ");

	for (size_t i = 0; i < PP_ARRAY_LEN(of); i++) {
		struct pp_object *o = NULL;

		while (!r && (o = pp_object_next(&n->facts, of[i].kind, o)))
			r = tell(into, PP_SIGNAL_IOMMU, o->id, o, of[i].id, "");
	}
	return r;
}

/*
 * PCI Express links. A GPU lowers its own link's speed when it has nothing to do: of it only the
 * lanes are a state. Links of hcas are looked at more often, by watch_link.c.
 */
static int links(const struct pp_node *n, struct pp_looks *into)
{
	struct pp_object *o = NULL;
	char object[64];
	int r = 0;

	while (!r && (o = pp_object_next(&n->facts, PP_LINK, o))) {
		const char *below = pp_fact_str_or(o, PP_F_LINK_BELOW, "");
		int64_t speed = pp_fact_int_or(o, PP_F_LINK_SPEED, -1);
		int64_t width = pp_fact_int_or(o, PP_F_LINK_WIDTH, -1);

		(void)snprintf(object, sizeof(object), "%.40s pcie", o->id);
		if (!strcmp(below, "hca"))
			continue;
		if (width <= 0 || speed <= 0)
			r = pp_look_unknown(into, PP_SIGNAL_LINK_SPEED, object,
					    "speed and width of the link are not known");
		else if (!strcmp(below, "gpu"))
			r = pp_look_state(into, PP_SIGNAL_LINK_SPEED, object, NULL, "x%lld",
					  (long long)width);
		else
			r = pp_look_state(into, PP_SIGNAL_LINK_SPEED, object, NULL,
					  "%.10g GT/s x%lld", (double)speed / 1000,
					  (long long)width);
	}
	return r;
}

static int bar1(const struct pp_node *n, struct pp_looks *into)
{
	struct pp_object *gpu = NULL;
	int r = 0;

	while (!r && (gpu = pp_object_next(&n->facts, PP_GPU, gpu))) {
		const struct pp_fact *f = pp_fact_get(gpu, PP_F_GPU_BAR1_FREE);

		if (f && f->known)
			r = pp_look_number(into, PP_SIGNAL_BAR1_FREE, gpu->id, f->source,
					   (double)f->i64);
		else
			r = pp_look_unknown(into, PP_SIGNAL_BAR1_FREE, gpu->id, "%s",
					    f && f->why ? f->why : "not known");
	}
	return r;
}

/* "path: NAME=value, ..." by file; what sets nothing is a state too. */
static int nccl_files(const struct pp_node *n, struct pp_looks *into)
{
	static const char SYSTEM[] = "/etc/nccl.conf";
	const struct pp_fact *f = pp_fact_get(n->self, PP_F_NCCL_CONF);
	bool of_system = false;
	int r = 0;

	if (!f || !f->known)
		return pp_look_unknown(into, PP_SIGNAL_NCCL_FILES, SYSTEM, "%s",
				       f && f->why ? f->why : "not known");
	for (size_t i = 0; !r && f->list && f->list[i]; i++) {
		const char *colon = strchr(f->list[i], ':');
		char path[256];

		if (!colon || (size_t)(colon - f->list[i]) >= sizeof(path))
			continue;
		(void)snprintf(path, sizeof(path), "%.*s", (int)(colon - f->list[i]), f->list[i]);
		of_system |= !strcmp(path, SYSTEM);
		r = pp_look_state(into, PP_SIGNAL_NCCL_FILES, path, f->list[i], "%s",
				  colon + 1 + (colon[1] == ' '));
	}
	if (!r && !of_system)
		r = pp_look_state(into, PP_SIGNAL_NCCL_FILES, SYSTEM, NULL, "absent");
	return r;
}

int pp_watch_facts_add(struct pp_node *n, bool live, struct pp_looks *into)
{
	int r = software(n, into);

	if (!r)
		r = modules(n, into);
	if (!r)
		r = topology(n, into);
	if (!r)
		r = acs(n, into);
	if (!r)
		r = iommu(n, into);
	if (!r)
		r = links(n, into);
	if (!r && !live)
		r = bar1(n, into);
	return r ? r : nccl_files(n, into);
}
