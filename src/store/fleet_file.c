/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files into the fleet: each whole or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/bundle.h"
#include "store/fleet_parts.h"
#include "base/banned.h"

enum { TRIES = 3 };
static const size_t FILE_BYTES = (size_t)1 << 30;

/* One fleet is written by one at a time: SQLite's begin sees to it, here this. */
static int begin(struct pp_sql *sql, struct pp_error *err)
{
	int r = pp_sql_begin(sql, err);

	if (!r && pp_sql_is_server(sql))
		r = pp_sql_run(sql, "SELECT pg_advisory_xact_lock(1885696625)", NULL, 0, err);
	return r;
}

typedef int adder(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
		  struct pp_fleet_added *ret, struct pp_error *err);

/* What another writer or a lost connection undid is done again; nothing is added twice. */
static int whole(struct pp_sql *sql, adder *add, const void *what, struct pp_fleet_added *ret,
		 struct pp_error *err)
{
	struct pp_fleet_added added;
	int r = 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		struct pp_fleet_memory memory = {0};

		added = (struct pp_fleet_added){0};
		r = begin(sql, err);
		r = r ? r : add(sql, &memory, what, &added, err);
		if (!r)
			r = pp_sql_commit(sql, err);
		else
			pp_sql_rollback(sql);
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

struct text {
	const char *text;
	size_t len;
};

static int add_document(struct pp_sql *sql, struct pp_fleet_memory *memory, const char *text,
			size_t len, struct pp_fleet_added *ret, struct pp_error *err)
{
	struct pp_result *result;
	int r = pp_result_read(text, len, &result, err);

	if (r) {
		ret->of_input = r != -ENOMEM;
		return r;
	}
	r = pp_fleet_add_result(sql, memory, result, ret, err);
	pp_result_free(result);
	return r;
}

/* A first line that is a whole object: one document a line; else the text is one document. */
static bool is_lines(const struct text *t)
{
	const char *end = memchr(t->text, '\n', t->len);
	size_t len = end ? (size_t)(end - t->text) : t->len;

	while (len && (t->text[len - 1] == '\r' || t->text[len - 1] == ' '))
		len--;
	return end && len > 1 && t->text[0] == '{' && t->text[len - 1] == '}';
}

static int add_lines(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
		     struct pp_fleet_added *ret, struct pp_error *err)
{
	const struct text *t = what;
	const char *at = t->text, *end = t->text + t->len, *next;
	size_t line = 1, len;
	int r = 0;

	if (!is_lines(t))
		return add_document(sql, memory, t->text, t->len, ret, err);
	for (; at < end && !r; at = next, line++) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		len = (size_t)(next - at);
		if (len == strspn(at, " \t\r\n") || !*at)
			continue;
		r = add_document(sql, memory, at, len, ret, err);
		if (r)
			(void)pp_error_prefix(err, "line %zu", line);
	}
	return r;
}

int pp_fleet_add_text(struct pp_sql *sql, const char *text, size_t len, struct pp_fleet_added *ret,
		      struct pp_error *err)
{
	const struct text t = {text, len};

	return whole(sql, add_lines, &t, ret, err);
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
	r = r ? r : whole(sql, add_one, result, ret, err);
	pp_result_free(result);
	return r;
}

static int read_all(int fd, struct pp_buf *to, struct pp_error *err)
{
	char block[65536];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) > 0)
		pp_buf_add(to, block, (size_t)n);
	if (n < 0)
		return pp_error_set(err, -errno, "%s", strerrordesc_np(errno));
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
