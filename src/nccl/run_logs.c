/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "nccl/run_logging.h"
#include "base/banned.h"

enum { FILES = 4096, PIECE = 64 << 10 };

struct file {
	char name[NAME_MAX + 1];
	uint64_t size;
	struct timespec changed;
};

struct files {
	struct file *at; /* owned */
	size_t n;
};

static bool is_log(const char *name)
{
	size_t len = strlen(name);

	return !strncmp(name, "nccl.", 5) && len > 9 && !strcmp(name + len - 4, ".log");
}

enum { STREAM = sizeof(PP_NCCL_LOG_STDOUT) - 1 }; /* characters of either's name */

static bool is_output(const char *name)
{
	return !strncmp(name, PP_NCCL_LOG_STDOUT, STREAM) ||
	       !strncmp(name, PP_NCCL_LOG_STDERR, STREAM);
}

/* Two files of the end of one stream. */
static bool are_ends(const char *a, const char *b)
{
	return is_output(a) && !strncmp(a, b, STREAM) && a[STREAM] == '.' && b[STREAM] == '.';
}

/* Names in order, but of the two files of the end the older one first. */
static int by_name(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (are_ends(x->name, y->name) && x->changed.tv_sec != y->changed.tv_sec)
		return x->changed.tv_sec < y->changed.tv_sec ? -1 : 1;
	if (are_ends(x->name, y->name) && x->changed.tv_nsec != y->changed.tv_nsec)
		return x->changed.tv_nsec < y->changed.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int list(const char *dir, bool (*wanted)(const char *name), struct files *ret)
{
	DIR *d = opendir(dir);
	struct files f = {.at = calloc(FILES, sizeof(*f.at))};
	const struct dirent *e;
	struct stat st;

	if (!d || !f.at) {
		int r = d ? -ENOMEM : -errno;

		if (d)
			(void)closedir(d);
		free(f.at);
		return r;
	}
	while (f.n < FILES && (e = readdir(d))) {
		if (!wanted(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		(void)snprintf(f.at[f.n].name, sizeof(f.at[0].name), "%s", e->d_name);
		f.at[f.n].changed = st.st_mtim;
		f.at[f.n++].size = (uint64_t)st.st_size;
	}
	(void)closedir(d);
	qsort(f.at, f.n, sizeof(*f.at), by_name);
	*ret = f;
	return 0;
}

static bool wanted(const char *name)
{
	return is_log(name) || is_output(name);
}

/* @len bytes from @from on. How many were there. */
static uint64_t hand_on(int fd, uint64_t from, uint64_t len, pp_nccl_log_fn *fn, void *ctx)
{
	char *PP_AUTO_FREE piece = malloc(PIECE);
	uint64_t done = 0;
	ssize_t n;

	while (piece && done < len) {
		size_t want = len - done < PIECE ? (size_t)(len - done) : PIECE;

		n = pread(fd, piece, want, (off_t)(from + done));
		if (n <= 0)
			break;
		fn(ctx, NULL, piece, (size_t)n);
		done += (uint64_t)n;
	}
	return done;
}

static void read_one(const char *dir, const struct file *f, uint64_t share, pp_nccl_log_fn *fn,
		     void *ctx, struct pp_nccl_log_count *count)
{
	uint64_t head = f->size <= share ? f->size : share / 4 * 3;
	uint64_t tail = f->size <= share ? 0 : share / 4, done;
	char path[PATH_MAX], name[NAME_MAX + 32];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, f->name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		count->dropped += f->size;
		return;
	}
	fn(ctx, f->name, NULL, 0);
	done = hand_on(fd, 0, head, fn, ctx);
	if (tail) {
		(void)snprintf(name, sizeof(name), "%s (its end)", f->name);
		fn(ctx, name, NULL, 0);
		done += hand_on(fd, f->size - tail, tail, fn, ctx);
	}
	count->bytes += done;
	count->dropped += f->size - done;
	(void)close(fd);
}

int pp_nccl_logs_read(const char *dir, uint64_t most, pp_nccl_log_fn *fn, void *ctx,
		      struct pp_nccl_log_count *ret)
{
	struct pp_nccl_log_count count = {0};
	struct files f;
	int r = list(dir, wanted, &f);

	if (r)
		return r;
	for (size_t i = 0; i < f.n; i++) {
		/* What smaller ones leave is the larger ones', as far as the order has it. */
		uint64_t share = (most - count.bytes) / (f.n - i);

		count.files += is_log(f.at[i].name);
		read_one(dir, &f.at[i], share, fn, ctx, &count);
	}
	free(f.at);
	*ret = count;
	return 0;
}

void pp_nccl_log_to_feed(void *feed, const char *name, const char *bytes, size_t len)
{
	if (bytes) {
		pp_nccl_feed_push(feed, bytes, len);
		return;
	}
	pp_nccl_feed_end(feed);
	pp_nccl_feed_file(feed, name);
}

/* "nccl.HOST.PID.log" taken apart, in place. */
static bool take_apart(char *name, const char **ret_host, const char **ret_pid)
{
	char *end = name + strlen(name) - 4, *pid;

	*end = '\0';
	pid = strrchr(name, '.');
	if (pid <= name + 4)
		return false;
	*pid = '\0';
	*ret_host = name + 5;
	*ret_pid = pid + 1;
	return true;
}

static int copy(const char *from, const char *to, bool append)
{
	int PP_AUTO_CLOSE in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int out, r = 0;
	char *PP_AUTO_FREE piece = malloc(PIECE);
	ssize_t n = 0;

	if (in < 0 || !piece)
		return in < 0 ? -errno : -ENOMEM;
	out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666);
	if (out < 0)
		r = -errno;
	while (!r && (n = read(in, piece, PIECE)) > 0)
		r = pp_fd_write(out, piece, (size_t)n);
	if (!r && n < 0)
		r = -errno;
	if (out >= 0)
		(void)close(out);
	return r;
}

unsigned int pp_nccl_logs_return(const char *dir, const char *pattern, struct pp_error *err)
{
	char from[PATH_MAX], to[PATH_MAX], last[PATH_MAX] = "";
	const char *host, *pid;
	unsigned int failed = 0;
	struct files f;
	int r = list(dir, is_log, &f);

	for (size_t i = 0; !r && i < f.n; i++) {
		int one = -ENAMETOOLONG;

		(void)snprintf(from, sizeof(from), "%s/%s", dir, f.at[i].name);
		if (take_apart(f.at[i].name, &host, &pid) &&
		    pp_nccl_log_name(pattern, host, pid, to, sizeof(to)))
			/* One name for several processes: they follow each other. */
			one = copy(from, to, !strcmp(to, last));
		if (one) {
			failed++;
			(void)pp_error_set(err, one, "%.300s: %s", pattern, strerror(-one));
		}
		(void)snprintf(last, sizeof(last), "%s", to);
	}
	if (!r)
		free(f.at);
	return failed;
}

static bool is_any(const char *name)
{
	return *name != '.';
}

static int keep_all(const char *from, const char *to, struct pp_error *err)
{
	char source[PATH_MAX], target[PATH_MAX];
	struct files f;
	int r;

	if (mkdir(to, 0777) && errno != EEXIST)
		return pp_error_set(err, -errno, "%.400s: %s", to, strerror(errno));
	r = list(from, is_any, &f);
	if (r)
		return pp_error_set(err, r, "%.400s: %s", from, strerror(-r));
	for (size_t i = 0; !r && i < f.n; i++) {
		(void)snprintf(source, sizeof(source), "%.3800s/%s", from, f.at[i].name);
		(void)snprintf(target, sizeof(target), "%.3800s/%s", to, f.at[i].name);
		r = copy(source, target, false);
	}
	free(f.at);
	return r ? pp_error_set(err, r, "%.400s: %s", to, strerror(-r)) : 0;
}

int pp_nccl_logs_keep(const char *dir, const char *to, const char *arm, struct pp_error *err)
{
	char from[PATH_MAX], target[PATH_MAX];
	int r;

	if (mkdir(to, 0777) && errno != EEXIST)
		return pp_error_set(err, -errno, "%.400s: %s", to, strerror(errno));
	(void)snprintf(target, sizeof(target), "%.3500s/%.100s", to, arm);
	r = keep_all(dir, target, err);
	if (r)
		return r;
	(void)snprintf(from, sizeof(from), "%.3700s/%s", dir, PP_NCCL_LOG_OBSERVED);
	if (access(from, X_OK))
		return 0;
	(void)snprintf(target, sizeof(target), "%.3500s/%.100s/%s", to, arm, PP_NCCL_LOG_OBSERVED);
	return keep_all(from, target, err);
}

static bool is_record(const char *name)
{
	size_t len = strlen(name);

	return len > 6 && !strcmp(name + len - 6, ".jsonl");
}

void pp_nccl_logs_observed(const char *dir, struct pp_nccl_run_node *n)
{
	struct pp_observed *o = malloc(sizeof(*o));
	char folder[PATH_MAX], path[PATH_MAX];
	struct pp_error err = {0};
	struct files f = {0};
	int r;

	(void)snprintf(folder, sizeof(folder), "%.3800s/%s", dir, PP_NCCL_LOG_OBSERVED);
	r = o ? list(folder, is_record, &f) : -ENOMEM;
	for (size_t i = 0; !r && i < f.n; i++) {
		(void)snprintf(path, sizeof(path), "%.3800s/%s", folder, f.at[i].name);
		if (pp_observed_read(path, o, &err))
			continue;
		pp_observed_merge(&n->observed, o);
		n->was_observed = true;
	}
	free(f.at);
	free(o);
	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++)
		n->library.made[i] = n->observed.way[i].made;
	n->library.gpu_unknown = n->observed.unknown.made;
	if (r == -ENOMEM)
		(void)snprintf(n->library.why, sizeof(n->library.why),
			       "no memory to read what the observer saw");
	if (!n->was_observed && !*n->library.why)
		(void)snprintf(n->library.why, sizeof(n->library.why),
			       "no process of the command registered memory under the observer");
}
