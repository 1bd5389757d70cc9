/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 0: is it known what this node is? Names and indices are no identity.
 */
#include "judge/gate_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/bdf.h"
#include "base/banned.h"

/* Known, and not the empty text that some drivers show for what they do not have. */
static bool told(const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	return fact && fact->known && fact->str[0];
}

static bool need(struct pp_missing *m, const struct pp_object *o, enum pp_fact_id id)
{
	if (told(o, id))
		return true;
	pp_missing_fact(m, o, id);
	return false;
}

/* "0000:3b:00.0", or "0000:3b:00.0/..." for a second device on one function. */
static bool need_address(struct pp_missing *m, const struct pp_object *o)
{
	char text[PP_BDF_TEXT];
	struct pp_bdf bdf;

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(o->id, "/"), o->id);
	if (!pp_bdf_parse_kernel(text, &bdf))
		return true;
	pp_missing_add(m, "%s '%s' has no PCI address", pp_kind_name(o->kind), o->id);
	return false;
}

static unsigned int identified_gpus(const struct pp_facts *facts, struct pp_missing *m)
{
	const struct pp_object *o = NULL;
	unsigned int n = 0;

	while ((o = pp_object_next(facts, PP_GPU, o))) {
		bool address = need_address(m, o), uuid = need(m, o, PP_F_GPU_UUID);

		n += address && uuid;
	}
	return n;
}

static bool is_bare(const struct pp_object *o)
{
	const struct pp_fact *device = pp_fact_get(o, PP_F_HCA_HAS_DEVICE);

	return device && device->known && !device->i64;
}

static bool is_software(const struct pp_object *o)
{
	return !strncmp(o->id, "virtual/", 8);
}

/*
 * A function that carries no RDMA device has nothing but its address; a software device has no
 * function and no firmware.
 */
static bool identified_hca(const struct pp_object *o, struct pp_missing *m)
{
	bool bare = is_bare(o);
	bool software = is_software(o);
	bool address = software || need_address(m, o);
	bool guid = bare || need(m, o, PP_F_HCA_NODE_GUID);
	bool firmware = bare || software || need(m, o, PP_F_HCA_FW);

	return address && guid && firmware;
}

static const char *identified_hcas(const struct pp_facts *facts, struct pp_arena *arena,
				   struct pp_missing *m)
{
	const struct pp_object *o = NULL;
	unsigned int n = 0, bare = 0, software = 0;
	const char *text;

	while ((o = pp_object_next(facts, PP_HCA, o))) {
		if (!identified_hca(o, m))
			continue;
		bare += is_bare(o);
		software += !is_bare(o) && is_software(o);
		n += !is_bare(o) && !is_software(o);
	}
	text = pp_arena_printf(arena, "%u of %u hcas by BDF, node GUID and firmware", n,
			       facts->count[PP_HCA]);
	if (bare)
		text = pp_arena_printf(arena, "%s; %u by BDF alone: no RDMA device", text, bare);
	if (software)
		text = pp_arena_printf(arena, "%s; %u by node GUID: software", text, software);
	return text;
}

/* The count of what should be there, so that an object that vanished is missed. */
static void need_count(struct pp_missing *m, const struct pp_object *node, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(node, id);

	if (!fact || !fact->known)
		pp_missing_fact(m, node, id);
}

void pp_gate_identity(const struct pp_facts *facts, struct pp_arena *arena, struct pp_gate_row *row)
{
	const struct pp_object *node = pp_object_next(facts, PP_NODE, NULL);
	const struct pp_fact *gpus = pp_fact_get(node, PP_F_N_GPUS);
	struct pp_missing m = {.arena = arena};
	const char *release, *hcas;
	unsigned int n_gpus;
	bool none = gpus && gpus->known && gpus->i64 == 0 && !facts->count[PP_GPU];

	(void)need(&m, node, PP_F_KERNEL_RELEASE);
	need_count(&m, node, PP_F_N_GPUS);
	need_count(&m, node, PP_F_N_HCAS);
	if (none)
		pp_missing_add(&m, "no GPU on the PCI bus");
	n_gpus = identified_gpus(facts, &m);
	hcas = identified_hcas(facts, arena, &m);
	release = told(node, PP_F_KERNEL_RELEASE) ? pp_fact_str_or(node, PP_F_KERNEL_RELEASE, "")
						  : "of unknown release";
	*row = (struct pp_gate_row){
		.gate = PP_GATE_IDENTITY,
		.verdict = m.n ? PP_UNKNOWN : PP_PASS,
		.run = true,
		.claim = m.n ? (none ? "this node has no GPU that could be identified"
				     : "this node is not fully identified")
			     : "every GPU and hca of this node is identified",
		.evidence = pp_arena_printf(arena, "kernel %s; %u of %u GPUs by UUID and BDF; %s",
					    release, n_gpus, facts->count[PP_GPU], hcas),
		.raise = pp_missing_text(&m),
		.next = m.n ? "peerpath identity" : NULL,
		.missing = m.n,
	};
}
