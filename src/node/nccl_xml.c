/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements come from expat one by one; the open ones lie on a stack of bounded depth. A device's
 * kind is only certain when it ends (what stands in it decides), so devices are put into the graph
 * after the last element, in the order of the file.
 */
#include "node/nccl_xml.h"

#include <errno.h>
#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bdf.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "node/nccl_draft.h"
#include "base/banned.h"

enum { MAX_ATTRIBUTES = 32, MAX_VALUE = 255, MAX_XML_DEPTH = 72, MAX_NETS_TEXT = 4096 };

enum element { OTHER, SYSTEM, CPU, PCI, GPU, NIC, NET, C2C };

struct open {
	enum element element;
	int draft; /* the vertex that it is or lies in, -1 none */
};

struct parser {
	const char *name;
	struct pp_error *err;
	struct pp_nccl_xml *x;
	XML_Parser xml;
	struct open stack[MAX_XML_DEPTH];
	unsigned int depth;
	struct pp_nccl_draft *draft; /* owned */
	unsigned int n, cap;
	int failed;
};

static const char *const element_names[] = {
	[SYSTEM] = "system", [CPU] = "cpu", [PCI] = "pci", [GPU] = "gpu",
	[NIC] = "nic",	     [NET] = "net", [C2C] = "c2c",
};

static PP_PRINTF(3, 4) void stop(struct parser *p, int code, const char *fmt, ...)
{
	unsigned long line = XML_GetCurrentLineNumber(p->xml);
	char what[256];
	va_list ap;

	if (p->failed)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	p->failed = pp_error_set(p->err, code, "%s:%lu: %s", p->name, line, what);
	(void)XML_StopParser(p->xml, XML_FALSE);
}

static enum element element_of(const char *name)
{
	for (unsigned int i = SYSTEM; i < PP_ARRAY_LEN(element_names); i++)
		if (!strcmp(name, element_names[i]))
			return i;
	return OTHER;
}

/* Value of an attribute, NULL if absent. expat refuses an attribute that stands twice. */
static const char *get(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (!strcmp(attributes[0], name))
			return attributes[1];
	return NULL;
}

static uint64_t get_hex(const char **attributes, const char *name, uint64_t max)
{
	const char *text = get(attributes, name);
	uint64_t v = 0;

	return text && !pp_parse_hex(text, max, &v) ? v : 0;
}

static uint64_t get_number(const char **attributes, const char *name, uint64_t max)
{
	const char *text = get(attributes, name);
	uint64_t v = 0;

	return text && !pp_parse_u64(text, 0, max, &v) ? v : 0;
}

static int8_t get_gdr(const char **attributes)
{
	const char *text = get(attributes, "gdr");
	uint64_t v;

	return text && !pp_parse_u64(text, 0, 1, &v) ? (int8_t)v : -1;
}

static int add_draft(struct parser *p, const struct pp_nccl_draft *d)
{
	struct pp_nccl_draft *grown;
	unsigned int cap;

	if (p->n == PP_NCCL_MAX_NODES) {
		stop(p, -EFBIG, "more than %d devices", PP_NCCL_MAX_NODES);
		return -1;
	}
	if (p->n == p->cap) {
		cap = p->cap ? p->cap * 2 : 64;
		grown = reallocarray(p->draft, cap, sizeof(*grown));
		if (!grown) {
			stop(p, -ENOMEM, "out of memory");
			return -1;
		}
		p->draft = grown;
		p->cap = cap;
	}
	p->draft[p->n] = *d;
	return (int)p->n++;
}

static int begin_cpu(struct parser *p, const char **attributes)
{
	const char *numa = get(attributes, "numaid");
	struct pp_nccl_draft d = {.node = {.kind = PP_NCCL_CPU, .parent = -1}};

	d.node.id = pp_arena_printf(&p->x->graph.arena, "numa%s", numa ? numa : "?");
	if (!numa || *numa == '-')
		pp_nccl_odd_add(p->x, PP_NCCL_ODD_NUMA, d.node.id);
	return add_draft(p, &d);
}

static int begin_pci(struct parser *p, const char **attributes, int parent)
{
	struct pp_arena *a = &p->x->graph.arena;
	const char *id = get(attributes, "busid"), *speed = get(attributes, "link_speed");
	struct pp_nccl_draft d = {
		.node = {.kind = PP_NCCL_SWITCH, .parent = parent, .gdr = -1},
		.is_pci = true,
	};
	struct pp_bdf bdf;

	d.node.id = pp_arena_str(a, id ? id : "");
	if (!id || strlen(id) != 12 || pp_bdf_parse_kernel(id, &bdf))
		pp_nccl_odd_add(p->x, PP_NCCL_ODD_BUSID, d.node.id);
	d.node.device = get_hex(attributes, "vendor", 0xffff) << 48 |
			get_hex(attributes, "device", 0xffff) << 32 |
			get_hex(attributes, "subsystem_vendor", 0xffff) << 16 |
			get_hex(attributes, "subsystem_device", 0xffff);
	d.class_code = (unsigned int)get_hex(attributes, "class", 0xffffff);
	d.speed = speed ? pp_arena_str(a, speed) : NULL;
	d.width =
		get(attributes, "link_width") ? (int)get_number(attributes, "link_width", 255) : -1;
	if (parent >= 0)
		p->draft[parent].has_pci = true;
	return add_draft(p, &d);
}

/* <nic>: under a CPU it is a vertex of its own, else it says what its PCI device is. */
static int begin_nic(struct parser *p, int in)
{
	struct pp_nccl_draft d = {.node = {.kind = PP_NCCL_NIC,
					   .parent = in,
					   .gdr = -1,
					   .link_gbytes = PP_NCCL_UNLIMITED,
					   .net_gbytes = pp_nccl_net(0)}};
	const char *numa;

	if (in < 0)
		return -1;
	if (p->draft[in].node.kind != PP_NCCL_CPU) {
		p->draft[in].has_nic = true;
		return in;
	}
	numa = p->draft[in].node.id;
	numa += strncmp(numa, "numa", 4) ? 0 : 4;
	d.node.id = pp_arena_printf(&p->x->graph.arena, "cpu%s", numa);
	pp_nccl_odd_add(p->x, PP_NCCL_ODD_NIC_ON_CPU, d.node.id);
	return add_draft(p, &d);
}

static void add_net(struct parser *p, const char **attributes, int in)
{
	const char *name = get(attributes, "name");
	double gbytes = pp_nccl_net(get_number(attributes, "speed", INT32_MAX));
	struct pp_nccl_node *n;
	int8_t gdr = get_gdr(attributes);

	if (in < 0 || p->draft[in].node.kind == PP_NCCL_CPU)
		return;
	n = &p->draft[in].node;
	if (n->kind != PP_NCCL_NIC && gbytes > n->net_gbytes)
		n->net_gbytes = gbytes;
	if (gdr >= 0 && gdr > n->gdr)
		n->gdr = gdr;
	if (!name || !*name || (n->nets && strlen(n->nets) > MAX_NETS_TEXT))
		return;
	n->nets = n->nets ? pp_arena_printf(&p->x->graph.arena, "%s,%s", n->nets, name)
			  : pp_arena_str(&p->x->graph.arena, name);
}

/* The vertex that an element is or lies in; -1 none. */
static int begin(struct parser *p, enum element e, const char **attributes, enum element outer,
		 int in)
{
	switch (e) {
	case CPU:
		return outer == SYSTEM ? begin_cpu(p, attributes) : in;
	case PCI:
		if (in >= 0 && (outer == CPU || outer == PCI))
			return begin_pci(p, attributes, in);
		pp_nccl_odd_add(p->x, PP_NCCL_ODD_MISPLACED,
				pp_arena_str(&p->x->graph.arena, element_names[e]));
		return -1;
	case NIC:
		return outer == PCI || outer == CPU ? begin_nic(p, in) : in;
	case GPU:
		if (in >= 0 && outer == PCI) {
			p->draft[in].has_gpu = true;
			p->draft[in].node.gdr = get_gdr(attributes);
		}
		return in;
	case NET:
		add_net(p, attributes, in);
		return in;
	case C2C:
		if (in >= 0)
			p->draft[in].node.c2c = true;
		return in;
	case OTHER:
	case SYSTEM:
		break;
	}
	return in;
}

static void take_version(struct parser *p, const char **attributes)
{
	const char *text = get(attributes, "version");

	p->x->version = (unsigned int)get_number(attributes, "version", 1000000);
	if (p->x->version != 1)
		pp_nccl_odd_add(p->x, PP_NCCL_ODD_VERSION,
				pp_arena_str(&p->x->graph.arena, text && *text ? text : "none"));
}

static void XMLCALL on_start(void *arg, const char *name, const char **attributes)
{
	struct parser *p = arg;
	struct open *outer = p->depth ? &p->stack[p->depth - 1] : NULL;
	enum element e = element_of(name);
	unsigned int n = 0;
	int in;

	for (; attributes[n]; n += 2) {
		if (n / 2 == MAX_ATTRIBUTES)
			return stop(p, -EFBIG, "an element has more than %d attributes",
				    MAX_ATTRIBUTES);
		if (strlen(attributes[n]) > MAX_VALUE || strlen(attributes[n + 1]) > MAX_VALUE)
			return stop(p, -EFBIG, "an attribute is longer than %d bytes", MAX_VALUE);
	}
	if (p->x->graph.arena.failed)
		return stop(p, -EFBIG, "too many devices and names");
	if (p->depth == MAX_XML_DEPTH)
		return stop(p, -EFBIG, "elements lie more than %d deep", MAX_XML_DEPTH);
	if (!outer && e != SYSTEM)
		return stop(p, -EBADMSG,
			    "no NCCL topology: the outermost element is '%.40s', not 'system'",
			    name);
	if (!outer)
		take_version(p, attributes);
	in = outer ? begin(p, e, attributes, outer->element, outer->draft) : -1;
	p->stack[p->depth++] = (struct open){e, in};
}

static void XMLCALL on_end(void *arg, const char *name)
{
	struct parser *p = arg;

	(void)name;
	if (!p->failed && p->depth)
		p->depth--;
}

static void XMLCALL on_doctype(void *arg, const char *name, const char *system_id,
			       const char *public_id, int has_subset)
{
	(void)name, (void)system_id, (void)public_id, (void)has_subset;
	stop(arg, -EBADMSG, "a document type is refused: NCCL's files have none");
}

static void read_all(struct parser *p, const char *text, size_t len)
{
	XML_SetUserData(p->xml, p);
	XML_SetElementHandler(p->xml, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(p->xml, on_doctype);
	if (XML_Parse(p->xml, text, (int)len, XML_TRUE) != XML_STATUS_OK)
		stop(p, -EBADMSG, "%s", XML_ErrorString(XML_GetErrorCode(p->xml)));
}

int pp_nccl_xml_parse(const char *name, const char *text, size_t len, struct pp_nccl_xml *ret,
		      struct pp_error *err)
{
	struct pp_nccl_xml x = {.version = 0};
	struct parser p = {.name = name, .err = err, .x = &x};
	int r;

	if (len > PP_NCCL_XML_MAX_BYTES)
		return pp_error_set(err, -EFBIG, "%s: longer than %d MiB", name,
				    PP_NCCL_XML_MAX_BYTES >> 20);
	p.xml = XML_ParserCreate(NULL);
	if (!p.xml)
		return pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	pp_nccl_graph_init(&x.graph);
	read_all(&p, text, len);
	XML_ParserFree(p.xml);
	r = p.failed;
	if (!r) {
		r = pp_nccl_drafts_build(&x, p.draft, p.n);
		if (!r && x.graph.arena.failed)
			r = -E2BIG;
		if (r == -E2BIG)
			r = pp_error_set(
				err, -EFBIG,
				"%s: more than %d pairs of GPU and NIC, deeper than %d, or too "
				"many names",
				name, PP_NCCL_MAX_PAIRS, PP_NCCL_MAX_DEPTH);
		else if (r)
			r = pp_error_set(err, r, "%s: out of memory", name);
	}
	free(p.draft);
	if (r)
		pp_nccl_xml_done(&x);
	else
		*ret = x;
	return r;
}

void pp_nccl_xml_done(struct pp_nccl_xml *x)
{
	pp_nccl_graph_done(&x->graph);
}
