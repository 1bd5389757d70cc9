/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/monitor.h"
#include "daemon/watch.h"
#include "base/banned.h"

static bool is_file(const char *where)
{
	return !strstr(where, "://") && strcmp(where, ":memory:") != 0;
}

static int lock_name(const char *where, char path[4200])
{
	return snprintf(path, 4200, "%s.lock", where) < 4200 ? 0 : -ENAMETOOLONG;
}

/*
 * The database itself cannot be locked so: it may be put aside. A record lock, since no child
 * inherits it: a helper that is stuck in a driver must not keep the next monitor out.
 */
static int take_lock(const char *where, int *ret, bool *ret_known, struct pp_error *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[4200];
	int fd;

	*ret = -1;
	*ret_known = false;
	if (strstr(where, "://"))
		return pp_error_set(err, -EINVAL,
				    "the state is a file of this node alone, no server's database");
	if (!is_file(where))
		return 0;
	if (lock_name(where, path))
		return pp_error_set(err, -ENAMETOOLONG, "%.200s: the name is too long", where);
	*ret_known = !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return pp_error_set(
			err, -errno,
			"%.300s: %s: the state has no place there (--state FILE names another)",
			path, strerrordesc_np(errno));
	if (fcntl(fd, F_SETLK, &lock)) {
		int r = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;

		(void)close(fd);
		return pp_error_set(err, r,
				    r == -EBUSY ? "%.300s: another monitor is at work there"
						: "%.300s: cannot be locked",
				    where);
	}
	*ret = fd;
	return 0;
}

static void unlock_unused(const char *where)
{
	char path[4200];

	if (!lock_name(where, path))
		(void)unlink(path);
}

bool pp_monitor_at_work(const char *where)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[4200];
	bool busy = false;
	int fd;

	if (!is_file(where) || lock_name(where, path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		busy = !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
		(void)close(fd);
	}
	return busy;
}

static int connect_to(struct pp_keeper *keeper, struct pp_error *err)
{
	int r = pp_sql_open(keeper->where, PP_SQL_CREATE, &keeper->sql, err);

	if (r)
		return r;
	r = pp_keep_prepare(keeper->sql, err);
	if (r)
		keeper->sql = pp_sql_close(keeper->sql);
	return r;
}

/* With what belongs to it, so that nothing of the old one is taken for the new one's. */
static int put_aside(struct pp_keeper *keeper, struct pp_error *err)
{
	static const char *const parts[] = {"", "-wal", "-shm"};
	char from[4200], to[4200], stamp[32];
	int r = 0;

	keeper->sql = pp_sql_close(keeper->sql);
	if (!is_file(keeper->where))
		return pp_error_set(err, -EBADMSG, "%.300s: damaged", keeper->where);
	(void)pp_clock_stamp(pp_clock_wall(), stamp, sizeof(stamp));
	for (size_t i = PP_ARRAY_LEN(parts); !r && i-- > 0;) {
		if (snprintf(from, sizeof(from), "%s%s", keeper->where, parts[i]) >=
			    (int)sizeof(from) ||
		    snprintf(to, sizeof(to), "%s.damaged-%s%s", keeper->where, stamp, parts[i]) >=
			    (int)sizeof(to))
			return pp_error_set(err, -ENAMETOOLONG, "the name is too long");
		if (rename(from, to) && errno != ENOENT)
			r = pp_error_set(err, -errno, "%.300s: cannot be put aside: %s", from,
					 strerrordesc_np(errno));
	}
	if (!r)
		(void)snprintf(keeper->aside, sizeof(keeper->aside), "%s", to);
	return r;
}

static int open_and_load(struct pp_keeper *keeper, const char *node, struct pp_ledger **ret,
			 size_t *ret_odd, struct pp_error *err)
{
	int r = connect_to(keeper, err);

	return r ? r
		 : pp_keep_load(keeper->sql, node, pp_clock_wall(), pp_clock_monotonic(), ret,
				ret_odd, err);
}

/* It may pass, and is no fault of who started the monitor. */
static bool may_pass(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EROFS || error == -EIO;
}

/* Bytes of the file, or of one beside it; 0 where there is none. */
static off_t size_of(const char *where, const char *beside)
{
	char path[4200];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s%s", where, beside) >= (int)sizeof(path) ||
	    stat(path, &st))
		return 0;
	return st.st_size;
}

/*
 * What cannot be written now is read as it lies there. A write-ahead log that cannot be opened
 * might hold more: then nothing is known of what was told already, and it stays an error.
 */
static int begin_unkept(struct pp_keeper *keeper, const char *node, struct pp_ledger **ret,
			size_t *ret_odd, struct pp_error *err)
{
	struct pp_error ignored = {0};
	struct pp_sql *sql = NULL;
	int r;

	keeper->sql = pp_sql_close(keeper->sql);
	(void)snprintf(keeper->why, sizeof(keeper->why), "%s", err->text);
	if (!size_of(keeper->where, ""))
		r = pp_ledger_new(node, ret);
	else if (size_of(keeper->where, "-wal"))
		return err->code;
	else
		r = pp_sql_open(keeper->where, PP_SQL_READ_ONLY | PP_SQL_STILL, &sql, &ignored);
	if (!r && sql)
		r = pp_keep_prepare(sql, &ignored);
	if (!r && sql)
		r = pp_keep_load(sql, node, pp_clock_wall(), pp_clock_monotonic(), ret, ret_odd,
				 &ignored);
	sql = pp_sql_close(sql);
	if (r)
		return err->code;
	*err = (struct pp_error){0};
	return 0;
}

int pp_keeper_open(const char *where, const char *node, struct pp_keeper *ret,
		   struct pp_ledger **ret_ledger, size_t *ret_odd, struct pp_error *err)
{
	struct pp_keeper keeper = {.where = where};
	bool known;
	int r = take_lock(where, &keeper.lock, &known, err);

	if (r && !may_pass(r))
		return r;
	if (!r)
		r = open_and_load(&keeper, node, ret_ledger, ret_odd, err);
	if (r == -EPROTONOSUPPORT && !known)
		unlock_unused(where);
	if (r == -EBADMSG && !known) {
		/* No monitor was here before: it is somebody's file. */
		unlock_unused(where);
		r = pp_error_set(err, r,
				 "%.300s: is no database of the monitor; it is left as it is",
				 where);
	} else if (r == -EBADMSG) {
		*err = (struct pp_error){0};
		r = put_aside(&keeper, err);
		if (!r)
			r = open_and_load(&keeper, node, ret_ledger, ret_odd, err);
	}
	if (may_pass(r))
		r = begin_unkept(&keeper, node, ret_ledger, ret_odd, err);
	if (r)
		pp_keeper_close(&keeper);
	else
		*ret = keeper;
	return r;
}

static int save(struct pp_keeper *keeper, struct pp_ledger *k, int64_t wall_ns,
		struct pp_error *err)
{
	bool known;
	int r = keeper->lock < 0 ? take_lock(keeper->where, &keeper->lock, &known, err) : 0;

	if (!r && !keeper->sql)
		r = connect_to(keeper, err);
	if (!r)
		r = pp_keep_save(keeper->sql, k, wall_ns, err);
	if (r != -EBADMSG)
		return r;
	*err = (struct pp_error){0};
	r = put_aside(keeper, err);
	if (!r)
		r = connect_to(keeper, err);
	if (r)
		return r;
	pp_keep_all_dirty(k);
	return pp_keep_save(keeper->sql, k, wall_ns, err);
}

int pp_keeper_save(struct pp_keeper *keeper, struct pp_ledger *k, int64_t wall_ns,
		   struct pp_error *err)
{
	int r = save(keeper, k, wall_ns, err);

	(void)snprintf(keeper->why, sizeof(keeper->why), "%s", r ? err->text : "");
	return r;
}

int pp_keeper_look(const struct pp_keeper *keeper, struct pp_looks *into)
{
	if (!is_file(keeper->where))
		return 0;
	return pp_look_state(into, PP_SIGNAL_KEPT, "database", *keeper->why ? keeper->why : NULL,
			     "%s", *keeper->why ? "not kept" : PP_KEPT_FINE);
}

void pp_keeper_close(struct pp_keeper *keeper)
{
	keeper->sql = pp_sql_close(keeper->sql);
	if (keeper->lock >= 0)
		(void)close(keeper->lock);
	keeper->lock = -1;
}
