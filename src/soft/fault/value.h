/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of faults: the parsers that the table of nouns names. All take the value without its
 * "@WHEN", return 0 or -EINVAL, and write into the spec on success only.
 */
#ifndef SOFT_FAULT_VALUE_H
#define SOFT_FAULT_VALUE_H

#include "soft/fault/spec.h"

typedef int soft_fault_value(char *value, struct soft_fault_spec *spec);

soft_fault_value soft_fault_value_error, soft_fault_value_packets, soft_fault_value_delay,
	soft_fault_value_address, soft_fault_value_bandwidth, soft_fault_value_seed,
	soft_fault_value_port, soft_fault_value_gid, soft_fault_value_qp, soft_fault_value_device,
	soft_fault_value_time, soft_fault_value_depth;

/* One part of a WHEN, into @when. -EEXIST: it says what an earlier part has said. */
int soft_fault_when_parse(char *text, struct soft_fault_when *when);
/* "1%", "0.5%", "250ppm". */
int soft_fault_share_parse(const char *text, uint32_t *ret_ppm);
/* "any", "ack", "write_first", several joined by "|"; "": any. */
int soft_fault_which_parse(char *text, struct soft_fault_which *ret);

#endif
