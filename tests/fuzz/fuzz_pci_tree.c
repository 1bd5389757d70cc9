/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that lie: each line is a path below /sys/devices that the bus links to, "=class vendor"
 * behind it. Collected whole; every walk from any function must end.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/node.h"
#include "node/path.h"

enum { MAX_LINES = 64, MAX_WALKED = 24 };

static void put(struct pp_record *r, enum pp_entry_kind kind, const char *dir, const char *name,
		const char *content)
{
	char path[PP_PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		(void)pp_record_put(r, kind, path, content, strlen(content), 0);
}

static void put_line(struct pp_record *r, char *line)
{
	char dir[PP_PATH_MAX], *attributes = strchr(line, '='), *vendor, *name;

	if (attributes)
		*attributes++ = '\0';
	if (snprintf(dir, sizeof(dir), "/sys/devices/%s", line) >= (int)sizeof(dir))
		return;
	name = strrchr(dir, '/') + 1;
	put(r, PP_ENTRY_LINK, "/sys/bus/pci/devices", name, dir);
	vendor = attributes ? strchr(attributes, ' ') : NULL;
	if (vendor)
		*vendor++ = '\0';
	if (attributes)
		put(r, PP_ENTRY_FILE, dir, "class", attributes);
	if (vendor)
		put(r, PP_ENTRY_FILE, dir, "vendor", vendor);
}

static void walk(const struct pp_pci *pci)
{
	static const struct pp_path_hints hints = {0};
	struct pp_path p;

	for (unsigned int a = 0; a < pci->n && a < MAX_WALKED; a++) {
		for (unsigned int b = 0; b < pci->n && b < MAX_WALKED; b++) {
			if (a == b)
				continue;
			assert(pp_distance(pci, (int)a, (int)b) ==
			       pp_distance(pci, (int)b, (int)a));
			pp_path_find(pci, (int)a, (int)b, &hints, &p);
			assert(p.n_hops <= PP_PATH_HOPS);
			/* Config space was never readable: no port can be said not to redirect. */
			assert(p.route != PP_ROUTE_SWITCH || p.acs_redirect == 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), *line = text, *end;
	struct pp_record *record = NULL;
	struct pp_source *src = NULL;
	struct pp_node *node = NULL;
	struct pp_error err = {0};

	if (pp_record_new((size_t)1 << 20, &record))
		abort();
	for (int i = 0; *line && i < MAX_LINES; i++, line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		put_line(record, line);
	}
	if (pp_source_replay_record(record, &src, &err))
		abort();
	if (!pp_node_collect(src, &node, &err))
		walk(&node->pci);
	pp_node_free(node);
	pp_source_free(src);
	free(text);
	return 0;
}
