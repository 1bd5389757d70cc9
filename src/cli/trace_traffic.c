/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace --traffic: what ports, GPUs and memory controllers carried in one window.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "cli/trace_show.h"
#include "base/banned.h"

static const pp_ns WINDOW = 2 * PP_SECOND, WINDOW_LEAST = 100 * PP_MILLISECOND;

int pp_trace_traffic_check(const struct pp_args *args, pp_ns *ret)
{
	const char *text = pp_args_get(args, "traffic");
	pp_ns window = WINDOW;

	if (!pp_args_has(args, "traffic"))
		return 0;
	if (text && (pp_parse_duration(text, 600 * PP_SECOND, &window) || window < WINDOW_LEAST))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--traffic does not take '%s': a time from 100ms to 10 minutes",
				   text);
	*ret = window;
	return 0;
}

static void row(struct pp_out *o, const char *what, const char *who, bool known, double out,
		double in, const char *why)
{
	pp_out_cell(o, what);
	pp_out_cell(o, who);
	if (known) {
		pp_out_cellf(o, "%.1f", out / (1 << 20));
		pp_out_cellf(o, "%.1f", in / (1 << 20));
		pp_out_cell(o, why);
	} else {
		pp_out_cell(o, NULL);
		pp_out_cell(o, NULL);
		pp_out_cellf(o, "unknown: %s", why);
	}
}

void pp_trace_traffic_show(struct pp_out *o, const struct pp_traffic *t)
{
	static const struct pp_out_column columns[] = {
		{NULL, "WITNESS", true}, {NULL, "OF", true}, {NULL, "OUT MIB", false},
		{NULL, "IN MIB", false}, {NULL, "", true},
	};
	enum pp_traffic_sign sign;
	char text[96], why[256];

	(void)snprintf(text, sizeof(text), "Traffic in %.1f s", (double)t->window / 1e9);
	pp_out_heading(o, text);
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < t->n_ports; i++) {
		const struct pp_traffic_port *p = &t->port[i];

		(void)snprintf(text, sizeof(text), "%s/%u", p->hca, p->port);
		row(o, "port", text, true, (double)p->sent, (double)p->received,
		    p->simulated ? "simulated" : "");
	}
	if (!t->n_ports)
		row(o, "port", "", false, 0, 0, t->why_ports);
	for (unsigned int i = 0; i < t->n_gpus; i++) {
		const struct pp_traffic_gpu *g = &t->gpu[i];

		row(o, "GPU's PCIe", g->bdf, g->known, g->sent, g->received,
		    !g->known	 ? g->why
		    : g->sampled ? "sampled"
				 : "");
	}
	if (!t->n_gpus)
		row(o, "GPU's PCIe", "", false, 0, 0, t->why_gpus);
	row(o, "host memory", "node", t->host.known, t->host.read, t->host.written, t->host.why);
	if (t->host.io_known)
		row(o, "I/O stacks", "node", true, t->host.io_out, t->host.io_in, "");
	pp_out_table_end(o);
	sign = pp_traffic_judge(t, why, sizeof(why));
	pp_out_para(o, 0, "Path of the bytes: %s; %s.", pp_traffic_sign_name(sign), why);
}
