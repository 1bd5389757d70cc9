/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI configuration space: capabilities and the fields that paths need. Pure functions over bytes
 * of any length; a list that leaves the bytes, loops or reads all ones is "unreadable", never
 * "absent".
 */
#ifndef PP_NODE_PCI_CONFIG_H
#define PP_NODE_PCI_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "node/pci.h"

enum { PP_CONFIG_HEADER = 64, PP_CONFIG_CONVENTIONAL = 256, PP_CONFIG_BYTES = 4096 };

/* Classic capability: offset or 0; -1 when the list leaves the bytes that could be read. */
int pp_pci_cap(const uint8_t *config, size_t len, uint8_t id);
/* Extended capability: offset or 0; -1 when @len < 4096, on all ones and after 480 steps. */
int pp_pci_ext_cap(const uint8_t *config, size_t len, uint16_t id);

/*
 * Fills what the bytes tell: ids, class, port type, ACS, ATS, link speed and width. Ids of a VF
 * read ffff, which tells that it is one, and are left alone, as is all that the bytes do not reach.
 */
void pp_pci_decode(struct pp_pci_dev *d, const uint8_t *config, size_t len);

#endif
