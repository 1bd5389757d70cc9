/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GID table of a port: <port>/gids/<i>, <port>/gid_attrs/{types,ndevs}/<i>.
 *
 * A RoCE table has 256 entries and a node may have hundreds of ports. The kernel puts a new GID
 * into the first free entry (ib_cache.c), so holes come from addresses that were removed and are
 * short. Reading therefore stops at GAP empty entries in a row once GAP entries were seen: about
 * 20 files a port instead of 256. The directory is not listed, because a recording would keep all
 * its names.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "node/gid.h"
#include "node/hca.h"
#include "base/banned.h"

enum { VALUE_BYTES = 128, MAX_ENTRIES = 1024, GAP = 16 };

struct table {
	struct pp_hca *hca;
	struct pp_object *port;
	const char *dir;
	bool ethernet;
	const char *line[MAX_ENTRIES];
	unsigned int n;
	int v2, v2_ipv4; /* first index, -1 none */
	bool whole;	 /* every entry up to the stop was understood */
	char why[160];	 /* first entry that was not */
	char *netdev;	 /* of the first entry that names one */
};

static int entry_text(struct table *t, const char *what, unsigned int i, char text[VALUE_BYTES])
{
	char path[PP_PATH_MAX], name[64];

	(void)snprintf(name, sizeof(name), "%s/%u", what, i);
	if (pp_path_join(t->dir, name, path))
		return -ENAMETOOLONG;
	return pp_source_text(t->hca->node->src, path, text, VALUE_BYTES);
}

static void not_whole(struct table *t, const char *what, unsigned int i, const char *why)
{
	if (t->whole)
		(void)snprintf(t->why, sizeof(t->why), "%s/%u: %s", what, i, why);
	t->whole = false;
}

static void add_line(struct table *t, unsigned int i, const char *gid, const char *type,
		     const char *netdev)
{
	t->line[t->n++] = pp_arena_printf(&t->hca->node->arena, "%u: %s%s%s%s%s", i, gid,
					  *type ? " " : "", type, *netdev ? " " : "", netdev);
}

/* A valid interface name as the kernel's dev_valid_name() has it. */
static bool is_netdev(const char *name)
{
	return *name && strlen(name) < PP_NETDEV_NAME && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && !strpbrk(name, "/: \t\n");
}

static void add_entry(struct table *t, unsigned int i, const struct pp_gid *gid)
{
	char text[PP_GID_TEXT], type[VALUE_BYTES] = "", netdev[VALUE_BYTES] = "";
	bool v2;

	(void)pp_gid_format(gid, text);
	if (entry_text(t, "gid_attrs/ndevs", i, netdev) || !is_netdev(netdev))
		netdev[0] = '\0';
	if (*netdev && !*t->netdev)
		(void)snprintf(t->netdev, PP_NETDEV_NAME, "%s", netdev);
	/* Only RoCE has more than one type. */
	if (!t->ethernet)
		return add_line(t, i, text, "", netdev);
	if (entry_text(t, "gid_attrs/types", i, type)) {
		not_whole(t, "gid_attrs/types", i, "unreadable");
		return add_line(t, i, text, "type unknown", netdev);
	}
	v2 = !strcmp(type, "RoCE v2");
	if (!v2 && strcmp(type, "IB/RoCE v1") != 0)
		not_whole(t, "gid_attrs/types", i, "not understood");
	add_line(t, i, text, type, netdev);
	if (v2 && t->v2 < 0 && !pp_gid_is_link_local(gid))
		t->v2 = (int)i;
	if (v2 && t->v2_ipv4 < 0 && pp_gid_is_ipv4(gid))
		t->v2_ipv4 = (int)i;
}

/* 0 at the end of the table or at the stop; -ENOENT and others: there is no table. */
static int read_entries(struct table *t)
{
	char text[VALUE_BYTES], next[VALUE_BYTES];
	unsigned int empty = 0;
	struct pp_gid gid;
	int r;

	for (unsigned int i = 0; i < MAX_ENTRIES && (i < GAP || empty < GAP); i++) {
		r = entry_text(t, "gids", i, text);
		if (r && i == 0)
			return r;
		/* The table ends here, unless it goes on: then this one entry is missing. */
		if (r == -ENOENT && entry_text(t, "gids", i + 1, next) == -ENOENT)
			return 0;
		/* In a recording that was cut nothing says where it ends. */
		if (r == -ENODATA && entry_text(t, "gids", i + 1, next) == -ENODATA) {
			not_whole(t, "gids", i, pp_source_why(r));
			add_line(t, i, "unreadable", "", "");
			return 0;
		}
		if (r || pp_gid_parse(text, &gid)) {
			not_whole(t, "gids", i, r ? pp_source_why(r) : "not understood");
			add_line(t, i, "unreadable", "", "");
			empty = 0;
			continue;
		}
		empty = pp_gid_is_zero(&gid) ? empty + 1 : 0;
		if (!empty)
			add_entry(t, i, &gid);
	}
	return 0;
}

/* "None" may be said only of a table that was understood as far as it was read. */
static void set_index(struct table *t, enum pp_fact_id id, int index, const char *path)
{
	struct pp_facts *f = &t->hca->node->facts;

	if (index >= 0 || t->whole)
		pp_fact_int(f, t->port, id, index, path);
	else
		pp_fact_unknown(f, t->port, id, path, "%s/%s", t->dir, t->why);
}

void pp_port_read_gids(struct pp_hca *h, struct pp_object *port, const char *dir, bool ethernet,
		       char ret_netdev[PP_NETDEV_NAME])
{
	static const enum pp_fact_id ids[] = {PP_F_PORT_GIDS, PP_F_PORT_GID_V2,
					      PP_F_PORT_GID_V2_IPV4};
	struct table t = {.hca = h,
			  .port = port,
			  .dir = dir,
			  .ethernet = ethernet,
			  .v2 = -1,
			  .v2_ipv4 = -1,
			  .whole = true,
			  .netdev = ret_netdev};
	char path[PP_PATH_MAX];
	int r = pp_path_join(dir, "gids", path);

	ret_netdev[0] = '\0';
	if (!r)
		r = read_entries(&t);
	for (size_t i = 0; r && i < (ethernet ? PP_ARRAY_LEN(ids) : 1); i++)
		pp_fact_unknown(&h->node->facts, port, ids[i], path, "%s/0: %s", path,
				pp_source_why(r));
	if (r)
		return;
	pp_fact_list(&h->node->facts, port, PP_F_PORT_GIDS, t.line, t.n, path);
	if (!ethernet)
		return;
	set_index(&t, PP_F_PORT_GID_V2, t.v2, path);
	set_index(&t, PP_F_PORT_GID_V2_IPV4, t.v2_ipv4, path);
}
