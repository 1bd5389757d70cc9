/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dma-buf objects and who is attached to them: /sys/kernel/debug/dma_buf/bufinfo.
 *
 * The grammar changed over the kernel's life; columns are found by the header's words (5.3 to 6.12
 * and later, docs/internals/trace.md). An attachment's device is the importer's DMA device: for an
 * hca its PCI function, for mlx5 data-direct another function. The file takes each object's lock,
 * so a hung GPU driver blocks its reader: it is read in a helper with a deadline.
 */
#ifndef PP_TRACE_BUFFER_H
#define PP_TRACE_BUFFER_H

#include "node/ask.h"
#include "trace/surface.h"

enum { PP_BUFFERS_MAX = 1 << 16, PP_BUFFER_TEXT_MAX = 8 << 20 };

struct pp_buffer {
	uint64_t size, inode, count; /* inode 0: this kernel does not show it */
	char exporter[32], name[32]; /* name "" for none */
	uint32_t first, n_attached;  /* into pp_buffers.attached; one a region and device */
};

struct pp_buffers {
	struct pp_buffer *item;
	char (*attached)[48]; /* device names: "0000:3b:00.0" */
	size_t n, n_attached;
	struct pp_surface_report report;
};

/* 0, -EBADMSG (no grammar that is known; @ret is empty), -ENOMEM. Cut text sets `cut`. */
int pp_buffers_parse(const char *text, size_t len, struct pp_buffers *ret);
/* Asks "dma-buf": data {"text"}; -ENOMEM only. */
int pp_buffers_ask(struct pp_source *s, struct pp_answer *ret);
int pp_buffers_read(const struct pp_answer *a, struct pp_buffers *ret);
void pp_buffers_done(struct pp_buffers *b);

/* Does NVIDIA's open driver export under this name? "nvidia" up to 575, "nv_dmabuf" from 580.65.06.
 */
bool pp_exporter_is_nvidia(const char *exporter);

#endif
