/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an hca object owes to its PCI function: driver, place, provider; and the functions that
 * should carry an RDMA device and do not.
 */
#ifndef PP_NODE_HCA_PCI_H
#define PP_NODE_HCA_PCI_H

#include "node/hca.h"

/* PCI facts of every hca object that is in the PCI tree. */
void pp_hca_set_pci(struct pp_node *n);

/* Driver facts of a device that has no PCI function (rxe, siw). */
void pp_hca_set_software_driver(struct pp_hca *h);

/*
 * hca.rdma_device of the functions without one, and their list. @why not "": it cannot be known
 * which lack one.
 */
void pp_hca_set_missing(struct pp_node *n, const char *why);

#endif
