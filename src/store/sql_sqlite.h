/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's errors as errno values: private to store/sql_sqlite*.c.
 */
#ifndef PP_STORE_SQL_SQLITE_H
#define PP_STORE_SQL_SQLITE_H

#include <sqlite3.h>

/* @db may be NULL; else @result is what it answered last. */
int pp_sqlite_code(sqlite3 *db, int result);

#endif
