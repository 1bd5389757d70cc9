/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/draw.h"
#include "cli/output.h"
#include "cli/topo.h"
#include "base/banned.h"

/* The largest machine of the tests takes 1 MiB. */
static const size_t SVG_LIMIT = (size_t)16 << 20;

int pp_topo_svg(const struct pp_session *s, const char *file)
{
	struct pp_buf PP_AUTO_BUF svg = PP_BUF(SVG_LIMIT);
	struct pp_error err = {0};
	int r;

	if (pp_draw_node(s->node, &svg, &err))
		return pp_complain(s->args, PP_EXIT_INTERNAL, "%s", err.text);
	r = pp_output_write(file, &svg, pp_args_has(s->args, "force"), &err);
	if (r)
		return pp_complain(s->args, pp_exit_of_writing(r), "%s", err.text);
	return PP_EXIT_PASS;
}
