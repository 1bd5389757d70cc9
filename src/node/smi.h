/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_smi: the matrix that `nvidia-smi topo -m` prints, read from text that people paste.
 *
 * Owns the parse only: it judges nothing but whether the matrix is whole and agrees with itself.
 * Reads what drivers R418 to R580 print and what terminals, logs and mailers make of it: escape
 * sequences (also with the ESC lost or replaced), tabs or blanks, glued cells and headers, log
 * prefixes, columns named mlx5_N, scraps of the matrix in place of NIC names.
 */
#ifndef PP_NODE_SMI_H
#define PP_NODE_SMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum {
	PP_SMI_MAX_COLUMNS = 512,
	PP_SMI_MAX_BYTES = 4 << 20,
	PP_SMI_CELL_TEXT = 8, /* bytes that hold any cell */
};

/* From near to far, except that NV says nothing of PCIe. */
enum pp_smi_class {
	PP_SMI_NONE, /* not read */
	PP_SMI_SELF,
	PP_SMI_NV,
	PP_SMI_PIX,
	PP_SMI_PXB,
	PP_SMI_PHB,
	PP_SMI_NODE,
	PP_SMI_SYS, /* old drivers: SOC */
};

struct pp_smi_cell {
	uint8_t class;	 /* enum pp_smi_class */
	uint8_t nvlinks; /* of PP_SMI_NV */
};

struct pp_smi_dev {
	const char *column; /* as in the header: "GPU0", "NIC3", "mlx5_0" */
	const char *name;   /* of a NIC by the legend ("mlx5_3"); else the column */
	bool is_gpu;
	bool named;	      /* the legend, or the column itself, gives a NIC's name */
	unsigned int index;   /* N of GPUN and NICN; 0 for other columns */
	unsigned int line;    /* where its row stands; 0 no row */
	const char *cpus;     /* CPU Affinity; NULL: empty, or no such column */
	const char *numa;     /* NUMA Affinity */
	const char *gpu_numa; /* GPU NUMA ID */
};

struct pp_smi {
	struct pp_arena arena;
	struct pp_smi_dev *dev; /* in the order of the columns */
	unsigned int n, n_gpus;
	struct pp_smi_cell *cell;   /* cell[row * n + column] */
	unsigned int nics_found;    /* "N NICs found ...", 0 when not said */
	unsigned int nics_shown;    /* "... only displaying M" */
	unsigned int legend_scraps; /* legend lines that hold no name */
	unsigned int asymmetric;    /* pairs whose two cells differ */
};

/*
 * @name is what messages call the text. 0, or with one line in @err: -EBADMSG (no matrix, cut,
 * contradictory), -EFBIG (over the limits above), -ENOMEM. An asymmetric matrix is read: see
 * .asymmetric. pp_smi_done() frees on success.
 */
int pp_smi_parse(const char *name, const char *text, size_t len, struct pp_smi *ret,
		 struct pp_error *err);
void pp_smi_done(struct pp_smi *s);

static inline struct pp_smi_cell pp_smi_at(const struct pp_smi *s, unsigned int row,
					   unsigned int column)
{
	return s->cell[(size_t)row * s->n + column];
}

bool pp_smi_cell_equal(struct pp_smi_cell a, struct pp_smi_cell b);
/* "PIX", "NV18", "X"; returns @text. */
const char *pp_smi_cell_text(struct pp_smi_cell c, char text[PP_SMI_CELL_TEXT]);
/* Reads one cell at *text and moves *text behind it; false when there is none. */
bool pp_smi_cell_scan(const char **text, const char *end, struct pp_smi_cell *ret);

/* Class of the NIC nearest to a GPU; PP_SMI_NONE without NICs. */
enum pp_smi_class pp_smi_nearest(const struct pp_smi *s, unsigned int gpu);

#endif
