/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the port counted: the files of counters/ and hw_counters/, whatever their names, and what
 * the driver of its interface tells of loss and of flow control by ethtool's ioctl; so that
 * what moved is seen also where no fact has it. A counter of loss is told though it did not move:
 * that it was seen is what a pass needs.
 */
#include "bench/agent_state.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "node/ethtool.h"
#include "node/source.h"
#include "base/banned.h"

/* The kernel keeps hw_counters for so long unless told; a made /sys is a tenth of a second old. */
enum { LIFESPAN_MS = 10, LIFESPAN_MOST_MS = 1000, SOFTWARE_MS = 110 };

static void keep(void *arg, const char *name, int64_t value)
{
	struct pp_counters *c = arg;

	if (c->n == PP_AGENT_COUNTERS || strlen(name) >= sizeof(c->one[0].name))
		return;
	(void)snprintf(c->one[c->n].name, sizeof(c->one[0].name), "%s", name);
	c->one[c->n++].value = value;
}

static void read_one(struct pp_source *src, const char *dir, const char *name,
		     struct pp_counters *ret)
{
	char path[PP_PATH_MAX], text[64];
	int64_t value;

	if (pp_path_join(dir, name, path) || pp_source_text(src, path, text, sizeof(text)) ||
	    pp_parse_i64(text, 0, INT64_MAX, &value))
		return;
	keep(ret, name, value);
}

void pp_counters_read(const char *device, unsigned int port, const char *netdev,
		      struct pp_counters *ret)
{
	/* lifespan is how long the driver keeps the others; it counts nothing */
	static const char *const dirs[] = {"counters", "hw_counters"}, lifespan[] = "lifespan";
	struct pp_source *src;
	struct pp_error err;
	struct pp_names names;
	char dir[512];

	ret->n = 0;
	if (!*device || strchr(device, '/') || pp_source_live(&src, &err))
		return;
	for (size_t d = 0; d < PP_ARRAY_LEN(dirs); d++) {
		(void)snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s/ports/%u/%s", device,
			       port, dirs[d]);
		if (pp_source_list(src, dir, &names))
			continue;
		for (size_t i = 0; i < names.n; i++)
			if (strcmp(names.name[i], lifespan) != 0)
				read_one(src, dir, names.name[i], ret);
		pp_names_done(&names);
	}
	pp_source_free(src);
	/* pauses and discards of each priority: the driver's, which no file shows */
	if (*netdev)
		(void)pp_ethtool_stats(netdev, keep, ret);
}

void pp_counters_settle(const char *device, unsigned int port, bool software)
{
	struct pp_source *src;
	struct pp_error err;
	char path[512], text[64];
	int64_t ms = LIFESPAN_MS;

	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/hw_counters/lifespan",
		       device, port);
	if (!software && !strchr(device, '/') && !pp_source_live(&src, &err)) {
		if (pp_source_text(src, path, text, sizeof(text)) ||
		    pp_parse_i64(text, 0, LIFESPAN_MOST_MS, &ms))
			ms = LIFESPAN_MS;
		pp_source_free(src);
	}
	(void)poll(NULL, 0, (int)(software ? SOFTWARE_MS : ms + 1));
}

void pp_counters_write(struct pp_json *j, const char *key, const struct pp_counters *before,
		       const struct pp_counters *after)
{
	pp_json_object(j, key);
	for (unsigned int i = 0; i < after->n; i++) {
		for (unsigned int k = 0; k < before->n; k++) {
			if (strcmp(before->one[k].name, after->one[i].name) != 0)
				continue;
			if (after->one[i].value != before->one[k].value ||
			    pp_counter_loss(after->one[i].name) != PP_LOSSES)
				pp_json_i64(j, after->one[i].name,
					    after->one[i].value - before->one[k].value);
			break;
		}
	}
	pp_json_end_object(j);
}
