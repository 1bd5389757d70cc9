/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger in a database: written in one transaction, or not at all.
 *
 * A round writes only if something happened in it: what is urgent at once (an event with the
 * position behind it and what names it, a state, a signal), positions alone within ten
 * minutes, numbers along with either. Without that nothing is written. So a kill at any time loses
 * no event and doubles none: either both the event and the position are there, or neither is.
 *
 * Rows are read as hostile input: what does not hold is left out and counted.
 */
#ifndef PP_DAEMON_KEEP_H
#define PP_DAEMON_KEEP_H

#include "daemon/ledger.h"
#include "store/sql.h"

/* Kept of each: older ones are deleted. */
enum { PP_KEEP_SIGNALS = 20000, PP_KEEP_TELLINGS = 20000, PP_KEEP_NAMES = 2 * PP_LEDGER_NAMED };

/* Makes or brings up the tables. -EPROTONOSUPPORT: of a newer program. */
int pp_keep_prepare(struct pp_sql *sql, struct pp_error *err);

/*
 * What is in the database, as of now (@now_ns monotonic): an empty ledger when it is new.
 * @ret_odd: rows that were left out. -EBADMSG: damaged.
 */
int pp_keep_load(struct pp_sql *sql, const char *node, int64_t wall_ns, int64_t now_ns,
		 struct pp_ledger **ret, size_t *ret_odd, struct pp_error *err);

/*
 * Everything that changed. On error nothing is written, and all of it still waits: -ENOSPC and
 * others may pass, -EBADMSG will not.
 */
int pp_keep_save(struct pp_sql *sql, struct pp_ledger *k, int64_t wall_ns, struct pp_error *err);

/* After the database was lost: everything is to be written again. */
void pp_keep_all_dirty(struct pp_ledger *k);

#endif
