/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the software collector and what they share. Private to it.
 */
#ifndef PP_NODE_COLLECT_SOFTWARE_H
#define PP_NODE_COLLECT_SOFTWARE_H

#include "node/environment.h"
#include "node/library.h"
#include "node/node.h"

struct pp_software {
	struct pp_node *node;
	struct pp_environment env;
	struct pp_library_path libraries; /* without LD_LIBRARY_PATH when env is not known */
};

void pp_nccl_libraries_collect(struct pp_software *sw);
/* Which variables NCCL would see, from the environment and its configuration files. */
void pp_nccl_settings_collect(struct pp_software *sw);

#endif
