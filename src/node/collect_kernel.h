/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the kernel collector, each in the file of its name. Private to these files.
 */
#ifndef PP_NODE_COLLECT_KERNEL_H
#define PP_NODE_COLLECT_KERNEL_H

#include "node/node.h"

void pp_kernel_config_collect(struct pp_node *n, const char *release); /* NULL: not known */
void pp_kernel_symbols_collect(struct pp_node *n);
void pp_kernel_virtual_collect(struct pp_node *n);
void pp_kernel_log_collect(struct pp_node *n);

#endif
