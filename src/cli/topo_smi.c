/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `topo --smi FILE`: what a pasted matrix of nvidia-smi says. The matrix is the only witness: no
 * word here claims more than its classes, and a class alone fails nothing.
 */
#include "cli/topo.h"

#include <errno.h>
#include <string.h>

#include "cli/input.h"
#include "cli/session.h"
#include "node/smi.h"
#include "base/banned.h"

enum { LISTED = 32, LIST_BYTES = 64 << 10 };

static void pairs(struct pp_out *o, const struct pp_smi *s)
{
	static const struct pp_out_column columns[] = {
		{"a", NULL, false}, {"b", NULL, false}, {"cell", NULL, false}};
	char text[PP_SMI_CELL_TEXT];

	if (!pp_out_is_json(o))
		return;
	pp_out_table(o, "pairs", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < s->n; i++) {
		for (unsigned int j = i + 1; j < s->n; j++) {
			pp_out_cell(o, s->dev[i].name);
			pp_out_cell(o, s->dev[j].name);
			pp_out_cell(o, pp_smi_cell_text(pp_smi_at(s, i, j), text));
		}
	}
	pp_out_table_end(o);
}

/* Names of the devices of a class seen from a GPU, joined. */
static const char *join(const struct pp_smi *s, unsigned int gpu, enum pp_smi_class class,
			bool gpus, struct pp_buf *b, unsigned int *ret_n)
{
	unsigned int n = 0;

	pp_buf_reset(b);
	for (unsigned int i = 0; i < s->n; i++)
		if (s->dev[i].is_gpu == gpus && pp_smi_at(s, gpu, i).class == class)
			pp_buf_printf(b, "%s%s", n++ ? " " : "", s->dev[i].name);
	if (ret_n)
		*ret_n = n;
	return n ? pp_buf_text(b) : NULL;
}

/* Text only: for each GPU, who is how far. */
static void neighbours(struct pp_out *o, const struct pp_smi *s)
{
	static const struct pp_out_column columns[] = {{NULL, "GPU", false},
						       {NULL, "CLASS", false},
						       {NULL, "GPUS", true},
						       {NULL, "NICS", true}};
	struct pp_buf PP_AUTO_BUF gpus = PP_BUF(LIST_BYTES), PP_AUTO_BUF nics = PP_BUF(LIST_BYTES);
	const char *a, *b;
	char text[PP_SMI_CELL_TEXT];

	if (pp_out_is_json(o))
		return;
	pp_out_heading(o, "Classes that the matrix gives");
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < s->n; i++) {
		for (unsigned int c = PP_SMI_NV; s->dev[i].is_gpu && c <= PP_SMI_SYS; c++) {
			a = join(s, i, c, true, &gpus, NULL);
			b = join(s, i, c, false, &nics, NULL);
			if (!a && !b)
				continue;
			pp_out_cell(o, s->dev[i].name);
			pp_out_cell(o, c == PP_SMI_NV ? "NV#"
						      : pp_smi_cell_text(
								(struct pp_smi_cell){(uint8_t)c, 0},
								text));
			pp_out_cell(o, a);
			pp_out_cell(o, b);
		}
	}
	pp_out_table_end(o);
}

static void affinity(struct pp_out *o, const struct pp_smi *s)
{
	static const struct pp_out_column columns[] = {{"gpu", "GPU", false},
						       {"cpus", "CPU AFFINITY", true},
						       {"numa", "NUMA AFFINITY", false},
						       {"gpu_numa", "GPU NUMA ID", false}};

	pp_out_heading(o, "Affinity");
	pp_out_table(o, "affinity", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < s->n; i++) {
		if (!s->dev[i].is_gpu)
			continue;
		pp_out_cell(o, s->dev[i].name);
		pp_out_cell(o, s->dev[i].cpus);
		pp_out_cell(o, s->dev[i].numa);
		pp_out_cell(o, s->dev[i].gpu_numa);
	}
	pp_out_table_end(o);
}

/* The nearest NICs of each GPU; several equally near ones are no rail yet. */
static void rails(struct pp_out *o, const struct pp_smi *s)
{
	static const struct pp_out_column columns[] = {{"gpu", "GPU", false},
						       {"class", "CLASS", false},
						       {"nics", "NEAREST NICS", true},
						       {"only_one", "ONLY ONE", false}};
	struct pp_buf PP_AUTO_BUF nics = PP_BUF(LIST_BYTES);
	enum pp_smi_class class;
	char text[PP_SMI_CELL_TEXT];
	unsigned int n;

	pp_out_heading(o, "Rails that the classes imply");
	pp_out_table(o, "rails", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < s->n; i++) {
		class = s->dev[i].is_gpu ? pp_smi_nearest(s, i) : PP_SMI_NONE;
		if (class == PP_SMI_NONE)
			continue;
		pp_out_cell(o, s->dev[i].name);
		pp_out_cell(o, pp_smi_cell_text((struct pp_smi_cell){(uint8_t) class, 0}, text));
		pp_out_cell(o, join(s, i, class, false, &nics, &n));
		pp_out_cell_bool(o, n == 1);
	}
	pp_out_table_end(o);
}

static void finding(struct pp_out *o, const char *id, const char *text)
{
	pp_out_cell(o, id);
	pp_out_cell(o, text);
}

static void asymmetry(struct pp_out *o, const struct pp_smi *s)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(LIST_BYTES);
	char one[PP_SMI_CELL_TEXT], other[PP_SMI_CELL_TEXT];
	unsigned int n = 0;

	pp_buf_printf(&b, "%u of the pairs differ by direction:", s->asymmetric);
	for (unsigned int i = 0; i < s->n; i++) {
		for (unsigned int j = i + 1; j < s->n; j++) {
			if (pp_smi_cell_equal(pp_smi_at(s, i, j), pp_smi_at(s, j, i)))
				continue;
			if (n++ < LISTED)
				pp_buf_printf(&b, "%s %s-%s %s/%s", n > 1 ? "," : "",
					      s->dev[i].name, s->dev[j].name,
					      pp_smi_cell_text(pp_smi_at(s, i, j), one),
					      pp_smi_cell_text(pp_smi_at(s, j, i), other));
		}
	}
	finding(o, "asymmetric", pp_buf_text(&b));
}

static void findings(struct pp_out *o, const struct pp_smi *s)
{
	static const struct pp_out_column columns[] = {{"finding", "FINDING", false},
						       {"text", "WHAT", true}};
	unsigned int nics = s->n - s->n_gpus, unnamed = 0, ties = 0, count;
	struct pp_buf PP_AUTO_BUF b = PP_BUF(LIST_BYTES);
	char text[256];

	pp_out_heading(o, "Findings");
	pp_out_table(o, "findings", columns, PP_ARRAY_LEN(columns));
	if (s->asymmetric)
		asymmetry(o, s);
	for (unsigned int i = 0; i < s->n; i++) {
		unnamed += !s->dev[i].named;
		if (!s->dev[i].is_gpu || !nics)
			continue;
		(void)join(s, i, pp_smi_nearest(s, i), false, &b, &count);
		ties += count > 1;
	}
	if (s->nics_found > nics) {
		(void)snprintf(text, sizeof(text),
			       "%u of %u NICs are not in the matrix: the driver "
			       "shows no more",
			       s->nics_found - nics, s->nics_found);
		finding(o, "nics-not-shown", text);
	}
	if (unnamed) {
		(void)snprintf(text, sizeof(text),
			       "%u NICs have no name in the legend%s: they stay NICn here", unnamed,
			       s->legend_scraps
				       ? ", which holds pieces of the matrix instead (known "
					 "of drivers R535 and R550 above about 56 NICs)"
				       : "");
		finding(o, "nics-without-name", text);
	}
	if (!nics)
		finding(o, "no-nic",
			"no NIC in the matrix: nothing can be said of GPU to NIC paths");
	if (ties) {
		(void)snprintf(text, sizeof(text),
			       "%u GPUs have several NICs equally near: the matrix alone does not "
			       "name their rails",
			       ties);
		finding(o, "ties", text);
	}
	pp_out_table_end(o);
}

static void document(struct pp_out *o, const char *file, const struct pp_smi *s)
{
	pp_out_document(o, "peerpath.topo-smi/1");
	pp_out_str(o, "file", "matrix", pp_input_name(file));
	pp_out_u64(o, "gpus", "GPUs", s->n_gpus);
	pp_out_u64(o, "nics", "NICs", s->n - s->n_gpus);
	pairs(o, s);
	neighbours(o, s);
	affinity(o, s);
	rails(o, s);
	findings(o, s);
}

int pp_topo_smi(const struct pp_args *args, const char *file)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_SMI_MAX_BYTES);
	struct pp_error err = {0};
	struct pp_session session;
	struct pp_smi smi;
	int code = pp_session_open_output(args, &session);

	if (code)
		return pp_session_close(&session, code);
	if (pp_input_read(file, &text, &err) ||
	    pp_smi_parse(pp_input_name(file), pp_buf_text(&text), text.len, &smi, &err))
		return pp_session_close(
			&session,
			pp_complain(args, err.code == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
				    "%s", err.text));
	document(session.out, file, &smi);
	/* What was read is shown, and refused as input for anything else. */
	if (smi.asymmetric && !pp_out_finish(session.out))
		code = pp_complain(args, PP_EXIT_INPUT,
				   "%s: the two directions of %u pairs contradict each other",
				   pp_input_name(file), smi.asymmetric);
	else if (smi.asymmetric)
		code = PP_EXIT_INTERNAL;
	pp_smi_done(&smi);
	return pp_session_close(&session, code);
}
