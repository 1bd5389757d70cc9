/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root in a directory of its own, the profiles of the tests, and what a tree holds as one text:
 * so that "the same" means every byte, mode, owner and absence.
 */
#ifndef PP_TESTS_PROFILE_WORLD_H
#define PP_TESTS_PROFILE_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "bundle/tree.h"
#include "profile/commit.h"

static char world[128];

static const char profile_a[] =
	"[profile]\nname = a\ntitle = A\nregistration = peermem\n"
	"[write /etc/modules-load.d/x.conf]\nline = nvidia-peermem\n"
	"[write /etc/modprobe.d/x.conf]\nline = # x\nline = options a b=1\nmode = 0600\n"
	"[set /etc/nccl.conf]\nNCCL_DMABUF_ENABLE = 0\n"
	"[write /etc/systemd/system.conf.d/x.conf]\nline = [Manager]\n"
	"[absent /etc/sysctl.d/old.conf]\n";
static const char profile_b[] = "[profile]\nname = b\ntitle = B\nregistration = dmabuf\n"
				"[keep /etc/modules-load.d/x.conf]\n"
				"[set /etc/nccl.conf]\nNCCL_DMABUF_ENABLE = 1\n"
				"[write /etc/environment.d/x.conf]\nline = A=1\n";

static PP_UNUSED struct pp_profile *parsed(const char *text)
{
	struct pp_profile *p = NULL;
	struct pp_error err = {0};

	if (pp_profile_parse("p", text, strlen(text), &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static PP_UNUSED void world_file(const char *path, const char *text, unsigned int mode)
{
	char full[256];
	int fd;

	(void)snprintf(full, sizeof(full), "%s%s", world, path);
	(void)unlink(full);
	fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static PP_UNUSED void world_dir(const char *path)
{
	char full[256];

	(void)snprintf(full, sizeof(full), "%s%s", world, path);
	assert_int_equal(mkdir(full, 0755), 0);
}

/* What a machine has before: some of the places, some files, none of systemd's. */
static PP_UNUSED void world_make(void)
{
	/* In memory where that is: thousands of changes wait for no disk. */
	const char *tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

	(void)snprintf(world, sizeof(world), "%s/pp-profile-XXXXXX", tmp);
	assert_non_null(mkdtemp(world));
	world_dir("/etc");
	world_dir("/etc/modprobe.d");
	world_dir("/etc/modules-load.d");
	world_dir("/etc/sysctl.d");
	world_file("/etc/modprobe.d/x.conf", "options a b=0", 0640); /* no end of line */
	world_file("/etc/sysctl.d/old.conf", "vm.swappiness = 10\n", 0644);
	world_file("/etc/nccl.conf", "# site\nNCCL_IB_HCA=mlx5\nNCCL_DMABUF_ENABLE=1\n", 0644);
}

static PP_UNUSED void world_remove(void)
{
	assert_int_equal(pp_tree_remove(AT_FDCWD, world), 0);
}

static PP_UNUSED void see_dir(const char *path, struct pp_buf *ret);

static PP_UNUSED void see(const char *path, struct pp_buf *ret)
{
	struct stat st;
	char text[4096];
	ssize_t n;
	int fd;

	assert_int_equal(lstat(path, &st), 0);
	pp_buf_printf(ret, "%s %o %u %u ", path + strlen(world), st.st_mode, st.st_uid, st.st_gid);
	if (S_ISDIR(st.st_mode)) {
		pp_buf_char(ret, '\n');
		see_dir(path, ret);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	assert_true(n >= 0);
	pp_buf_printf(ret, "<%.*s>\n", (int)n, text);
	(void)close(fd);
}

static PP_UNUSED int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static PP_UNUSED void see_dir(const char *path, struct pp_buf *ret)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, by_name);
	char full[512];

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
			(void)snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
			see(full, ret);
		}
		free(names[i]);
	}
	free(names);
}

/* All of /etc, as text; the caller frees it. */
static PP_UNUSED char *seen(void)
{
	struct pp_buf b = PP_BUF(1 << 20);
	char etc[256];

	(void)snprintf(etc, sizeof(etc), "%s/etc", world);
	see_dir(etc, &b);
	assert_int_equal(b.failed, 0);
	return b.data ? b.data : strdup("");
}

static PP_UNUSED struct pp_disk world_disk(void)
{
	struct pp_disk d;
	struct pp_error err = {0};

	assert_int_equal(pp_disk_open(world, &d, &err), 0);
	return d;
}

/* Applies, or rolls back for NULL; as the verbs do it. */
static PP_UNUSED int change(const struct pp_disk *d, const struct pp_profile *p,
			    struct pp_error *err)
{
	enum pp_recovery recovery = PP_RECOVERY_NONE;
	struct pp_change *c = NULL;
	struct pp_state s;
	int r = pp_state_read(d, &s, err);

	r = r ? r : pp_state_lock(&s, err);
	r = r ? r : pp_commit_recover(&s, &recovery, err);
	if (!r && p)
		r = pp_change_make(&s, p, &c, err);
	if (!r)
		r = p ? pp_commit_apply(&s, c, err) : pp_commit_rollback(&s, err);
	pp_change_free(c);
	pp_state_done(&s);
	return r;
}

static PP_UNUSED void done(const struct pp_profile *p)
{
	struct pp_disk d = world_disk();
	struct pp_error err = {0};

	if (change(&d, p, &err))
		fail_msg("%s", err.text);
	pp_disk_close(&d);
}

/* The next start of a verb: whatever is unfinished is completed or undone. */
static PP_UNUSED int recover(const struct pp_disk *d, struct pp_error *err)
{
	enum pp_recovery recovery;
	struct pp_state s;
	int r = pp_state_read(d, &s, err);

	r = r ? r : pp_state_lock(&s, err);
	r = r ? r : pp_commit_recover(&s, &recovery, err);
	pp_state_done(&s);
	return r;
}

/* The same, where nothing may go wrong; what is in effect then. */
static PP_UNUSED void recovered(char name[64])
{
	struct pp_disk d = world_disk();
	struct pp_error err = {0};
	struct pp_state s;

	if (recover(&d, &err) || pp_state_read(&d, &s, &err))
		fail_msg("%s", err.text);
	assert_false(s.unfinished);
	(void)snprintf(name, 64, "%s", s.current ? s.current->name : "none");
	pp_state_done(&s);
	pp_disk_close(&d);
}

#endif
