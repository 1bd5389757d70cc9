/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 0's facts: who the node is. Names are shown, BDFs, UUIDs and GUIDs identify.
 */
#include "cli/session.h"
#include "cli/view.h"
#include "base/banned.h"

static void node_section(struct pp_view *v)
{
	static const struct {
		enum pp_fact_id id;
		const char *label;
	} fields[] = {
		{PP_F_KERNEL_RELEASE, "kernel"},
		{PP_F_KERNEL_ARCH, "architecture"},
		{PP_F_OS_NAME, "system"},
		{PP_F_VIRTUAL_MACHINE, "virtual machine"},
		{PP_F_CONTAINER, "container"},
		{PP_F_NVIDIA_VERSION, "NVIDIA module"},
		{PP_F_NVIDIA_FLAVOUR, "module flavour"},
		{PP_F_PEERMEM_LOADED, "nvidia_peermem loaded"},
		{PP_F_RDMA_STACK, "RDMA stack"},
		{PP_F_RDMA_STACK_VERSION, "RDMA stack version"},
		{PP_F_IBVERBS_VERSION, "libibverbs"},
		{PP_F_CUDA_DRIVER, "CUDA driver API"},
		{PP_F_NCCL_VERSION, "NCCL"},
		{PP_F_UCX_VERSION, "UCX"},
		{PP_F_LIBFABRIC_VERSION, "libfabric"},
		{PP_F_SOFTWARE_FINGERPRINT, "software fingerprint"},
		{PP_F_SOFTWARE_MISSING, "unknown parts of it"},
		{PP_F_TOPOLOGY_CLASS, "topology class"},
	};

	pp_out_heading(v->out, "Node");
	pp_out_open(v->out, "node");
	for (size_t i = 0; i < PP_ARRAY_LEN(fields); i++)
		pp_view_field(v, v->node->self, fields[i].id, fields[i].label);
	pp_out_close(v->out);
}

/* False when there is nothing to put into a table: said here, as "none" only when that is known. */
static bool heading(struct pp_view *v, const char *title, enum pp_kind kind, enum pp_fact_id count)
{
	const struct pp_fact *fact = pp_fact_get(v->node->self, count);
	char text[512];

	pp_out_heading(v->out, title);
	if (v->node->facts.count[kind] || pp_out_is_json(v->out))
		return true;
	if (fact && fact->known)
		pp_out_raw(v->out, "  none\n");
	else
		pp_out_para(v->out, 4, "  %s", pp_fact_text(fact, text, sizeof(text)));
	return false;
}

static void gpu_rows(struct pp_view *v, const void *arg)
{
	const struct pp_object *o = NULL;

	(void)arg;
	while ((o = pp_object_next(&v->node->facts, PP_GPU, o))) {
		pp_out_cell(v->out, o->id);
		pp_view_cell(v, o, PP_F_GPU_UUID);
		pp_view_cell(v, o, PP_F_GPU_NAME);
		pp_view_cell_bytes(v, o, PP_F_GPU_FB_TOTAL);
		pp_view_cell_bytes(v, o, PP_F_GPU_BAR1_TOTAL);
		pp_view_cell(v, o, PP_F_GPU_NUMA);
		pp_view_cell(v, o, PP_F_GPU_DRIVER);
	}
}

static void gpu_section(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {
		{"bdf", "BDF", false},	       {"uuid", "UUID", false},
		{"name", "NAME", true},	       {"memory_bytes", "MEMORY", false},
		{"bar1_bytes", "BAR1", false}, {"numa_node", "NUMA", false},
		{"driver", "DRIVER", false}};
	static const struct pp_view_table table = {
		"gpus", columns, PP_ARRAY_LEN(columns), 1u, 1u << 2 | 1u << 3 | 1u << 4, gpu_rows};

	if (!heading(v, "GPUs", PP_GPU, PP_F_N_GPUS))
		return;
	pp_view_table(v, &table, NULL);
}

static void hca_rows(struct pp_view *v, const void *arg)
{
	const struct pp_object *o = NULL;

	(void)arg;
	while ((o = pp_object_next(&v->node->facts, PP_HCA, o))) {
		pp_out_cell(v->out, o->id);
		pp_view_cell(v, o, PP_F_HCA_NAME);
		pp_view_cell(v, o, PP_F_HCA_TYPE);
		pp_view_cell(v, o, PP_F_HCA_FW);
		pp_view_cell(v, o, PP_F_HCA_NODE_GUID);
		pp_view_cell(v, o, PP_F_HCA_BOARD);
		pp_view_cell(v, o, PP_F_HCA_FUNCTION);
		pp_view_cell(v, o, PP_F_HCA_DRIVER);
	}
}

static void hca_section(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {{"bdf", "BDF", false},
						       {"name", "NAME", false},
						       {"type", "TYPE", false},
						       {"firmware", "FIRMWARE", false},
						       {"node_guid", "NODE GUID", false},
						       {"board_id", "BOARD", true},
						       {"function", "PF/VF", false},
						       {"driver", "DRIVER", false}};
	static const struct pp_view_table table = {
		"hcas", columns, PP_ARRAY_LEN(columns), 1u, 1u << 3 | 1u << 4 | 1u << 5, hca_rows};

	if (!heading(v, "hcas", PP_HCA, PP_F_N_HCAS))
		return;
	pp_view_table(v, &table, NULL);
	if (pp_node_simulated(v->node))
		pp_out_para(v->out, 2, "  TYPE soft: simulated, peerpath's software device.");
}

static void port_section(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {
		{"port", "HCA/PORT", false},	{"state", "STATE", false},
		{"rate_mbps", "MBIT/S", false}, {"link_layer", "LINK LAYER", false},
		{"lid", "LID", false},		{"netdev", "NETDEV", false},
		{"mtu_bytes", "MTU", false},	{"gid_rocev2_ipv4", "ROCE V2 GID", false}};
	const struct pp_object *o = NULL;

	if (!v->node->facts.count[PP_PORT] && !pp_out_is_json(v->out))
		return;
	pp_out_heading(v->out, "Ports");
	pp_out_table(v->out, "ports", columns, PP_ARRAY_LEN(columns));
	while ((o = pp_object_next(&v->node->facts, PP_PORT, o))) {
		pp_out_cell(v->out, o->id);
		pp_view_cell(v, o, PP_F_PORT_STATE);
		pp_view_cell(v, o, PP_F_PORT_RATE);
		pp_view_cell(v, o, PP_F_PORT_LINK);
		pp_view_cell(v, o, PP_F_PORT_LID);
		pp_view_cell(v, o, PP_F_PORT_NETDEV);
		pp_view_cell(v, o, PP_F_PORT_MTU);
		pp_view_cell(v, o, PP_F_PORT_GID_V2_IPV4);
	}
	pp_out_table_end(v->out);
}

/* Keys and objects take most of a line: below this width values would be broken within words. */
enum { FACTS_WIDTH = 140 };

static void facts_stacked(struct pp_view *v)
{
	const struct pp_object *o;
	char text[1024];

	pp_objects_foreach (&v->node->facts, o) {
		for (unsigned int i = 0; i < o->n; i++) {
			pp_out_para(v->out, 4, "%s of %s: %s", pp_fact_table[o->facts[i].id].key,
				    o->id, pp_fact_text(&o->facts[i], text, sizeof(text)));
			if (o->facts[i].source)
				pp_out_para(v->out, 4, "    %s", o->facts[i].source);
		}
	}
}

/* Every fact with its source: what rules can be written on. */
static void facts_table(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {{"fact", "FACT", false},
						       {"of", "OF", false},
						       {"value", "VALUE", true},
						       {"source", "SOURCE", true}};
	const struct pp_object *o;
	char text[1024];

	if (pp_out_is_json(v->out)) {
		pp_node_write_facts(pp_out_json(v->out), "facts", v->node);
		return;
	}
	if (pp_out_width(v->out) < FACTS_WIDTH) {
		facts_stacked(v);
		return;
	}
	pp_out_table(v->out, "facts", columns, PP_ARRAY_LEN(columns));
	pp_objects_foreach (&v->node->facts, o) {
		for (unsigned int i = 0; i < o->n; i++) {
			pp_out_cell(v->out, pp_fact_table[o->facts[i].id].key);
			pp_out_cell(v->out, o->id);
			pp_out_cell(v->out, pp_fact_text(&o->facts[i], text, sizeof(text)));
			pp_out_cell(v->out, o->facts[i].source);
		}
	}
	pp_out_table_end(v->out);
}

int pp_cmd_identity(const struct pp_args *args)
{
	struct pp_session s;
	struct pp_view v;
	int code = pp_session_open(args, false, &s);

	if (code)
		return pp_session_close(&s, code);
	v = PP_VIEW(s.out, s.node);
	pp_out_document(s.out, "peerpath.identity/1");
	pp_out_bool(s.out, "simulated", NULL, pp_node_simulated(s.node));
	if (pp_args_has(args, "facts")) {
		facts_table(&v);
	} else {
		node_section(&v);
		gpu_section(&v);
		hca_section(&v);
		port_section(&v);
		pp_view_unknown(&v);
	}
	return pp_session_close(&s, code);
}
