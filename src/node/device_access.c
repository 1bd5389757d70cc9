/* SPDX-License-Identifier: Apache-2.0 */
#include "node/device_access.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

enum { MAX_NODES = 8192, MAX_ERRNO = 4095 };

/* Reports each node of @dir whose name starts with @prefix; the errno of opening the directory. */
static int look(struct pp_json *data, const char *dir, const char *prefix)
{
	const struct dirent *e;
	char path[320];
	DIR *d = opendir(dir);
	int nodes = 0;

	if (!d)
		return errno;
	while ((e = readdir(d)) && nodes < MAX_NODES) {
		if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
		    e->d_type == DT_DIR)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		pp_json_i64(data, path, access(path, R_OK | W_OK) ? errno : 0);
		nodes++;
	}
	(void)closedir(d);
	return 0;
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	int infiniband, dev;

	(void)arg;
	pp_ask_doing("access(/dev)");
	pp_json_object(data, "nodes");
	infiniband = look(data, "/dev/infiniband", "");
	dev = look(data, "/dev", "nvidia");
	pp_json_end_object(data);
	/* No directory proves absence only where /dev itself can be looked at. */
	if (infiniband == ENOENT && dev)
		infiniband = dev;
	pp_json_i64(data, "infiniband_errno", infiniband);
	return dev && infiniband ? pp_error_set(err, -dev, "/dev: %s", pp_source_why(-dev)) : 0;
}

int pp_ask_device_access(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "devices", .run = run};

	return pp_ask(s, &q, ret);
}

int pp_device_access_uverbs(const struct pp_answer *a, const char *uverbs)
{
	char path[128];
	int64_t error;

	(void)snprintf(path, sizeof(path), "/dev/infiniband/%s", uverbs);
	if (!pp_answer_i64(json_object_get(a->data, "nodes"), path, &error))
		return error >= 0 && error <= MAX_ERRNO ? (int)error : -EBADMSG;
	if (a->answered && !pp_answer_i64(a->data, "infiniband_errno", &error) &&
	    (error == 0 || error == ENOENT))
		return ENOENT;
	return -ENODATA;
}
