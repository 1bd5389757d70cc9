/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVIDIA kernel module and the modules beside it.
 *
 * A loaded module proves nothing of its use.
 */
#include "node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/version.h"
#include "node/module.h"
#include "node/nvidia.h"
#include "base/banned.h"

static const char PROC_MODULES[] = "/proc/modules", SYS_MODULE[] = "/sys/module";
static const char MEMORY_PEERS[] = "/sys/kernel/mm/memory_peers";

static struct pp_module set_loaded(struct pp_node *n, const struct pp_modules *l,
				   enum pp_fact_id id, const char *module)
{
	struct pp_module st = pp_module_find(n->src, l, module);

	if (st.presence == PP_MODULE_UNKNOWN)
		pp_fact_unknown(&n->facts, n->self, id, st.source, "%s", st.why);
	else
		pp_fact_bool(&n->facts, n->self, id, st.presence == PP_MODULE_LOADED, st.source);
	return st;
}

/* A fact that only a loaded module has. */
static void set_file(struct pp_node *n, enum pp_fact_id id, const struct pp_module *st,
		     const char *module, const char *file)
{
	char path[PP_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s/%s", SYS_MODULE, module, file);
	if (st->presence == PP_MODULE_NOT_LOADED)
		pp_fact_unknown(&n->facts, n->self, id, st->source, "%s is not loaded", module);
	else
		(void)pp_node_file(n, n->self, id, path);
}

/* /proc/modules counts the same references. */
static void set_refcnt(struct pp_node *n, const struct pp_module *st)
{
	int64_t users;

	set_file(n, PP_F_PEERMEM_REFCNT, st, "nvidia_peermem", "refcnt");
	if (!pp_fact_get(n->self, PP_F_PEERMEM_REFCNT)->known && st->presence == PP_MODULE_LOADED &&
	    !pp_parse_i64(st->users, 0, INT64_MAX, &users))
		pp_fact_int(&n->facts, n->self, PP_F_PEERMEM_REFCNT, users, PROC_MODULES);
}

/*
 * Is its client registered with the RDMA core? Kernels whose peer memory keeps a directory of
 * clients show it; newer ones dropped the directory, so that its absence says nothing. References
 * come through the RDMA core only, so one is proof. The legacy nv_peer_mem has a client of the
 * same name: with both modules about, the name does not tell whose it is.
 */
static void set_client(struct pp_node *n, const struct pp_module *st,
		       const struct pp_module *legacy)
{
	struct pp_facts *f = &n->facts;
	struct pp_names names = {0};
	bool client;
	int r;

	if (st->presence == PP_MODULE_NOT_LOADED)
		return pp_fact_bool(f, n->self, PP_F_PEERMEM_CLIENT, false, st->source);
	if (pp_fact_int_or(n->self, PP_F_PEERMEM_REFCNT, 0) > 0)
		return pp_fact_bool(f, n->self, PP_F_PEERMEM_CLIENT, true,
				    "/sys/module/nvidia_peermem/refcnt");
	r = pp_source_list(n->src, MEMORY_PEERS, &names);
	client = pp_names_hold(&names, "nv_mem") || pp_names_hold(&names, "nv_mem_nc");
	pp_names_done(&names);
	if (r)
		pp_fact_unknown(f, n->self, PP_F_PEERMEM_CLIENT, MEMORY_PEERS, "%s: %s%s",
				MEMORY_PEERS, pp_source_why(r),
				r == -ENOENT
					? "; newer peer-memory kernels keep no such directory, "
					  "so its absence proves nothing"
					: "");
	else if (client && legacy->presence != PP_MODULE_NOT_LOADED)
		pp_fact_unknown(
			f, n->self, PP_F_PEERMEM_CLIENT, MEMORY_PEERS,
			"a client of this name is registered, but nv_peer_mem has the same");
	else
		pp_fact_bool(f, n->self, PP_F_PEERMEM_CLIENT, client, MEMORY_PEERS);
}

static void collect_peermem(struct pp_node *n, const struct pp_modules *l)
{
	struct pp_module legacy = set_loaded(n, l, PP_F_NV_PEER_MEM_LOADED, "nv_peer_mem");
	struct pp_module st = set_loaded(n, l, PP_F_PEERMEM_LOADED, "nvidia_peermem");

	set_file(n, PP_F_PEERMEM_VERSION, &st, "nvidia_peermem", "version");
	set_file(n, PP_F_PEERMEM_PERSISTENT, &st, "nvidia_peermem",
		 "parameters/persistent_api_support");
	set_refcnt(n, &st);
	set_client(n, &st, &legacy);
}

void pp_collect_modules(struct pp_node *n)
{
	struct pp_modules l;
	struct pp_module st;

	pp_modules_read(n->src, &l);
	st = set_loaded(n, &l, PP_F_NVIDIA_LOADED, "nvidia");
	/* A sandbox may show the driver without the modules of the kernel that runs it. */
	if (st.presence != PP_MODULE_LOADED && pp_nvidia_speaks(n->src)) {
		l.foreign = true;
		st.presence = PP_MODULE_LOADED;
		pp_fact_bool(&n->facts, n->self, PP_F_NVIDIA_LOADED, true, PP_NVIDIA_VERSION_FILE);
	}
	pp_nvidia_read(n, st.presence == PP_MODULE_NOT_LOADED);
	collect_peermem(n, &l);
	st = set_loaded(n, &l, PP_F_GDRDRV_LOADED, "gdrdrv");
	set_file(n, PP_F_GDRDRV_VERSION, &st, "gdrdrv", "version");
	st = set_loaded(n, &l, PP_F_NVIDIA_FS_LOADED, "nvidia_fs");
	set_file(n, PP_F_NVIDIA_FS_VERSION, &st, "nvidia_fs", "version");
	pp_modules_done(&l);
}
