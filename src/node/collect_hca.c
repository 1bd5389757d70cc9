/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every RDMA device of /sys/class/infiniband becomes the facts of its PCI function's hca object;
 * the functions that should carry a device and do not are named.
 *
 * Identity is the PCI function. A second device on one function (a subfunction) is
 * "<bdf>/<its directory>", a software device "virtual/<name>", one whose parent cannot be
 * established "unknown/<name>": then no function may be said to lack a device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/ask_verbs.h"
#include "node/device_access.h"
#include "node/hca.h"
#include "node/hca_pci.h"
#include "node/hca_verbs.h"
#include "base/banned.h"

enum { MAX_HCAS = 4096, VALUE_BYTES = 256 };

static const char CLASS[] = "/sys/class/infiniband";
static const char UVERBS_CLASS[] = "/sys/class/infiniband_verbs";

struct uverbs {
	const char *ibdev, *name;
};

struct scan {
	struct pp_node *node;
	struct uverbs *uverbs; /* in the arena, sorted by ibdev */
	size_t n_uverbs;
	int uverbs_error; /* of listing the class */
	struct pp_answer access, verbs;
	unsigned int unplaced; /* devices whose PCI function is not known */
	unsigned int unread;   /* devices beyond MAX_HCAS */
};

static int by_ibdev(const void *a, const void *b)
{
	return strcmp(((const struct uverbs *)a)->ibdev, ((const struct uverbs *)b)->ibdev);
}

static void read_uverbs(struct scan *s)
{
	char link[PP_PATH_MAX], dir[PP_PATH_MAX], path[PP_PATH_MAX], text[VALUE_BYTES];
	struct pp_arena *a = &s->node->arena;
	struct pp_names names;

	s->uverbs_error = pp_source_list(s->node->src, UVERBS_CLASS, &names);
	if (s->uverbs_error)
		return;
	s->uverbs = pp_arena_array(a, names.n ? names.n : 1, sizeof(*s->uverbs));
	for (size_t i = 0; s->uverbs && i < names.n && s->n_uverbs < MAX_HCAS; i++) {
		if (strncmp(names.name[i], "uverbs", 6) != 0 ||
		    pp_path_join(UVERBS_CLASS, names.name[i], link) ||
		    pp_source_real(s->node->src, link, dir) || pp_path_join(dir, "ibdev", path) ||
		    pp_source_text(s->node->src, path, text, sizeof(text)))
			continue;
		s->uverbs[s->n_uverbs++] = (struct uverbs){.ibdev = pp_arena_str(a, text),
							   .name = pp_arena_str(a, names.name[i])};
	}
	if (s->n_uverbs)
		qsort(s->uverbs, s->n_uverbs, sizeof(*s->uverbs), by_ibdev);
	pp_names_done(&names);
}

/* The rightmost component that is a PCI address; *ret_function is the path up to it. */
static int find_function(const char *path, struct pp_bdf *ret, char ret_function[PP_PATH_MAX])
{
	char part[PP_BDF_TEXT];
	int r = -ENOENT;
	size_t len;

	for (const char *p = path; *p; p += len) {
		p += *p == '/';
		len = strcspn(p, "/");
		if (len >= sizeof(part))
			continue;
		memcpy(part, p, len);
		part[len] = '\0';
		if (pp_bdf_parse_kernel(part, ret))
			continue;
		memcpy(ret_function, path, (size_t)(p - path) + len);
		ret_function[(size_t)(p - path) + len] = '\0';
		r = 0;
	}
	return r;
}

/* "0000:08:00.0/mlx5_core.sf.4" for a device that is not the first of its function. */
static const char *second_id(struct pp_hca *h, const char *bdf)
{
	const char *rest = h->dir + strlen(h->function);
	size_t len;

	rest += *rest == '/';
	len = strcspn(rest, "/");
	if (!len || !strncmp(rest, "infiniband", len))
		return pp_arena_printf(&h->node->arena, "%s/%s", bdf, h->name);
	return pp_arena_printf(&h->node->arena, "%s/%.*s", bdf, (int)len, rest);
}

/* Finds or makes the object, and fills h->object, h->dir and h->function. */
static int place(struct scan *s, struct pp_hca *h)
{
	struct pp_node *n = s->node;
	char path[PP_PATH_MAX], text[PP_BDF_TEXT];
	struct pp_bdf bdf;
	const char *id;
	int r = pp_path_join(CLASS, h->name, path), pci = -1;

	if (!r)
		r = pp_source_real(n->src, path, h->dir);
	if (r)
		return r;
	r = find_function(h->dir, &bdf, h->function);
	/* A class of plain directories, as some containers show: the device link tells. */
	if (r && !pp_path_join(h->dir, "device", path) && !pp_source_real(n->src, path, path))
		r = find_function(path, &bdf, h->function);
	if (!r) {
		id = pp_bdf_format(&bdf, text);
		pci = pp_pci_find(&n->pci, &bdf);
		h->object = pp_object_find(&n->facts, PP_HCA, id);
		if (pp_fact_get(h->object, PP_F_HCA_NAME)) {
			id = second_id(h, id);
			h->object = pp_object_find(&n->facts, PP_HCA, id);
		}
	} else {
		h->function[0] = '\0';
		r = !strncmp(h->dir, "/sys/devices/virtual/", 21);
		s->unplaced += !r;
		id = pp_arena_printf(&n->arena, "%s/%s", r ? "virtual" : "unknown", h->name);
	}
	if (!h->object) {
		h->object = pp_object_add(&n->facts, PP_HCA, id);
		if (h->object)
			h->object->pci = pci;
	}
	return h->object ? 0 : -ENOMEM;
}

static void set_uverbs(struct scan *s, struct pp_hca *h)
{
	const struct uverbs key = {.ibdev = h->name}, *u = NULL;
	struct pp_facts *f = &s->node->facts;

	if (s->n_uverbs)
		u = bsearch(&key, s->uverbs, s->n_uverbs, sizeof(key), by_ibdev);
	if (!u) {
		const char *why = s->uverbs_error ? pp_source_why(s->uverbs_error)
						  : "no uverbs device belongs to it";

		pp_fact_unknown(f, h->object, PP_F_HCA_UVERBS, UVERBS_CLASS, "%s: %s", UVERBS_CLASS,
				why);
		pp_fact_unknown(f, h->object, PP_F_HCA_UVERBS_ACCESS, UVERBS_CLASS, "%s: %s",
				UVERBS_CLASS, why);
		return;
	}
	pp_fact_str(f, h->object, PP_F_HCA_UVERBS, u->name, UVERBS_CLASS);
	pp_hca_set_access(h, &s->access, u->name);
}

static void set_bond(struct pp_hca *h)
{
	static const char prefix[] = "mlx5_bond_";
	char master[PP_NETDEV_NAME];
	bool named = !strncmp(h->name, prefix, sizeof(prefix) - 1);

	if (named || h->bond || (*h->function && !pp_hca_bond_master(h->node, h->function, master)))
		pp_fact_bool(&h->node->facts, h->object, PP_F_HCA_BOND, true,
			     named ? "its name" : "bonding/mode");
	else if (h->netdev_missing)
		pp_fact_unknown(&h->node->facts, h->object, PP_F_HCA_BOND, NULL,
				"its network interface is unknown");
	else
		pp_fact_bool(&h->node->facts, h->object, PP_F_HCA_BOND, false, "bonding/mode");
}

/* ACTIVE ports of one device; an unknown state leaves room only when none is known ACTIVE. */
static void count_active(struct pp_node *n, const struct pp_object *hca, int64_t *active,
			 unsigned int *unknown)
{
	const struct pp_fact *state;
	struct pp_object *port = NULL;

	while ((port = pp_object_next(&n->facts, PP_PORT, port))) {
		if (hca && port->parent != hca)
			continue;
		state = pp_fact_get(port, PP_F_PORT_STATE);
		*unknown += !state || !state->known;
		*active += state && state->known && !strcmp(state->str, "ACTIVE");
	}
}

static void set_active(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, int64_t active,
		       unsigned int unknown, const char *why)
{
	if (!why && (active || !unknown))
		pp_fact_int(&n->facts, o, id, active, CLASS);
	else
		pp_fact_unknown(&n->facts, o, id, CLASS, "%s",
				why ? why : "the state of its ports could not be read");
}

/*
 * What `peerpath soft --sysfs` writes, and no kernel does. Any one will do: a device must not
 * become hardware because a file could not be read.
 */
static void set_simulated(struct pp_hca *h)
{
	static const struct {
		const char *file, *text;
	} marks[] = {
		{"peerpath_simulated", "1"}, {"board_id", "PEERPATH_SOFT"}, {"hca_type", "soft"}};
	char path[PP_PATH_MAX], text[VALUE_BYTES];

	for (size_t i = 0; i < PP_ARRAY_LEN(marks) && !h->object->simulated; i++) {
		if (pp_path_join(h->dir, marks[i].file, path) ||
		    pp_source_text(h->node->src, path, text, sizeof(text)) ||
		    strcmp(text, marks[i].text) != 0)
			continue;
		h->object->simulated = true;
		pp_fact_bool(&h->node->facts, h->object, PP_F_HCA_SIMULATED, true, path);
	}
}

static void read_device(struct scan *s, const char *name)
{
	static const struct {
		enum pp_fact_id id;
		const char *file;
	} files[] = {{PP_F_HCA_FW, "fw_ver"},
		     {PP_F_HCA_NODE_GUID, "node_guid"},
		     {PP_F_HCA_SYS_GUID, "sys_image_guid"},
		     {PP_F_HCA_BOARD, "board_id"},
		     {PP_F_HCA_TYPE, "hca_type"}};
	struct pp_hca h = {.node = s->node, .name = name};
	const struct pp_fact *ports;
	unsigned int unknown = 0;
	int64_t active = 0;

	if (place(s, &h)) {
		s->unplaced++;
		return;
	}
	h.name = pp_arena_str(&s->node->arena, name);
	h.object->name = h.name;
	h.verbs = pp_verbs_device(&s->verbs, name);
	h.verbs_why = *s->verbs.detail ? s->verbs.detail : "libibverbs does not list this device";
	pp_fact_str(&s->node->facts, h.object, PP_F_HCA_NAME, h.name, h.dir);
	pp_fact_bool(&s->node->facts, h.object, PP_F_HCA_HAS_DEVICE, true, h.dir);
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++)
		(void)pp_node_file_at(s->node, h.object, files[i].id, h.dir, files[i].file);
	set_simulated(&h);
	set_uverbs(s, &h);
	pp_hca_read_ports(&h);
	set_bond(&h);
	ports = pp_fact_get(h.object, PP_F_HCA_PORTS);
	count_active(s->node, h.object, &active, &unknown);
	set_active(s->node, h.object, PP_F_HCA_ACTIVE_PORTS, active, unknown,
		   ports && ports->known ? NULL : "its ports could not be listed");
	if (!*h.function)
		pp_hca_set_software_driver(&h);
}

/*
 * The class directory is absent when ib_core is not loaded: that proves "no device" only where
 * /sys/class itself could be listed.
 */
static int list_class(struct pp_node *n, struct pp_names *ret)
{
	struct pp_names classes;
	int r = pp_source_list(n->src, CLASS, ret);

	if (r != -ENOENT || pp_source_list(n->src, "/sys/class", &classes))
		return r;
	for (size_t i = 0; i < classes.n && r; i++)
		r = strcmp(classes.name[i], "infiniband") ? r : 1;
	pp_names_done(&classes);
	if (r == 1)
		return -EIO; /* named by its parent and not there: half a tree */
	*ret = (struct pp_names){0};
	return 0;
}

static void ask(struct scan *s, bool any)
{
	struct pp_node *n = s->node;
	struct pp_answer list = {0};
	const json_t *devices, *name;
	const char **names;
	size_t i, count = 0;
	const struct pp_fact *core = pp_fact_get(n->self, PP_F_IB_CORE_LOADED);

	s->access.data = s->verbs.data = NULL;
	if (core && core->known && !core->i64) {
		(void)snprintf(s->verbs.detail, sizeof(s->verbs.detail),
			       "not asked: ib_core is not loaded, and asking may load it");
		return pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_DEVICES, NULL, "%s",
				       s->verbs.detail);
	}
	if (pp_ask_verbs_list(n->src, &list) ||
	    (any && (pp_ask_device_access(n->src, &s->access) ||
		     (list.answered && pp_ask_verbs_devices(n->src, &s->verbs))))) {
		n->arena.failed = true;
		pp_answer_done(&list);
		return;
	}
	if (!list.answered)
		memcpy(s->verbs.detail, list.detail, sizeof(s->verbs.detail));
	devices = json_object_get(list.data, "devices");
	/* The answer's own size bounds it. */
	names = pp_arena_array(&n->arena, json_array_size(devices) + 1, sizeof(*names));
	json_array_foreach(devices, i, name)
	{
		if (names && json_string_value(name))
			names[count++] = json_string_value(name);
	}
	if (list.answered && json_is_array(devices))
		pp_fact_list(&n->facts, n->self, PP_F_IBVERBS_DEVICES, names, count,
			     "ibv_get_device_list");
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_IBVERBS_DEVICES, "ibv_get_device_list",
				"%s", list.answered ? "the answer lists no devices" : list.detail);
	pp_answer_done(&list);
}

static void set_counts(struct scan *s, int error, size_t devices)
{
	static const enum pp_fact_id ids[] = {PP_F_RDMA_DEVICES, PP_F_N_HCAS, PP_F_N_ACTIVE_PORTS};
	struct pp_node *n = s->node;
	unsigned int unknown = s->unread + s->unplaced;
	int64_t active = 0;
	struct pp_object *hca = NULL;
	const struct pp_fact *ports;

	for (size_t i = 0; error && i < PP_ARRAY_LEN(ids); i++)
		pp_fact_unknown(&n->facts, n->self, ids[i], CLASS, "%s: %s", CLASS,
				pp_source_why(error));
	if (error)
		return;
	while ((hca = pp_object_next(&n->facts, PP_HCA, hca))) {
		ports = pp_fact_get(hca, PP_F_HCA_PORTS);
		unknown += ports && !ports->known;
	}
	count_active(n, NULL, &active, &unknown);
	pp_fact_int(&n->facts, n->self, PP_F_RDMA_DEVICES, (int64_t)devices, CLASS);
	pp_fact_int(&n->facts, n->self, PP_F_N_HCAS, (int64_t)devices, CLASS);
	set_active(n, n->self, PP_F_N_ACTIVE_PORTS, active, unknown, NULL);
}

void pp_collect_hca(struct pp_node *n)
{
	struct scan s = {.node = n};
	struct pp_names names = {0};
	char why[256] = "";
	int r = list_class(n, &names);

	ask(&s, !r && names.n);
	if (!r && names.n)
		read_uverbs(&s);
	for (size_t i = 0; !r && i < names.n && !n->arena.failed; i++) {
		if (i < MAX_HCAS)
			read_device(&s, names.name[i]);
		else
			s.unread++;
	}
	set_counts(&s, r, names.n);
	if (r)
		(void)snprintf(why, sizeof(why), "%s: %s", CLASS, pp_source_why(r));
	else if (s.unplaced || s.unread)
		(void)snprintf(why, sizeof(why),
			       "the PCI function of %u RDMA devices could not be established",
			       s.unplaced + s.unread);
	pp_hca_set_pci(n);
	pp_hca_set_missing(n, why);
	if (!r)
		pp_names_done(&names);
	pp_answer_done(&s.access);
	pp_answer_done(&s.verbs);
}
