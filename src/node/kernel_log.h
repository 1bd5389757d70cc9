/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question "kmsg": records of the kernel log of the known families (kmsg.h), for the facts and
 * for who looks for one line.
 */
#ifndef PP_NODE_KERNEL_LOG_H
#define PP_NODE_KERNEL_LOG_H

#include "node/ask.h"
#include "node/kmsg.h"

/* -ENOMEM; where it cannot be read the answer says why. */
int pp_kernel_log_ask(struct pp_source *s, struct pp_answer *ret);
/*
 * Is there a record for which @is says so? NULL: yes; else why there is none that is known of, with
 * *ret_whole whether all records were seen, so that there was none since the start of the machine.
 */
const char *pp_kernel_log_find(const struct pp_answer *a, bool (*is)(const struct pp_kmsg *m),
			       bool *ret_whole);

#endif
