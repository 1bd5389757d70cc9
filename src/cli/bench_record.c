/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/place.h"
#include "cli/simulation.h"
#include "cli/ward.h"
#include "base/banned.h"

static const off_t RECORD_MOST = (off_t)32 << 20;

static void capture(char *file)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	self[n < 0 ? 0 : n] = '\0';
	pp_simulation_forget();
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0)
		_exit(1);
	(void)execl(self, self, "capture", "-o", file, (char *)NULL);
	_exit(1);
}

/* Whoever is told to go takes the capture along. */
static int run_capture(char *file)
{
	struct pp_ward w;
	int r = pp_ward_start(&w), status;

	if (r)
		return r;
	if (!w.pid) {
		pp_ward_admit(&w);
		capture(file);
	}
	status = pp_ward_wait(&w, SIGKILL);
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

static int read_file(const char *file, char **ret, size_t *ret_len)
{
	int PP_AUTO_CLOSE fd = open(file, O_RDONLY | O_CLOEXEC);
	PP_AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (st.st_size > RECORD_MOST)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	while (len < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + len, (size_t)st.st_size - len);

		if (n <= 0 && errno != EINTR)
			return n ? -errno : -EIO;
		len += n > 0 ? (size_t)n : 0;
	}
	*ret = pp_take(bytes);
	*ret_len = len;
	return 0;
}

int pp_bench_record(char **ret, size_t *ret_len, const void *arg)
{
	struct pp_error err = {0};
	struct pp_place place;
	char file[PATH_MAX];
	int r;

	(void)arg;
	/* When the node's process is killed the archive is still removed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	r = pp_place_make(PP_PLACE_RECORD, &place, &err);
	if (r)
		return r;
	(void)snprintf(file, sizeof(file), "%s/node.tar.zst", place.path);
	r = run_capture(file);
	r = r ? r : read_file(file, ret, ret_len);
	pp_place_done(&place);
	return r;
}
