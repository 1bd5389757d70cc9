/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/soft_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bundle/replay.h"
#include "bundle/tree.h"
#include "cli/session.h"
#include "cli/soft_made.h"
#include "node/node.h"
#include "base/banned.h"

enum { RECORD_BYTES = 64 << 20, PLACE_BYTES = 1024 };

static const char MARK[] = "peerpath-soft-sysfs";

/* A directory and those above it, below @dir_fd. */
static int make_dirs(int dir_fd, const char *path)
{
	char part[PP_PATH_MAX];

	for (size_t i = 1; path[i - 1]; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdirat(dir_fd, part, 0755) && errno != EEXIST)
			return -errno;
		if (!path[i])
			break;
	}
	return 0;
}

static int write_entry(int dir_fd, const struct pp_entry *e, struct pp_error *err)
{
	const char *path = e->path + 1; /* relative */
	char above[PP_PATH_MAX];
	struct pp_member m = {.path = path, .data = e->content, .len = e->len};
	char *slash;
	int r;

	memcpy(above, path, strlen(path) + 1);
	slash = strrchr(above, '/');
	if (e->kind != PP_ENTRY_DIR && slash)
		*slash = '\0';
	r = make_dirs(dir_fd, above);
	if (r)
		return pp_error_set(err, r, "'%s': %s", above, strerror(-r));
	if (e->kind == PP_ENTRY_DIR)
		return 0;
	if (e->kind == PP_ENTRY_LINK) {
		m.kind = PP_MEMBER_LINK;
		m.target = e->content;
	}
	return pp_tree_put(dir_fd, &m, err);
}

/* What belongs into a made /sys: PCI, and what was made; no RDMA device of the machine. */
static bool is_wanted(const struct pp_entry *e)
{
	static const char *const wanted[] = {"/sys/bus/pci/", "/sys/devices/pci",
					     "/sys/devices/virtual/infiniband",
					     "/sys/class/infiniband"};

	if (e->kind == PP_ENTRY_ERROR || e->kind == PP_ENTRY_ANSWER)
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(wanted); i++)
		if (!strncmp(e->path, wanted[i], strlen(wanted[i])))
			return true;
	return false;
}

static int write_rows(int dir_fd, const struct soft_config *devices, struct pp_error *err)
{
	char path[SOFT_CONFIG_NAME_MAX + 8];
	int r = mkdirat(dir_fd, "rows", 0700) ? -errno : 0;

	for (unsigned int i = 0; i < devices->num_devices && !r; i++) {
		struct pp_member m = {.path = path, .data = ""};

		(void)snprintf(path, sizeof(path), "rows/%s", devices->devices[i].name);
		r = pp_tree_put(dir_fd, &m, err);
	}
	return r;
}

/* What the mark says: for who finds it, and for check_place(). */
static void place_text(const char *beside, char text[PLACE_BYTES])
{
	(void)snprintf(text, PLACE_BYTES,
		       "a made /sys of software RDMA devices; nothing in it is hardware\n"
		       "beside: %s\n",
		       beside ? beside : "nothing");
}

static int write_all(int dir_fd, struct pp_record *record, const struct soft_config *devices,
		     const char *beside, struct pp_error *err)
{
	char text[PLACE_BYTES];
	struct pp_member mark = {.path = MARK, .data = text};
	size_t n;
	const struct pp_entry *e = pp_record_entries(record, &n);
	int r = write_rows(dir_fd, devices, err);

	for (size_t i = 0; i < n && !r; i++)
		if (is_wanted(&e[i]))
			r = write_entry(dir_fd, &e[i], err);
	place_text(beside, text);
	mark.len = strlen(text);
	return r ? r : pp_tree_put(dir_fd, &mark, err);
}

/* Under another name first: DIR is whole or not there. */
static int write_dir(const char *dir, struct pp_record *record, const struct soft_config *devices,
		     const char *beside, struct pp_error *err)
{
	char temporary[PATH_MAX];
	int PP_AUTO_CLOSE fd = -1;
	int r;

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", dir) >= sizeof(temporary))
		return pp_error_set(err, -ENAMETOOLONG, "the name is too long");
	if (!mkdtemp(temporary))
		return pp_error_set(err, -errno, "%s", strerror(errno));
	fd = open(temporary, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? pp_error_set(err, -errno, "%s", strerror(errno))
		   : write_all(fd, record, devices, beside, err);
	if (!r && rename(temporary, dir))
		r = pp_error_set(err, -errno, "%s", strerror(errno));
	if (r)
		(void)pp_tree_remove(AT_FDCWD, temporary);
	return r;
}

/* The machine that the devices are put into, as far as it is asked for. */
static int read_machine(const struct pp_args *args, struct pp_record *record,
			struct pp_source **ret, struct pp_error *err)
{
	const char *replay = pp_args_get(args, "replay");
	struct pp_source *src = NULL;
	struct pp_node *node = NULL;
	int r;

	r = replay ? pp_replay_open(replay, &src, err) : pp_source_live(&src, err);
	if (!r) {
		pp_source_set_record(src, record);
		r = pp_node_collect(src, &node, err);
		pp_source_set_record(src, NULL);
	}
	pp_node_free(node);
	if (r)
		pp_source_free(src);
	else
		*ret = src;
	return r;
}

/* Of the recording itself: its RDMA devices are not ours. */
static void copy_machine(struct pp_record *from, struct pp_record *to)
{
	size_t n;
	const struct pp_entry *e = pp_record_entries(from, &n);

	for (size_t i = 0; i < n; i++)
		if (is_wanted(&e[i]) && !strstr(e[i].path, "/infiniband"))
			(void)pp_record_put(to, e[i].kind, e[i].path, e[i].content, e[i].len, 0);
}

static int make(const struct pp_args *args, const char *dir, const struct soft_config *devices,
		struct pp_error *err)
{
	struct pp_record *machine = NULL, *record = NULL;
	const char *beside = pp_args_get(args, "beside");
	struct pp_source *src = NULL;
	int r = pp_record_new(RECORD_BYTES, &record);

	if (!r && (beside || pp_args_has(args, "replay"))) {
		r = pp_record_new(RECORD_BYTES, &machine);
		r = r ? r : read_machine(args, machine, &src, err);
		if (!r)
			copy_machine(machine, record);
	}
	if (!r)
		r = pp_soft_made(devices, beside, src, record, err);
	if (!r)
		r = write_dir(dir, record, devices, beside, err);
	pp_source_free(src);
	pp_record_free(machine);
	pp_record_free(record);
	return r;
}

/* The same command may be repeated, as server and as client; another place needs another DIR. */
static int check_place(const struct pp_args *args, const char *dir)
{
	const char *beside = pp_args_get(args, "beside");
	char path[PATH_MAX], was[PLACE_BYTES], now[PLACE_BYTES];
	PP_AUTO_CLOSE int fd = -1;
	ssize_t n;

	if (!beside)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, MARK);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, was, sizeof(was) - 1);
	was[n < 0 ? 0 : n] = '\0';
	place_text(beside, now);
	return strcmp(was, now) ? pp_complain(args, PP_EXIT_INPUT,
					      "--sysfs: %s was made without this --beside; remove "
					      "it, or name another place",
					      dir)
				: 0;
}

/* Was DIR made for these devices? */
static int check(const struct pp_args *args, const char *dir, const struct soft_config *devices)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, MARK);
	if (access(path, R_OK))
		return pp_complain(args, PP_EXIT_INPUT,
				   "--sysfs: %s is there, and no /sys that peerpath made; name "
				   "another place",
				   dir);
	for (unsigned int i = 0; i < devices->num_devices; i++) {
		(void)snprintf(path, sizeof(path), "%s/rows/%s", dir, devices->devices[i].name);
		if (access(path, R_OK | W_OK))
			return pp_complain(args, PP_EXIT_INPUT,
					   "--sysfs: %s has no device %s, or is another user's; "
					   "remove it, or name another place",
					   dir, devices->devices[i].name);
	}
	return check_place(args, dir);
}

int pp_soft_sysfs(const struct pp_args *args, const struct soft_config *devices)
{
	const char *dir = pp_args_get(args, "sysfs");
	char real[PATH_MAX];
	struct pp_error err = {0};
	struct stat st;
	int r;

	if (!stat(dir, &st)) {
		r = check(args, dir, devices);
		if (r)
			return r;
	} else {
		r = make(args, dir, devices, &err);
		if (r)
			return pp_complain(args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
					   "--sysfs %s: %s", dir,
					   r == -ENOMEM ? "no memory" : err.text);
	}
	/* Programs may change their directory. */
	return realpath(dir, real) && !setenv("PEERPATH_SOFT_SYSFS", real, 1)
		       ? 0
		       : pp_complain(args, PP_EXIT_INPUT, "--sysfs %s: %s", dir, strerror(errno));
}
