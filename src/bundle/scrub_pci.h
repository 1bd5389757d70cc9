/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI configuration space without serial numbers: private to bundle/.
 */
#ifndef PP_BUNDLE_SCRUB_PCI_H
#define PP_BUNDLE_SCRUB_PCI_H

#include <stddef.h>
#include <stdint.h>

/* Zeroes the number of each Device Serial Number capability, in place. */
void pp_scrub_config(uint8_t *config, size_t len);

#endif
