/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel command line of a scrubbed record: by allow-list, since anything may stand there
 * (passwords of installers, addresses of consoles, arguments of init).
 */
#ifndef PP_BUNDLE_SCRUB_CMDLINE_H
#define PP_BUNDLE_SCRUB_CMDLINE_H

#include "base/buf.h"

/*
 * Appends the parameters that say something of the path (IOMMU, PCI, modules, memory, CPUs,
 * security), in their order, then a line break. Returns the number of those left out.
 */
size_t pp_scrub_cmdline(const char *text, size_t len, struct pp_buf *out);

#endif
