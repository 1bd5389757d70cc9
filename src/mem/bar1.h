/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_bar1: how much of a GPU's BAR1 window is used, by NVML.
 *
 * Memory that an RDMA NIC reaches lies in BAR1; one that does not cover the GPU's memory is a
 * budget. Without NVML nothing is known, which is no error.
 */
#ifndef PP_MEM_BAR1_H
#define PP_MEM_BAR1_H

#include <stdint.h>

#include "base/bdf.h"
#include "node/nvml_call.h"

struct pp_bar1 {
	void *library;
	nvml_device device; /* NULL: not known */
	int (*read)(nvml_device device, struct nvml_memory *ret);
};

void pp_bar1_open(const struct pp_bdf *gpu, struct pp_bar1 *ret);
void pp_bar1_close(struct pp_bar1 *b);

/* Bytes; -1 unknown. Either may be NULL. */
void pp_bar1_read(const struct pp_bar1 *b, int64_t *ret_total, int64_t *ret_used);

#endif
