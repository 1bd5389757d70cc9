/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

/* Of the whole machine; what is beyond is not seen. */
enum { ALL = 1 << 16 };

struct one {
	pid_t pid, parent;
	bool below;
};

/* "pid (name) state parent ...": the name may hold anything. */
static bool read_one(const char *name, struct one *ret)
{
	char path[300], text[1024], *at;
	uint64_t pid, parent;
	ssize_t len;
	int fd;

	if (pp_parse_u64(name, 1, INT32_MAX, &pid))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%s/stat", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	at = strrchr(text, ')');
	if (!at || strlen(at) < 5 || at[2] == 'Z' || at[2] == 'X')
		return false;
	at += 4;
	at[strcspn(at, " ")] = '\0';
	if (pp_parse_u64(at, 0, INT32_MAX, &parent))
		return false;
	*ret = (struct one){.pid = (pid_t)pid, .parent = (pid_t)parent};
	return true;
}

static size_t read_all(struct one *ret, size_t most)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	size_t n = 0;

	while (d && n < most && (e = readdir(d)))
		if (*e->d_name >= '1' && *e->d_name <= '9' && read_one(e->d_name, &ret[n]))
			n++;
	if (d)
		(void)closedir(d);
	return n;
}

static int by_pid(const void *a, const void *b)
{
	const struct one *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool is_below(const struct one *all, size_t n, pid_t parent, pid_t top)
{
	const struct one key = {.pid = parent}, *at;

	if (parent == top)
		return true;
	at = bsearch(&key, all, n, sizeof(*all), by_pid);
	return at && at->below;
}

size_t pp_nccl_tree(pid_t top, pid_t *ret, size_t most)
{
	struct one *PP_AUTO_FREE all = malloc(ALL * sizeof(*all));
	size_t n = all ? read_all(all, ALL) : 0, found = 0;
	bool more = n > 0;

	if (n)
		qsort(all, n, sizeof(*all), by_pid);
	/* A child's number may be lower than its parent's: until nothing is added. */
	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			if (all[i].below || !is_below(all, n, all[i].parent, top))
				continue;
			all[i].below = more = true;
			if (found < most)
				ret[found++] = all[i].pid;
		}
	}
	return found;
}
