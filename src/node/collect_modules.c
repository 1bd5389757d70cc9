/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVIDIA kernel module and the modules beside it.
 *
 * A module counts as loaded when /proc/modules lists it as live, or when /sys/module has it and
 * /proc/modules does not (built in). It counts as not loaded only when one of the two could be
 * read. A loaded module proves nothing of its use.
 */
#include "node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/version.h"
#include "node/nvidia.h"
#include "base/banned.h"

/* A large machine lists some 300 modules in 30 KiB. */
enum { LIST_BYTES = 256 << 10, TEXT_BYTES = 256 };

static const char PROC_MODULES[] = "/proc/modules", SYS_MODULE[] = "/sys/module";
static const char MEMORY_PEERS[] = "/sys/kernel/mm/memory_peers";

/*
 * Every kernel has this one built in. A recording may hold a part of /sys/module only, and what a
 * part does not list is not absent.
 */
static const char ALWAYS[] = "kernel";

enum presence { NOT_LOADED, LOADED, UNKNOWN };

struct state {
	enum presence presence;
	char why[TEXT_BYTES]; /* of UNKNOWN */
	char users[24];	      /* use count as /proc/modules says, "" when it does not */
	const char *source;
};

/* What can be known of any module. */
struct list {
	char *proc; /* text of /proc/modules; NULL when unreadable */
	int proc_error;
	struct pp_names sys; /* names in /sys/module, read only in place of the other */
	int sys_error;
	bool foreign; /* lists no nvidia, though the driver runs: not the driver's kernel */
};

static bool names_hold(const struct pp_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

static void list_read(struct pp_source *s, struct list *l)
{
	size_t len = 0;

	*l = (struct list){.proc = malloc(LIST_BYTES + 1), .proc_error = -ENOMEM, .sys_error = 1};
	if (l->proc)
		l->proc_error = pp_source_read(s, PROC_MODULES, l->proc, LIST_BYTES, &len);
	if (!l->proc_error && (!pp_is_text(l->proc, len)))
		l->proc_error = -EBADMSG;
	if (!l->proc_error) {
		l->proc[len] = '\0';
		return;
	}
	free(pp_take(l->proc));
	l->sys_error = pp_source_list(s, SYS_MODULE, &l->sys);
	if (!l->sys_error && !names_hold(&l->sys, ALWAYS))
		l->sys_error = -ENODATA;
}

static void list_done(struct list *l)
{
	free(l->proc);
	pp_names_done(&l->sys);
}

/* The module's line of /proc/modules, "nvidia_peermem 16384 0 - Live 0x0 (OE)"; NULL if none. */
static const char *line_of(const char *proc, const char *module)
{
	size_t len = strlen(module);

	for (const char *p = proc; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (!strncmp(p, module, len) && p[len] == ' ')
			return p;
	return NULL;
}

/* Field number @want of a line, from 0; "" when there is none or it is too long. */
static void field(const char *line, unsigned int want, char *ret, size_t size)
{
	size_t len;

	for (*ret = '\0'; *line && *line != '\n'; line += len) {
		line += *line == ' ';
		len = strcspn(line, " \n");
		if (want--)
			continue;
		if (len < size) {
			memcpy(ret, line, len);
			ret[len] = '\0';
		}
		return;
	}
}

/* Is it in /sys/module without being in the list: built in, or the list could not be read? */
static struct state in_sys(struct pp_source *s, const struct list *l, const char *module)
{
	struct state st = {.source = SYS_MODULE};
	char path[PP_PATH_MAX];
	struct pp_names names;
	int r = -ENOENT;

	if (!l->proc && l->sys_error && !names_hold(&l->sys, module)) {
		st.presence = UNKNOWN;
		(void)snprintf(st.why, sizeof(st.why), "%s: %s; %s: %s", PROC_MODULES,
			       pp_source_why(l->proc_error), SYS_MODULE,
			       l->sys_error == -ENODATA ? "not whole"
							: pp_source_why(l->sys_error));
		return st;
	}
	(void)pp_path_join(SYS_MODULE, module, path);
	if (l->proc) {
		r = pp_source_list(s, path, &names);
		if (!r)
			pp_names_done(&names);
	}
	if (names_hold(&l->sys, module))
		r = 0;
	st.presence = !r ? LOADED : r == -ENOENT && !l->foreign ? NOT_LOADED : UNKNOWN;
	if (r == -ENOENT)
		(void)snprintf(st.why, sizeof(st.why),
			       "%s shows a driver that %s does not list: the modules of its "
			       "kernel are not visible here",
			       PP_NVIDIA_VERSION_FILE, l->proc ? PROC_MODULES : SYS_MODULE);
	else
		(void)snprintf(st.why, sizeof(st.why), "%s/%s: %s", SYS_MODULE, module,
			       pp_source_why(r));
	return st;
}

static struct state find(struct pp_source *s, const struct list *l, const char *module)
{
	struct state st = {.presence = LOADED, .source = PROC_MODULES};
	const char *line = l->proc ? line_of(l->proc, module) : NULL;
	char word[16];

	if (!line)
		return in_sys(s, l, module);
	field(line, 2, st.users, sizeof(st.users));
	field(line, 4, word, sizeof(word));
	if (strcmp(word, "Live") != 0) {
		st.presence = UNKNOWN;
		(void)snprintf(st.why, sizeof(st.why), "%s: its state is '%s', not 'Live'",
			       PROC_MODULES, word);
	}
	return st;
}

static struct state set_loaded(struct pp_node *n, const struct list *l, enum pp_fact_id id,
			       const char *module)
{
	struct state st = find(n->src, l, module);

	if (st.presence == UNKNOWN)
		pp_fact_unknown(&n->facts, n->self, id, st.source, "%s", st.why);
	else
		pp_fact_bool(&n->facts, n->self, id, st.presence == LOADED, st.source);
	return st;
}

/* A fact that only a loaded module has. */
static void set_file(struct pp_node *n, enum pp_fact_id id, const struct state *st,
		     const char *module, const char *file)
{
	char path[PP_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s/%s", SYS_MODULE, module, file);
	if (st->presence == NOT_LOADED)
		pp_fact_unknown(&n->facts, n->self, id, st->source, "%s is not loaded", module);
	else
		(void)pp_node_file(n, n->self, id, path);
}

/* /proc/modules counts the same references. */
static void set_refcnt(struct pp_node *n, const struct state *st)
{
	int64_t users;

	set_file(n, PP_F_PEERMEM_REFCNT, st, "nvidia_peermem", "refcnt");
	if (!pp_fact_get(n->self, PP_F_PEERMEM_REFCNT)->known && st->presence == LOADED &&
	    !pp_parse_i64(st->users, 0, INT64_MAX, &users))
		pp_fact_int(&n->facts, n->self, PP_F_PEERMEM_REFCNT, users, PROC_MODULES);
}

/*
 * Is its client registered with the RDMA core? Kernels whose peer memory keeps a directory of
 * clients show it; newer ones dropped the directory, so that its absence says nothing. References
 * come through the RDMA core only, so one is proof. The legacy nv_peer_mem has a client of the
 * same name: with both modules about, the name does not tell whose it is.
 */
static void set_client(struct pp_node *n, const struct state *st, const struct state *legacy)
{
	struct pp_facts *f = &n->facts;
	struct pp_names names = {0};
	bool client;
	int r;

	if (st->presence == NOT_LOADED)
		return pp_fact_bool(f, n->self, PP_F_PEERMEM_CLIENT, false, st->source);
	if (pp_fact_int_or(n->self, PP_F_PEERMEM_REFCNT, 0) > 0)
		return pp_fact_bool(f, n->self, PP_F_PEERMEM_CLIENT, true,
				    "/sys/module/nvidia_peermem/refcnt");
	r = pp_source_list(n->src, MEMORY_PEERS, &names);
	client = names_hold(&names, "nv_mem") || names_hold(&names, "nv_mem_nc");
	pp_names_done(&names);
	if (r)
		pp_fact_unknown(f, n->self, PP_F_PEERMEM_CLIENT, MEMORY_PEERS, "%s: %s%s",
				MEMORY_PEERS, pp_source_why(r),
				r == -ENOENT
					? "; newer peer-memory kernels keep no such directory, "
					  "so its absence proves nothing"
					: "");
	else if (client && legacy->presence != NOT_LOADED)
		pp_fact_unknown(
			f, n->self, PP_F_PEERMEM_CLIENT, MEMORY_PEERS,
			"a client of this name is registered, but nv_peer_mem has the same");
	else
		pp_fact_bool(f, n->self, PP_F_PEERMEM_CLIENT, client, MEMORY_PEERS);
}

static void collect_peermem(struct pp_node *n, const struct list *l)
{
	struct state legacy = set_loaded(n, l, PP_F_NV_PEER_MEM_LOADED, "nv_peer_mem");
	struct state st = set_loaded(n, l, PP_F_PEERMEM_LOADED, "nvidia_peermem");

	set_file(n, PP_F_PEERMEM_VERSION, &st, "nvidia_peermem", "version");
	set_file(n, PP_F_PEERMEM_PERSISTENT, &st, "nvidia_peermem",
		 "parameters/persistent_api_support");
	set_refcnt(n, &st);
	set_client(n, &st, &legacy);
}

void pp_collect_modules(struct pp_node *n)
{
	struct list l;
	struct state st;

	list_read(n->src, &l);
	st = set_loaded(n, &l, PP_F_NVIDIA_LOADED, "nvidia");
	/* A sandbox may show the driver without the modules of the kernel that runs it. */
	if (st.presence != LOADED && pp_nvidia_speaks(n->src)) {
		l.foreign = st.presence == NOT_LOADED;
		st.presence = LOADED;
		pp_fact_bool(&n->facts, n->self, PP_F_NVIDIA_LOADED, true, PP_NVIDIA_VERSION_FILE);
	}
	pp_nvidia_read(n, st.presence == NOT_LOADED);
	collect_peermem(n, &l);
	st = set_loaded(n, &l, PP_F_GDRDRV_LOADED, "gdrdrv");
	set_file(n, PP_F_GDRDRV_VERSION, &st, "gdrdrv", "version");
	st = set_loaded(n, &l, PP_F_NVIDIA_FS_LOADED, "nvidia_fs");
	set_file(n, PP_F_NVIDIA_FS_VERSION, &st, "nvidia_fs", "version");
	list_done(&l);
}
