/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a machine: NUMA nodes, host bridges, switches, GPUs, hcas, the links between
 * them, each rail in a colour of its own, and whatever is wrong in red where it is wrong.
 *
 * hcas that are no rail and have no fault are counted, not drawn, so that a machine with 40 of
 * them stays legible. What could not be read is said in grey, never drawn as healthy.
 */
#ifndef PP_BUNDLE_DRAW_H
#define PP_BUNDLE_DRAW_H

#include "base/buf.h"
#include "base/error.h"
#include "node/node.h"

/* Appends one SVG document. -ENOMEM, -EFBIG (@out is full, or the machine is too large). */
int pp_draw_node(const struct pp_node *node, struct pp_buf *out, struct pp_error *err);

/* The same as a part of a page, whose style sheet has what pp_draw_style() writes, once. */
int pp_draw_node_in_page(const struct pp_node *node, struct pp_buf *out, struct pp_error *err);
void pp_draw_style(struct pp_buf *out);

#endif
