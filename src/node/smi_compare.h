/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia-smi as a second witness of this machine's distances. No fact needs it; where it exists, a
 * disagreement with the PCI tree is worth knowing.
 */
#ifndef PP_NODE_SMI_COMPARE_H
#define PP_NODE_SMI_COMPARE_H

#include "node/ask.h"
#include "node/node.h"

/*
 * Question "nvidia-smi": finds it in PATH and runs `nvidia-smi topo -m`. Data: "path", absent when
 * PATH has none, and "text", what it printed.
 */
extern const struct pp_question pp_smi_question;

/* Starts the question and goes on; not where running the tool would load a kernel module. */
void pp_smi_ahead(struct pp_node *n);

/* Asks, and sets nvidia_smi.path and nvidia_smi.matrix_differences. Distances must be known. */
void pp_smi_compare(struct pp_node *n);

#endif
