/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database of somebody else's, for who may read its file and no more. SQLite's readers of a
 * write-ahead log write beside it; without a log the file is all there is, and is read as it lies.
 */
#include "store/sql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

enum { NAME = 4200 };

/* Bytes of its write-ahead log; -1: not known. */
static int64_t log_of(const char *where)
{
	char path[NAME];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s-wal", where) >= (int)sizeof(path))
		return -1;
	if (stat(path, &st))
		return errno == ENOENT ? 0 : -1;
	return st.st_size;
}

int pp_sql_open_reader(const char *where, struct pp_sql **ret, struct pp_error *err)
{
	int r = pp_sql_open(where, PP_SQL_READ_ONLY, ret, err);

	if ((r != -EROFS && r != -EACCES && r != -EPERM && r != -ENOENT) || access(where, R_OK))
		return r;
	*err = (struct pp_error){0};
	if (!log_of(where))
		return pp_sql_open(where, PP_SQL_READ_ONLY | PP_SQL_STILL, ret, err);
	return pp_error_set(err, r,
			    "%s: is in use, and who reads it then must be able to write to its "
			    "folder: run this as root, or as the user who wrote it",
			    where);
}
