/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_fault_request: what `peerpath soft fault` tells a running process, as one line of
 * text:
 *
 *   fault DEVICE SPEC...     sets and takes away, in order
 *   fault DEVICE clear       takes away all
 *
 * DEVICE is a name, or * for every device that the process has open. Pure; what is written here is
 * read by another process, which believes none of it.
 */
#ifndef SOFT_FAULT_REQUEST_H
#define SOFT_FAULT_REQUEST_H

#include "soft/fault/spec.h"

enum { SOFT_FAULT_REQUEST_MAX = 4096, SOFT_FAULT_REQUEST_SPECS = 16 };

struct soft_fault_request {
	char device[64]; /* "*": all */
	bool clear;
	unsigned int num;
	struct soft_fault_spec specs[SOFT_FAULT_REQUEST_SPECS];
};

/* -EINVAL and what is wrong in @err; nothing of it is to be done then. */
int soft_fault_request_parse(const char *bytes, size_t len, struct soft_fault_request *ret,
			     struct pp_error *err);

#endif
