/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql_sqlite.h"

#include <errno.h>

#include "base/compiler.h"
#include "base/banned.h"

static int code_of_constraint(sqlite3 *db)
{
	switch (sqlite3_extended_errcode(db)) {
	case SQLITE_CONSTRAINT_PRIMARYKEY:
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_ROWID:
		return -EEXIST;
	default:
		return -EINVAL;
	}
}

int pp_sqlite_code(sqlite3 *db, int result)
{
	static const struct {
		int result, code;
	} rows[] = {
		{SQLITE_NOMEM, -ENOMEM},    {SQLITE_FULL, -ENOSPC},    {SQLITE_BUSY, -EBUSY},
		{SQLITE_LOCKED, -EBUSY},    {SQLITE_NOTADB, -EBADMSG}, {SQLITE_CORRUPT, -EBADMSG},
		{SQLITE_READONLY, -EROFS},  {SQLITE_TOOBIG, -EFBIG},   {SQLITE_PERM, -EACCES},
		{SQLITE_CANTOPEN, -EACCES}, {SQLITE_IOERR, -EIO},      {SQLITE_INTERRUPT, -EINTR},
		{SQLITE_PROTOCOL, -EBUSY},
	};
	int number = db ? sqlite3_system_errno(db) : 0;

	result &= 0xff;
	if (result == SQLITE_CONSTRAINT)
		return code_of_constraint(db);
	if (result == SQLITE_IOERR && (sqlite3_extended_errcode(db) == SQLITE_IOERR_NOMEM))
		return -ENOMEM;
	if ((result == SQLITE_IOERR || result == SQLITE_CANTOPEN) && number > 0)
		return number == EDQUOT ? -ENOSPC : -number;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		if (rows[i].result == result)
			return rows[i].code;
	return -EINVAL;
}
