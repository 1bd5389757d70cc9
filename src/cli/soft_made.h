/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The /sys of devices that the kernel does not have: as a record, in the shape that the kernel
 * gives it (Documentation/ABI/stable/sysfs-class-infiniband).
 */
#ifndef PP_CLI_SOFT_MADE_H
#define PP_CLI_SOFT_MADE_H

#include "base/error.h"
#include "node/record.h"
#include "node/source.h"
#include "soft/config/config.h"

/*
 * Adds to @record what /sys/class/infiniband and /sys/class/infiniband_verbs lead to. Device i
 * gets a PCI function beside the i-th address of @beside (comma-separated BDFs, NULL: none), on the
 * same bus as it is in @src, with its NUMA node and link; the others lie below
 * /sys/devices/virtual. @src may be NULL without @beside. -EINVAL and a line in @err: no such
 * function, no free number beside it.
 */
int pp_soft_made(const struct soft_config *devices, const char *beside, struct pp_source *src,
		 struct pp_record *record, struct pp_error *err);

#endif
