/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of an RDMA port's attributes (Documentation/ABI/stable/sysfs-class-infiniband). Pure.
 */
#ifndef PP_NODE_PORT_TEXT_H
#define PP_NODE_PORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* "4: ACTIVE" -> "ACTIVE", "5: LinkUp" -> "LinkUp". -EINVAL, and -EFBIG when @size is too small. */
int pp_port_state_parse(const char *text, char *ret, size_t size);

/* "400 Gb/sec (4X NDR)" -> 400000, "2.5 Gb/sec (1X SDR)" -> 2500. -EINVAL, -ERANGE. */
int pp_port_rate_parse(const char *text, int64_t *ret_mbps);

#endif
