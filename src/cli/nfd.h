/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A feature file for Kubernetes' node feature discovery: labels of one node, which expire, so that
 * a node that is not looked at any more loses them. Values are cut to what a label may hold; what
 * is unknown is no label.
 */
#ifndef PP_CLI_NFD_H
#define PP_CLI_NFD_H

#include "cli/proof.h"

/* Is --nfd-expires a time, and does it stand beside --nfd? 0, or PP_EXIT_USAGE after one line. */
int pp_nfd_check(const struct pp_args *args);
/*
 * Writes the file of --nfd, if it was given: beside it under a name that starts with a dot, which
 * is not read, then renamed. @p NULL: the run came to no verdict in time. 0, or an exit code after
 * one line on stderr.
 */
int pp_nfd_write(const struct pp_args *args, const struct pp_session *s, const struct pp_proof *p);

#endif
