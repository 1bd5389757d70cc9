/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RDMA stack of a node: kernel modules, where the stack comes from, the libibverbs that a
 * process here loads, and its providers.
 *
 * Nothing here may load a module, so RDMA netlink is left alone when ib_core is not loaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/ask_verbs.h"
#include "node/module.h"
#include "node/node.h"
#include "node/rdma_netlink.h"
#include "base/banned.h"

enum { MAX_PROVIDERS = 128 };

static const char MODULES[] = "/sys/module";
static const char INFINIBAND[] = "/sys/class/infiniband";
static const char UVERBS[] = "/sys/class/infiniband_verbs";
static const char DRIVER_FILES[] = "/etc/libibverbs.d";

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_name(const struct pp_names *names, const char *name)
{
	return names->n && bsearch(&name, names->name, names->n, sizeof(*names->name), by_name);
}

/* A made device shows its driver: what drives it, and what shows it to user space. */
static bool has_entry(struct pp_node *n, const char *class, const char *prefix)
{
	struct pp_names names;
	bool found = false;

	if (pp_source_list(n->src, class, &names))
		return false;
	for (size_t i = 0; i < names.n; i++)
		found |= !strncmp(names.name[i], prefix, strlen(prefix));
	pp_names_done(&names);
	return found;
}

/* Is @dir below a PCI function that mlx5_core drives? NULL: is there such a function? */
static bool mlx5_drives(const struct pp_node *n, const char *dir)
{
	const struct pp_pci_dev *d;
	size_t len;

	pp_pci_foreach (&n->pci, d) {
		len = strlen(d->path);
		if (d->driver && !strcmp(d->driver, "mlx5_core") &&
		    (!dir || (!strncmp(dir, d->path, len) && dir[len] == '/')))
			return true;
	}
	return false;
}

static bool has_mlx5_device(struct pp_node *n)
{
	char path[PP_PATH_MAX], dir[PP_PATH_MAX];
	struct pp_names names;
	bool found = false;

	if (pp_source_list(n->src, INFINIBAND, &names))
		return false;
	for (size_t i = 0; i < names.n && !found; i++)
		found = !pp_path_join(INFINIBAND, names.name[i], path) &&
			!pp_source_real(n->src, path, dir) && mlx5_drives(n, dir);
	pp_names_done(&names);
	return found;
}

static void set_modules(struct pp_node *n, const struct pp_modules *modules)
{
	const struct {
		enum pp_fact_id id;
		const char *name, *shown_by;
		bool shown;
	} facts[] = {{PP_F_IB_CORE_LOADED, "ib_core", INFINIBAND, has_entry(n, INFINIBAND, "")},
		     {PP_F_IB_UVERBS_LOADED, "ib_uverbs", UVERBS, has_entry(n, UVERBS, "uverbs")},
		     {PP_F_MLX5_CORE_LOADED, "mlx5_core", "a bound function", mlx5_drives(n, NULL)},
		     {PP_F_MLX5_IB_LOADED, "mlx5_ib", INFINIBAND, has_mlx5_device(n)}};

	for (size_t i = 0; i < PP_ARRAY_LEN(facts); i++) {
		struct pp_module m = pp_module_find(n->src, modules, facts[i].name);

		if (m.presence != PP_MODULE_LOADED && facts[i].shown)
			pp_fact_bool(&n->facts, n->self, facts[i].id, true, facts[i].shown_by);
		else if (m.presence == PP_MODULE_UNKNOWN)
			pp_fact_unknown(&n->facts, n->self, facts[i].id, m.source, "%s", m.why);
		else
			pp_fact_bool(&n->facts, n->self, facts[i].id,
				     m.presence == PP_MODULE_LOADED, m.source);
	}
}

static void unknown_stack(struct pp_node *n, const char *path, int error, const char *why)
{
	pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_STACK, path, "%s: %s", path,
			why ? why : pp_source_why(error));
	pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_STACK_VERSION, path, "%s: %s", path,
			why ? why : pp_source_why(error));
}

/*
 * An out-of-tree stack shows by its compatibility module, or by the 'O' in ib_core's taint. A
 * built-in ib_core has no taint file; its directory without one is therefore inbox.
 */
static void set_stack(struct pp_node *n, int error, const struct pp_names *modules)
{
	static const char core[] = "/sys/module/ib_core",
			  taint_path[] = "/sys/module/ib_core/taint";
	struct pp_names files = {0};
	bool out_of_tree = !error && has_name(modules, "mlx_compat");
	char taint[32] = "";
	int r;

	if (error)
		return unknown_stack(n, MODULES, error, NULL);
	if (!has_name(modules, "ib_core"))
		return unknown_stack(n, core, 0, "ib_core is not loaded");
	if (!out_of_tree) {
		r = pp_source_list(n->src, core, &files);
		if (r)
			return unknown_stack(n, core, r, NULL);
		if (has_name(&files, "taint"))
			r = pp_source_text(n->src, taint_path, taint, sizeof(taint));
		else if (has_name(&files, "initstate"))
			r = -ENOENT; /* a loaded module shows both: this listing is not whole */
		pp_names_done(&files);
		if (r)
			return unknown_stack(n, taint_path, r, NULL);
		out_of_tree = strchr(taint, 'O') != NULL;
	}
	pp_fact_str(&n->facts, n->self, PP_F_RDMA_STACK, out_of_tree ? "out-of-tree" : "inbox",
		    out_of_tree ? MODULES : taint_path);
	if (out_of_tree) {
		(void)pp_node_file(n, n->self, PP_F_RDMA_STACK_VERSION,
				   "/sys/module/mlx5_core/version");
		return;
	}
	if (pp_fact_str_or(n->self, PP_F_KERNEL_RELEASE, NULL))
		pp_fact_str(&n->facts, n->self, PP_F_RDMA_STACK_VERSION,
			    pp_fact_str_or(n->self, PP_F_KERNEL_RELEASE, ""), "kernel.release");
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_STACK_VERSION, NULL,
				"the inbox stack has the kernel's release, which is unknown");
}

/* "libibverbs.so.1.14.44.0": release 1.14.44.0, of rdma-core 44. */
static void set_version(struct pp_node *n, const char *real)
{
	const char *version = strstr(real, ".so.");
	size_t parts = 0, len;
	char core[16];
	int64_t number = 0;

	version = version ? version + 4 : "";
	if (strspn(version, "0123456789.") != strlen(version))
		version = "";
	for (const char *p = version; *p; p++)
		parts += *p == '.';
	if (parts != 3) {
		pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_VERSION, real,
				"'%s' does not name a release", real);
		pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_RDMA_CORE, real,
				"'%s' does not name a release", real);
		return;
	}
	pp_fact_str(&n->facts, n->self, PP_F_IBVERBS_VERSION, version, real);
	for (int i = 0; i < 2; i++)
		version += strcspn(version, ".") + 1;
	len = strcspn(version, ".");
	if (len < sizeof(core)) {
		memcpy(core, version, len);
		core[len] = '\0';
		if (!pp_parse_i64(core, 1, 100000, &number))
			return pp_fact_int(&n->facts, n->self, PP_F_IBVERBS_RDMA_CORE, number,
					   real);
	}
	pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_RDMA_CORE, real,
			"'%s' does not name a release", real);
}

/*
 * libibverbs loads lib<name>-rdmavNN.so from its provider directory for each "driver <name>" of
 * the driver files: a provider counts when both are there.
 */
static int read_providers(struct pp_node *n, const char *dir, const char **ret, size_t *ret_n,
			  const char **ret_path)
{
	struct pp_names libs = {0}, drivers = {0};
	const char *end, *name;
	size_t count = 0;
	int r = pp_source_list(n->src, dir, &libs);

	*ret_path = dir;
	if (r)
		return r;
	*ret_path = DRIVER_FILES;
	r = pp_source_list(n->src, DRIVER_FILES, &drivers);
	for (size_t i = 0; !r && i < libs.n && count < MAX_PROVIDERS; i++) {
		end = strstr(libs.name[i], "-rdmav");
		if (!end || strncmp(libs.name[i], "lib", 3) != 0 || end - libs.name[i] <= 3)
			continue;
		name = pp_arena_strn(&n->arena, libs.name[i] + 3, (size_t)(end - libs.name[i]) - 3);
		if (has_name(&drivers, pp_arena_printf(&n->arena, "%s.driver", name)))
			ret[count++] = name;
	}
	pp_names_done(&libs);
	pp_names_done(&drivers);
	*ret_n = count;
	return r;
}

static void set_providers(struct pp_node *n, const char *real)
{
	const char *names[MAX_PROVIDERS], *path;
	char dir[PP_PATH_MAX];
	size_t count = 0;
	int r = pp_path_normal(real) ? pp_path_join(real, "../libibverbs", dir) : -EINVAL;

	/* Another root is another machine's tree: the library of this process is not its. */
	if (!r && !pp_source_exists(n->src, real) && pp_source_mode(n->src) == PP_SOURCE_ROOT)
		return pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_PROVIDERS, real,
				       "the library of this process is not in the root's tree");
	path = real;
	if (!r)
		r = read_providers(n, dir, names, &count, &path);
	if (r)
		pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_PROVIDERS, path, "%s: %s", path,
				pp_source_why(r));
	else
		pp_fact_list(&n->facts, n->self, PP_F_IBVERBS_PROVIDERS, names, count, dir);
}

static void set_library(struct pp_node *n)
{
	static const enum pp_fact_id facts[] = {PP_F_IBVERBS_PATH, PP_F_IBVERBS_VERSION,
						PP_F_IBVERBS_RDMA_CORE, PP_F_IBVERBS_DMABUF,
						PP_F_IBVERBS_PROVIDERS};
	struct pp_answer a;
	const char *path, *real;
	bool dmabuf;

	if (pp_ask_verbs_library(n->src, &a)) {
		n->arena.failed = true;
		return;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(facts); i++)
		pp_fact_unknown(&n->facts, n->self, facts[i], "dlopen libibverbs.so.1", "%s",
				a.answered ? "the answer does not say" : a.detail);
	path = a.answered ? pp_answer_str(a.data, "path") : NULL;
	real = a.answered ? pp_answer_str(a.data, "real") : NULL;
	if (path)
		pp_fact_str(&n->facts, n->self, PP_F_IBVERBS_PATH, path, "dlopen libibverbs.so.1");
	if (real) {
		set_version(n, real);
		set_providers(n, real);
	}
	if (a.answered && !pp_answer_bool(a.data, "reg_dmabuf_mr", &dmabuf))
		pp_fact_bool(&n->facts, n->self, PP_F_IBVERBS_DMABUF, dmabuf,
			     "dlvsym ibv_reg_dmabuf_mr@IBVERBS_1.12");
	pp_answer_done(&a);
}

static void set_netns_mode(struct pp_node *n)
{
	const struct pp_fact *core = pp_fact_get(n->self, PP_F_IB_CORE_LOADED);
	const char *mode;
	struct pp_answer a;

	if (core && core->known && !core->i64)
		return pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_NETNS_MODE, NULL,
				       "not asked: ib_core is not loaded, and asking loads it");
	if (pp_ask_rdma_netlink(n->src, &a)) {
		n->arena.failed = true;
		return;
	}
	mode = a.answered ? pp_answer_str(a.data, "netns_mode") : NULL;
	if (mode)
		pp_fact_str(&n->facts, n->self, PP_F_RDMA_NETNS_MODE, mode,
			    "RDMA_NLDEV_CMD_SYS_GET");
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_NETNS_MODE, "RDMA_NLDEV_CMD_SYS_GET",
				"%s", a.answered ? "the kernel does not say" : a.detail);
	pp_answer_done(&a);
}

void pp_collect_rdma(struct pp_node *n)
{
	struct pp_modules modules;

	pp_modules_read(n->src, &modules);
	set_modules(n, &modules);
	set_stack(n, modules.sys_error, &modules.sys);
	pp_modules_done(&modules);
	set_library(n);
	set_netns_mode(n);
}
