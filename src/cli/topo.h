/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of `topo` that are jobs of their own: other tools' descriptions of a topology.
 */
#ifndef PP_CLI_TOPO_H
#define PP_CLI_TOPO_H

#include "cli/verb.h"

/* Each reads @file ("-": standard input), writes its document, and returns an exit code. */
int pp_topo_smi(const struct pp_args *args, const char *file);
int pp_topo_nccl_xml(const struct pp_args *args, const char *file);

#endif
