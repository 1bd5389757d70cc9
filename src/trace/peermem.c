/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/peermem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "node/module.h"
#include "trace/surface_report.h"
#include "base/banned.h"

static const char PEERS[] = "/sys/kernel/mm/memory_peers", MODULE[] = "/sys/module";

/* The driver's own module, and the one before it (Mellanox nv_peer_memory). */
static const char *const modules[] = {"nvidia_peermem", "nv_peer_mem"};

static int64_t number(struct pp_source *s, const char *client, const char *file)
{
	char path[PP_PATH_MAX], text[32];
	int64_t n;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", PEERS, client, file);
	if (pp_source_text(s, path, text, sizeof(text)) || pp_parse_i64(text, 0, INT64_MAX, &n))
		return -1;
	return n;
}

static void read_client(struct pp_source *s, const char *name, struct pp_peermem *ret)
{
	struct pp_peer_client *c = &ret->client[ret->n++];

	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	c->alloc_mrs = number(s, name, "num_alloc_mrs");
	c->dealloc_mrs = number(s, name, "num_dealloc_mrs");
	c->reg_bytes = number(s, name, "num_reg_bytes");
	c->dereg_bytes = number(s, name, "num_dereg_bytes");
	c->free_callbacks = number(s, name, "num_free_callbacks");
	if (c->alloc_mrs < 0 || c->dealloc_mrs < 0)
		pp_surface_cut(&ret->report, "%s/%s: counters are not readable", PEERS, c->name);
}

/* False: the directory is not there, or its absence is not known. */
static bool read_clients(struct pp_source *s, struct pp_peermem *ret)
{
	struct pp_names names = {0};
	int r = pp_source_list(s, PEERS, &names);

	if (r == -ENOENT)
		return false;
	if (r) {
		pp_surface_cut(&ret->report, "%s: %s", PEERS, pp_source_why(r));
		return false;
	}
	for (size_t i = 0; i < names.n; i++) {
		if (ret->n < PP_PEER_CLIENTS)
			read_client(s, names.name[i], ret);
		else
			pp_surface_cut(&ret->report, "more clients than %d in %s", PP_PEER_CLIENTS,
				       PEERS);
	}
	pp_names_done(&names);
	return true;
}

/* Fills the module's part; the first that is loaded counts. */
static void read_module(struct pp_source *s, const struct pp_modules *list, struct pp_peermem *ret)
{
	char path[PP_PATH_MAX], text[32];
	struct pp_module m;

	for (size_t i = 0; i < PP_ARRAY_LEN(modules) && !ret->loaded; i++) {
		m = pp_module_find(s, list, modules[i]);
		if (m.presence == PP_MODULE_UNKNOWN)
			pp_surface_cut(&ret->report, "whether %s is loaded is not known: %.120s",
				       modules[i], m.why);
		if (m.presence != PP_MODULE_LOADED)
			continue;
		ret->loaded = true;
		(void)snprintf(ret->module, sizeof(ret->module), "%s", modules[i]);
		(void)snprintf(path, sizeof(path), "%s/%s/version", MODULE, modules[i]);
		(void)pp_source_text(s, path, ret->version, sizeof(ret->version));
		(void)snprintf(path, sizeof(path), "%s/%s/refcnt", MODULE, modules[i]);
		/* /proc/modules counts the same. */
		if ((pp_source_text(s, path, text, sizeof(text)) ||
		     pp_parse_i64(text, 0, INT64_MAX, &ret->references)) &&
		    pp_parse_i64(m.users, 0, INT64_MAX, &ret->references))
			pp_surface_cut(&ret->report, "%s: references are not shown", modules[i]);
	}
}

void pp_peermem_read(struct pp_source *s, struct pp_peermem *ret)
{
	struct pp_modules list = {0};
	bool peers;

	*ret = (struct pp_peermem){.references = -1, .report = {.state = PP_SURFACE_READ}};
	pp_modules_read(s, &list);
	read_module(s, &list, ret);
	pp_modules_done(&list);
	peers = read_clients(s, ret);
	if (!ret->loaded && !peers && ret->report.state == PP_SURFACE_READ)
		pp_surface_set(&ret->report, PP_SURFACE_ABSENT,
			       "neither nvidia_peermem nor %s is there", PEERS);
}

/* Clients of nvidia_peermem and its forerunner: nv_mem, nv_mem_nc. */
static bool of_nvidia(const struct pp_peer_client *c)
{
	return !strncmp(c->name, "nv_mem", strlen("nv_mem"));
}

int64_t pp_peermem_live(const struct pp_peermem *p)
{
	int64_t nvidia = -1, others = -1, *sum, live;

	for (unsigned int i = 0; i < p->n; i++) {
		const struct pp_peer_client *c = &p->client[i];

		if (c->alloc_mrs < 0 || c->dealloc_mrs < 0)
			continue;
		sum = of_nvidia(c) ? &nvidia : &others;
		live = c->alloc_mrs > c->dealloc_mrs ? c->alloc_mrs - c->dealloc_mrs : 0;
		if (__builtin_add_overflow(*sum < 0 ? 0 : *sum, live, sum))
			*sum = INT64_MAX;
	}
	if (p->references >= 0)
		nvidia = p->references;
	/* A loaded module that does not count may hold any number. */
	if (p->loaded && nvidia < 0)
		return -1;
	if (nvidia < 0 || others < 0)
		return nvidia < 0 ? others : nvidia;
	return __builtin_add_overflow(nvidia, others, &live) ? INT64_MAX : live;
}
