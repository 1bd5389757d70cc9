/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix in nvidia-smi's look: what people compare with, and paste.
 */
#include <string.h>

#include "base/buf.h"
#include "cli/topo.h"
#include "base/banned.h"

/* Above this the columns are the GPUs only: cells between NICs are in --json. */
enum { MAX_COLUMNS = 64, MAX_CELLS = 1 << 17, MAX_TEXT = 8 << 20 };

static const char *const legend[] = {
	"  X    = Self",
	"  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes",
	("  NODE = Connection traversing PCIe and the interconnect between host bridges of a NUMA "
	 "node"),
	"  PHB  = Connection traversing PCIe as well as a PCIe host bridge (typically the CPU)",
	"  PXB  = Connection traversing multiple PCIe bridges (and no host bridge)",
	"  PIX  = Connection traversing at most a single PCIe bridge",
	"  NV#  = Connection traversing a bonded set of # NVLinks",
};
enum { LEGEND_INDENT = 9 };

static void row(struct pp_buf *b, const struct pp_topo *t, unsigned int a, unsigned int columns)
{
	const struct pp_topo_member *m = &t->members[a];
	const struct pp_pci_dev *d = &t->node->pci.dev[m->pci];
	char cell[PP_TOPO_NAME];

	pp_buf_printf(b, "%-8s", m->name);
	for (unsigned int i = 0; i < columns; i++)
		pp_buf_printf(b, "%-8s", a == i ? " X" : pp_topo_cell(t, a, i, cell));
	if (a < t->gpus) {
		pp_buf_printf(b, "%-15s ", d->local_cpus ? d->local_cpus : "unknown");
		if (d->numa == PP_UNREADABLE)
			pp_buf_str(b, "unknown");
		else if (d->numa < 0 && t->node->pci.online_nodes != 1)
			pp_buf_str(b, "N/A");
		else
			pp_buf_printf(b, "%d",
				      d->numa < 0 ? 0 : d->numa); /* one node: all is near it */
	}
	while (b->len && b->data[b->len - 1] == ' ')
		b->data[--b->len] = '\0';
	pp_buf_char(b, '\n');
}

static void names(struct pp_buf *b, const struct pp_topo *t)
{
	const struct pp_topo_member *m;
	char id[PP_BDF_TEXT];

	if (t->nics)
		pp_buf_str(b, "\nNIC Legend:\n\n");
	for (m = t->members + t->gpus; m < t->members + t->gpus + t->nics; m++)
		pp_buf_printf(b, "  %s: %s\n", m->name,
			      m->o->name ? m->o->name : "(no RDMA device)");
	/* Not in nvidia-smi's legend, where names hide which device is meant. */
	pp_buf_str(b, "\nAddresses:\n\n");
	for (m = t->members; m < t->members + t->n; m++)
		pp_buf_printf(b, "  %s=%s%s", m->name,
			      pp_bdf_format(&t->node->pci.dev[m->pci].bdf, id),
			      (m - t->members) % 4 == 3 || m == t->members + t->n - 1 ? "\n" : "");
}

void pp_topo_matrix(struct pp_out *o, const struct pp_topo *t)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(MAX_TEXT), PP_AUTO_BUF after = PP_BUF(MAX_TEXT);
	unsigned int columns = t->n > MAX_COLUMNS ? t->gpus : t->n;

	if (pp_out_is_json(o) || !t->n)
		return;
	pp_out_heading(o, "Matrix");
	if ((uint64_t)columns * t->n > MAX_CELLS) {
		pp_out_raw(o, "too many members: no matrix\n");
		return;
	}
	pp_buf_printf(&b, "%8s", "");
	for (unsigned int i = 0; i < columns; i++)
		pp_buf_printf(&b, "%-8s", t->members[i].name);
	pp_buf_str(&b, "CPU Affinity    NUMA Affinity\n");
	for (unsigned int i = 0; i < t->n; i++)
		row(&b, t, i, columns);
	if (columns < t->n)
		pp_buf_str(&b, "(more than 64 members: cells between NICs are in --json)\n");
	names(&after, t);
	if (t->left_out)
		pp_buf_printf(&b,
			      "(%u virtual functions that are no rail are left out: --json has "
			      "all, --device adds one)\n",
			      t->left_out);
	pp_out_raw(o, b.failed ? "matrix: too large for text; use --json\n" : pp_buf_text(&b));
	pp_out_raw(o, "\nLegend:\n\n");
	for (size_t i = 0; i < PP_ARRAY_LEN(legend); i++)
		pp_out_para(o, LEGEND_INDENT, "%s", legend[i]);
	pp_out_raw(o, pp_buf_text(&after));
}
