/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath topo: a dispatcher; each part of the picture has a file of its own (topo_*.c).
 */
#include "cli/topo.h"

#include <string.h>

#include "base/banned.h"

/* An option that would be ignored is refused: its user would believe that it was heeded. */
static int refuse_ignored(const struct pp_args *args)
{
	static const struct {
		const char *option, *excludes[9];
	} jobs[] = {
		{"smi",
		 {"nccl-xml", "svg", "expect", "expect-write", "device", "force", "replay",
		  "root"}},
		{"nccl-xml",
		 {"svg", "expect", "expect-write", "device", "force", "replay", "root"}},
		{"expect", {"svg", "expect-write", "device", "force"}},
		{"svg", {"device"}},
		{"expect-write", {"device"}},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(jobs); i++)
		for (const char *const *e = jobs[i].excludes; *e; e++)
			if (pp_args_has(args, jobs[i].option) && pp_args_has(args, *e))
				return pp_complain(args, PP_EXIT_USAGE, "--%s excludes --%s",
						   jobs[i].option, *e);
	if (pp_args_has(args, "force") && !pp_args_has(args, "svg") &&
	    !pp_args_has(args, "expect-write"))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--force is for --svg and --expect-write: nothing is written");
	return 0;
}

/* A drawing or a layout that goes to standard output stands there alone. */
static int refuse_mixture(const struct pp_args *args)
{
	const char *svg = pp_args_get(args, "svg"), *layout = pp_args_get(args, "expect-write");
	bool drawn = svg && !strcmp(svg, "-"), written = layout && !strcmp(layout, "-");

	if (drawn && written)
		return pp_complain(args, PP_EXIT_USAGE,
				   "--svg and --expect-write: only one of them can be -");
	if ((drawn || written) && pp_args_has(args, "json"))
		return pp_complain(args, PP_EXIT_USAGE, "--%s - excludes --json",
				   drawn ? "svg" : "expect-write");
	return 0;
}

/* Says what was written, unless that went to standard output. */
static int write_files(struct pp_session *s)
{
	const char *svg = pp_args_get(s->args, "svg");
	const char *layout = pp_args_get(s->args, "expect-write");
	int code = svg ? pp_topo_svg(s, svg) : 0;

	if (!code && layout)
		code = pp_topo_expect_write(s, layout);
	if (code || (svg && !strcmp(svg, "-")) || (layout && !strcmp(layout, "-")))
		return code;
	pp_out_document(s->out, "peerpath.topo-written/1");
	pp_out_str(s->out, "svg", svg ? "drawing" : NULL, svg);
	pp_out_str(s->out, "layout", layout ? "layout" : NULL, layout);
	return 0;
}

static void write_all(const struct pp_session *s, const struct pp_topo *t,
		      const struct pp_topo *shown)
{
	struct pp_view v = PP_VIEW(s->out, s->node);

	pp_out_document(s->out, "peerpath.topo/1");
	if (!t->n)
		pp_out_para(s->out, 2, "  %s",
			    s->node->pci.why ? s->node->pci.why
					     : "No GPU and no hca on the PCI bus.");
	pp_topo_rails(&v, t);
	pp_topo_matrix(s->out, shown);
	pp_topo_routes(&v);
	pp_topo_choices(&v, t);
	pp_topo_links(&v);
	pp_topo_pinning(&v, t);
	pp_topo_json(s->out, t);
	pp_view_unknown(&v);
}

int pp_cmd_topo(const struct pp_args *args)
{
	struct pp_topo PP_CLEANUP(pp_topo_done) t = {0}, PP_CLEANUP(pp_topo_done) shown = {0};
	struct pp_session s;
	int code;

	code = refuse_ignored(args);
	if (!code)
		code = refuse_mixture(args);
	if (code)
		return code;
	if (pp_args_has(args, "smi"))
		return pp_topo_smi(args, pp_args_get(args, "smi"));
	if (pp_args_has(args, "nccl-xml"))
		return pp_topo_nccl_xml(args, pp_args_get(args, "nccl-xml"));
	code = pp_session_open(args, false, &s);
	if (!code && (pp_args_has(args, "svg") || pp_args_has(args, "expect-write")))
		return pp_session_close(&s, write_files(&s));
	if (!code && pp_args_has(args, "expect"))
		return pp_session_close(&s, pp_topo_expect(&s, pp_args_get(args, "expect")));
	if (!code)
		code = pp_topo_members(&s, &t);
	if (!code && pp_topo_shown(&t, &shown))
		code = pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	if (!code) {
		write_all(&s, &t, &shown);
		code = s.node->pci.why ? PP_EXIT_UNKNOWN : PP_EXIT_PASS;
	}
	return pp_session_close(&s, code);
}
