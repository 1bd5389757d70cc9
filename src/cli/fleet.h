/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fleet and history share: which database, and how its errors become exit codes.
 */
#ifndef PP_CLI_FLEET_H
#define PP_CLI_FLEET_H

#include "cli/session.h"
#include "store/fleet.h"

/*
 * --database, else PEERPATH_DATABASE, else "database" in section [fleet] of peerpath.conf. @flags
 * as pp_sql_open(). 0, or an exit code after one line on stderr.
 */
int pp_fleet_database(const struct pp_args *args, unsigned int flags, struct pp_sql **ret);

/* One line on stderr; the exit code of a database's error. */
int pp_fleet_failed(const struct pp_args *args, int error, const struct pp_error *err);

int pp_fleet_cmd_add(struct pp_session *s);
int pp_fleet_cmd_serve(struct pp_session *s);
int pp_fleet_cmd_prune(struct pp_session *s);

#endif
