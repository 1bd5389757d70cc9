/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/prerequisite.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

/* The rows of the table, in the order in which a person would look. */
static const struct {
	const char *name;
	enum pp_kind scope;
	const char *condition;
	int also; /* a fact to show with it, of the first object (enum pp_fact_id), -1 none */
} rows[] = {
	{"NVIDIA kernel module is open", PP_NODE, "nvidia.flavour == open", PP_F_NVIDIA_VERSION},
	{"GPU can be used for GPUDirect RDMA", PP_GPU, "gpu.gdr_supported == yes", -1},
	{"GPU memory can be exported as DMA-BUF", PP_GPU, "gpu.dmabuf_supported == yes", -1},
	{"BAR1 covers GPU memory", PP_GPU, "gpu.bar1_covers_memory == yes", PP_F_GPU_BAR1_TOTAL},
	{"hca functions all carry an RDMA device", PP_NODE,
	 "rdma.functions_without_device is empty", -1},
	{"an RDMA device exists", PP_NODE, "node.hcas > 0", -1},
	{"a port is ACTIVE", PP_NODE, "node.active_ports > 0", -1},
	{"this process may open the hca", PP_HCA, "hca.uverbs_access == yes", -1},
	{"libibverbs can register DMA-BUF", PP_NODE, "libibverbs.reg_dmabuf_mr == yes",
	 PP_F_IBVERBS_RDMA_CORE},
	{"libibverbs has the hca's provider", PP_HCA, "hca.provider_installed == yes", -1},
	{"RDMA core of the kernel takes DMA-BUF", PP_NODE, "kernel.dmabuf_umem == yes",
	 PP_F_KERNEL_RELEASE},
	{"hca's driver takes DMA-BUF in this release", PP_HCA, "hca.dmabuf_by_version == yes",
	 PP_F_HCA_DRIVER},
	{"kernel has the peer-memory API", PP_NODE, "kernel.peer_memory_api == yes", -1},
	{"nvidia_peermem is loaded", PP_NODE, "nvidia_peermem.loaded == yes", PP_F_PEERMEM_VERSION},
	{"GPU's rail is near (PIX or PXB)", PP_PAIR, "pair.distance ~ PIX|PXB", PP_F_PAIR_DISTANCE},
	{"no bridge redirects the rail's traffic", PP_PAIR, "pair.acs_redirect == no",
	 PP_F_PAIR_ROUTE},
	{"no IOMMU translates on the rail", PP_PAIR, "pair.translated == no", -1},
};
_Static_assert(PP_ARRAY_LEN(rows) <= PP_PREREQUISITES, "the list holds every row");

/* What all objects of the scope answered. */
struct poll {
	unsigned int n, truths[3];
	const struct pp_fact *open;    /* first that is unknown */
	const struct pp_fact *value;   /* first that is known */
	const struct pp_object *first; /* the first that is not good, else the first */
};

static void ask(struct poll *p, const struct pp_condition *c, const struct pp_facts *facts,
		const struct pp_object *o)
{
	enum pp_truth truth = pp_condition_test(c, facts, o, /* ret_missing= */ NULL);
	const struct pp_fact *fact = pp_fact_get(o, c->fact);

	if (!p->n++ || (truth == PP_FALSE && !p->truths[PP_FALSE]))
		p->first = o;
	p->truths[truth]++;
	if (truth == PP_OPEN && !p->open)
		p->open = fact;
	if (truth != PP_OPEN && !p->value)
		p->value = fact;
}

static struct poll ask_all(const struct pp_condition *c, const struct pp_facts *facts,
			   enum pp_kind scope)
{
	const struct pp_object *o = NULL;
	struct poll p = {0};

	while ((o = pp_object_next(facts, scope, o)))
		if (scope != PP_PAIR || pp_fact_is(o, PP_F_PAIR_RAIL))
			ask(&p, c, facts, o);
	return p;
}

static const char *answer(const struct poll *p, enum pp_kind scope, struct pp_arena *arena)
{
	char text[256];

	if (!p->n)
		return pp_arena_printf(arena, "unknown: no %s",
				       scope == PP_PAIR ? "rail" : pp_kind_name(scope));
	if (p->truths[PP_OPEN] == p->n)
		return pp_arena_str(arena, pp_fact_text(p->open, text, sizeof(text)));
	if (scope == PP_NODE)
		return pp_arena_str(arena, pp_fact_text(p->value, text, sizeof(text)));
	if (!p->truths[PP_OPEN])
		return pp_arena_printf(arena, "%u of %u", p->truths[PP_TRUE], p->n);
	return pp_arena_printf(arena, "%u of %u; %u unknown: %s", p->truths[PP_TRUE], p->n,
			       p->truths[PP_OPEN], p->open ? p->open->why : "not observed");
}

static const char *word_of(int id)
{
	switch (id) {
	case PP_F_IBVERBS_RDMA_CORE:
		return "rdma-core ";
	case PP_F_HCA_DRIVER:
		return "driver ";
	case PP_F_PAIR_DISTANCE:
		return "distance ";
	case PP_F_PAIR_ROUTE:
		return "route ";
	default:
		return "";
	}
}

/* "580.65.06", "rdma-core 50", "BAR1 256 GiB"; NULL when it is not known. */
static const char *also(const struct poll *p, int id, struct pp_arena *arena)
{
	const struct pp_fact *fact = id < 0 ? NULL : pp_fact_get(p->first, (enum pp_fact_id)id);
	char text[128];

	if (!fact || !fact->known)
		return NULL;
	if (id == PP_F_GPU_BAR1_TOTAL)
		return pp_arena_printf(arena, "BAR1 %" PRId64 " MiB", fact->i64 >> 20);
	return pp_arena_printf(arena, "%s%s", word_of(id), pp_fact_text(fact, text, sizeof(text)));
}

static const char *describe(const struct poll *p, enum pp_kind scope, int id,
			    struct pp_arena *arena)
{
	const char *value = answer(p, scope, arena), *more = also(p, id, arena);

	if (!more || !p->value)
		return value;
	return pp_arena_printf(arena, scope == PP_NODE ? "%s (%s)" : "%s; %s", value, more);
}

/* That no function lacks a device says something only where there is a function. */
static void count_functions(const struct pp_facts *facts, struct pp_arena *arena,
			    struct pp_prerequisite *p)
{
	const struct pp_object *o = NULL;
	unsigned int n = 0;

	if (p->state != PP_TRUE)
		return;
	while ((o = pp_object_next(facts, PP_HCA, o)))
		n += pp_fact_is(o, PP_F_HCA_HAS_DEVICE);
	p->state = n ? PP_TRUE : PP_OPEN;
	p->value = n ? pp_arena_printf(arena, "%u of %u", n, n) : "unknown: no hca";
}

int pp_prerequisites_examine(const struct pp_facts *facts, struct pp_arena *arena,
			     struct pp_prerequisites *ret)
{
	struct pp_prerequisites all = {.n = PP_ARRAY_LEN(rows)};
	struct pp_condition c = {0};
	struct pp_error err;

	for (unsigned int i = 0; i < all.n; i++) {
		int r = pp_condition_parse(arena, rows[i].scope, rows[i].condition, &c, &err);
		struct poll p;

		assert(!r); /* the table is ours */
		(void)r;
		p = ask_all(&c, facts, rows[i].scope);
		all.list[i] = (struct pp_prerequisite){
			.name = rows[i].name,
			.fact = pp_fact_table[c.fact].key,
			.state = p.truths[PP_FALSE]		 ? PP_FALSE
				 : p.truths[PP_OPEN] || p.n == 0 ? PP_OPEN
								 : PP_TRUE,
			.value = describe(&p, rows[i].scope, rows[i].also, arena),
			.how = pp_fact_table[c.fact].how,
		};
		if (c.fact == PP_F_RDMA_FUNCTIONS_WITHOUT)
			count_functions(facts, arena, &all.list[i]);
	}
	if (arena->failed)
		return -ENOMEM;
	*ret = all;
	return 0;
}

enum { TESTS_MAX = 8, EITHER = 2 };

/*
 * nvidia_peermem refuses to load when it cannot register its client, so that a loaded one is enough
 * where nothing more can be seen. OFED and DOCA always show the clients (memory_peers), and can be
 * replaced under a loaded module: there the client must be seen.
 */
static const char *const way_conditions[PP_WAYS][TESTS_MAX][EITHER] = {
	[PP_WAY_DMABUF] = {{"nvidia.flavour == open"},
			   {"gpu.dmabuf_supported == yes"},
			   {"libibverbs.reg_dmabuf_mr == yes"},
			   {"kernel.dmabuf_umem == yes", "hca.probe.dmabuf == yes"},
			   {"hca.dmabuf_by_version == yes", "hca.probe.dmabuf == yes"}},
	[PP_WAY_PEERMEM] = {{"nvidia_peermem.loaded == yes"},
			    {"kernel.peer_memory_api == yes"},
			    {"nvidia_peermem.client == yes", "rdma.stack == inbox"}},
	[PP_WAY_NEEDED] = {{"gpu.gdr_supported == yes"},
			   {"hca.rdma_device == yes"},
			   {"hca.active_ports > 0"},
			   {"hca.uverbs_access == yes", "hca.probe.host == yes"},
			   {"hca.provider_installed == yes", "hca.probe.host == yes"},
			   {"pair.distance ~ PIX|PXB|PHB|NODE|SYS"}},
};

struct either {
	struct pp_condition of[EITHER];
	unsigned int n;
};

struct pp_way_tests {
	struct either test[PP_WAYS][TESTS_MAX];
	unsigned int n[PP_WAYS];
};

static void parse(struct pp_arena *arena, const char *const *texts, struct either *ret)
{
	struct pp_error err;

	for (; ret->n < EITHER && texts[ret->n]; ret->n++) {
		int r = pp_condition_parse(arena, PP_PAIR, texts[ret->n], &ret->of[ret->n], &err);

		assert(!r); /* the table is ours */
		(void)r;
	}
}

int pp_way_tests_new(struct pp_arena *arena, struct pp_way_tests **ret)
{
	struct pp_way_tests *t = pp_arena_alloc(arena, sizeof(*t));

	if (!t)
		return -ENOMEM;
	for (size_t way = 0; way < PP_WAYS; way++)
		for (; t->n[way] < TESTS_MAX && way_conditions[way][t->n[way]][0]; t->n[way]++)
			parse(arena, way_conditions[way][t->n[way]], &t->test[way][t->n[way]]);
	*ret = t;
	return arena->failed ? -ENOMEM : 0;
}

/* One of the two is enough, and a probe that was refused overrules the other; one that nobody made
 * is no second fact at all. */
static enum pp_truth test_either(const struct either *e, const struct pp_facts *facts,
				 const struct pp_object *pair)
{
	enum pp_truth first = pp_condition_test(&e->of[0], facts, pair, /* ret_missing= */ NULL);
	enum pp_truth second;

	if (e->n < 2)
		return first;
	second = pp_condition_test(&e->of[1], facts, pair, /* ret_missing= */ NULL);
	if (first == PP_TRUE) /* what a version promises, a measurement takes back */
		return second == PP_FALSE && e->of[1].fact == PP_F_HCA_PROBE_DMABUF ? PP_FALSE
										    : PP_TRUE;
	if (second == PP_TRUE || first == PP_OPEN)
		return second == PP_TRUE ? PP_TRUE : PP_OPEN;
	if (!pp_fact_get(pp_condition_holder(facts, pair, pp_fact_table[e->of[1].fact].kind),
			 e->of[1].fact))
		return first;
	return second;
}

static bool refused(const struct pp_facts *facts, const struct pp_object *pair)
{
	const struct pp_fact *probe =
		pp_fact_get(pp_condition_holder(facts, pair, PP_HCA), PP_F_HCA_PROBE_DMABUF);

	return probe && probe->known && !probe->i64;
}

enum pp_truth pp_way_test(const struct pp_way_tests *t, enum pp_way way,
			  const struct pp_facts *facts, const struct pp_object *pair,
			  const struct pp_condition **ret_decider)
{
	const struct pp_condition *decider = NULL;
	enum pp_truth truth = PP_TRUE, one;

	for (unsigned int i = 0; i < t->n[way] && truth != PP_FALSE; i++) {
		one = test_either(&t->test[way][i], facts, pair);
		/* What upstream's versions lack, a distribution may have: only a probe denies it.
		 */
		if (one == PP_FALSE && t->test[way][i].of[0].fact == PP_F_HCA_KERNEL_DMABUF &&
		    !refused(facts, pair))
			one = PP_OPEN;
		if (one == PP_TRUE || (one == PP_OPEN && truth == PP_OPEN))
			continue;
		truth = one;
		decider = &t->test[way][i].of[0];
	}
	if (ret_decider)
		*ret_decider = decider;
	return truth;
}
