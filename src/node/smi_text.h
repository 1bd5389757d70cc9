/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of nvidia-smi's matrix: private to smi.c. Text is a range [text, end).
 */
#ifndef PP_NODE_SMI_TEXT_H
#define PP_NODE_SMI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "node/smi.h"

enum { PP_SMI_NAME_BYTES = 64 };

enum { PP_SMI_TITLE_CPU = 1, PP_SMI_TITLE_NUMA = 2, PP_SMI_TITLE_GPU_NUMA = 4 };

/* malloc'ed copy without escapes and carriage returns; other control bytes become blanks. */
char *pp_smi_clean(const char *text, size_t len, size_t *ret_len);

bool pp_smi_starts(const char *text, const char *end, const char *word);
const char *pp_smi_skip_blanks(const char *text, const char *end);
/* Decimal digits at *text, at most @max; moves *text behind them. */
bool pp_smi_number(const char **text, const char *end, unsigned int max, unsigned int *ret);
/* End of the column name at @text, NULL when there is none; its number for GPUN and NICN. */
const char *pp_smi_column_end(const char *text, const char *end, unsigned int *ret_n);
/* A kernel name of an RDMA device, and not a piece of the matrix ("ity", "IX      PIX"). */
bool pp_smi_is_name(const char *text, const char *end);

/* The title of a column of affinity at *text, moved behind it: PP_SMI_TITLE_*, 0 none. */
unsigned int pp_smi_title(const char **text, const char *end);
/* Fills cpus, numa and gpu_numa from what follows a row's cells; @titles are the header's. */
void pp_smi_affinity(struct pp_arena *a, unsigned int titles, const char *text, const char *end,
		     struct pp_smi_dev *d);

#endif
