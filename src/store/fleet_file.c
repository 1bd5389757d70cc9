/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files into the fleet: each whole or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "bundle/bundle.h"
#include "store/fleet_parts.h"
#include "base/banned.h"

enum { TRIES = 3 };
static const size_t FILE_BYTES = (size_t)1 << 30;

int pp_fleet_begin(struct pp_sql *sql, struct pp_error *err)
{
	int r = pp_sql_begin(sql, err);

	/* SQLite's own begin lets one write at a time. */
	if (!r && pp_sql_is_server(sql))
		r = pp_sql_send(sql, "SELECT pg_advisory_xact_lock(1885696625)", NULL, 0, err);
	return r;
}

int pp_fleet_add_whole(struct pp_sql *sql, pp_fleet_adder *add, const void *what,
		       struct pp_fleet_added *ret, struct pp_error *err)
{
	struct pp_fleet_added added;
	int r = 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		struct pp_fleet_memory memory = {0};

		added = (struct pp_fleet_added){0};
		r = pp_fleet_begin(sql, err);
		r = r ? r : add(sql, &memory, what, &added, err);
		r = r ? r : pp_fleet_classify_waiting(sql, &memory, err);
		if (!r)
			r = pp_sql_commit(sql, err);
		else
			pp_sql_rollback(sql);
		/* What another writer or a lost connection undid is done again. */
		if (r != -EBUSY && r != -ECONNRESET)
			break;
	}
	ret->of_input = added.of_input;
	if (r)
		return r;
	ret->results += added.results;
	ret->known += added.known;
	return 0;
}

static int add_one(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
		   struct pp_fleet_added *ret, struct pp_error *err)
{
	return pp_fleet_add_result(sql, memory, what, ret, err);
}

static int add_bundle(struct pp_sql *sql, const char *path, struct pp_fleet_added *ret,
		      struct pp_error *err)
{
	struct pp_result *result = NULL;
	struct pp_bundle *b = NULL;
	int r = pp_bundle_open(path, &b, err);

	r = r ? r : pp_result_of_bundle(b, &result, err);
	pp_bundle_free(b);
	ret->of_input = r && r != -ENOMEM;
	r = r ? r : pp_fleet_add_whole(sql, add_one, result, ret, err);
	pp_result_free(result);
	return r;
}

static int read_all(int fd, struct pp_buf *to, struct pp_error *err)
{
	int r = pp_fd_read(fd, to);

	if (r && !to->failed)
		return pp_error_set(err, r, "%s", strerrordesc_np(-r));
	if (to->failed)
		return pp_error_set(err, to->failed,
				    to->failed == -EFBIG ? "longer than a file of results may be"
							 : "out of memory");
	return 0;
}

/* The four bytes that every zstd frame begins with. */
static bool is_archive(int fd)
{
	static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	unsigned char begins[4];

	return pread(fd, begins, sizeof(begins), 0) == (ssize_t)sizeof(begins) &&
	       !memcmp(begins, magic, sizeof(magic));
}

int pp_fleet_add_file(struct pp_sql *sql, const char *path, struct pp_fleet_added *ret,
		      struct pp_error *err)
{
	/* A FIFO must not hold the program up. */
	PP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	PP_AUTO_BUF struct pp_buf text = PP_BUF(FILE_BYTES);
	struct stat st;
	int r;

	ret->of_input = true;
	if (fd < 0 || fstat(fd, &st))
		return pp_error_set(err, -errno, "%s", strerrordesc_np(errno));
	if (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && is_archive(fd)))
		return add_bundle(sql, path, ret, err);
	if (!S_ISREG(st.st_mode))
		return pp_error_set(err, -EBADMSG, "neither a file nor a bundle's directory");
	r = read_all(fd, &text, err);
	return r ? r : pp_fleet_add_text(sql, pp_buf_text(&text), text.len, ret, err);
}
