/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PCI tree made in memory, function by function, with config space where a test needs it, and
 * collected as any recording is.
 */
#ifndef PP_TESTS_MADE_TREE_H
#define PP_TESTS_MADE_TREE_H

#include "unit.h"

#include "node/node.h"

struct made {
	struct pp_record *record;
	struct pp_source *src;
	struct pp_node *node;
};

static inline void made_put(struct made *m, const char *path, const void *bytes, size_t len)
{
	assert_int_equal(pp_record_put(m->record, PP_ENTRY_FILE, path, bytes, len, 0), 0);
}

static inline void made_text(struct made *m, const char *path, const char *text)
{
	made_put(m, path, text, strlen(text));
}

static inline void made_link(struct made *m, const char *path, const char *target)
{
	assert_int_equal(pp_record_put(m->record, PP_ENTRY_LINK, path, target, strlen(target), 0),
			 0);
}

static inline void made_dir(struct made *m, const char *path)
{
	assert_int_equal(pp_record_put(m->record, PP_ENTRY_DIR, path, NULL, 0, 0), 0);
}

/* @nodes NUMA nodes of two CPUs each; node i is in socket i / @nodes_per_socket. */
static inline struct made made_new(unsigned int nodes, unsigned int nodes_per_socket)
{
	struct made m = {0};
	char path[128], text[32];

	assert_int_equal(pp_record_new((size_t)64 << 20, &m.record), 0);
	(void)snprintf(text, sizeof(text), nodes > 1 ? "0-%u" : "0", nodes - 1);
	made_text(&m, "/sys/devices/system/node/online", text);
	made_dir(&m, "/sys/bus/pci/devices");
	made_dir(&m, "/sys/kernel/iommu_groups");
	for (unsigned int cpu = 0; cpu < 2 * nodes; cpu++) {
		(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist",
			       cpu / 2);
		(void)snprintf(text, sizeof(text), "%u-%u", cpu / 2 * 2, cpu / 2 * 2 + 1);
		made_text(&m, path, text);
		(void)snprintf(path, sizeof(path),
			       "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
		(void)snprintf(text, sizeof(text), "%u", cpu / 2 / nodes_per_socket);
		made_text(&m, path, text);
	}
	return m;
}

/* Joins "/sys/devices/" + @path + "/" + @name. */
static inline const char *made_path(const char *path, const char *name)
{
	static char text[PP_PATH_MAX + 256];

	(void)snprintf(text, sizeof(text), "/sys/devices/%s/%s", path, name);
	return text;
}

/* @path: "pci0000:00/0000:00:01.0"; @ids: "class vendor device" as sysfs writes them. */
static inline void made_function(struct made *m, const char *path, const char *ids, int numa)
{
	char klass[16], vendor[16], device[16], link[PP_PATH_MAX], target[PP_PATH_MAX], text[16];

	memcpy(klass, ids, 8);
	klass[8] = '\0';
	memcpy(vendor, ids + 9, 6);
	vendor[6] = '\0';
	memcpy(device, ids + 16, 6);
	device[6] = '\0';
	made_text(m, made_path(path, "class"), klass);
	made_text(m, made_path(path, "vendor"), vendor);
	made_text(m, made_path(path, "device"), device);
	(void)snprintf(text, sizeof(text), "%d", numa);
	made_text(m, made_path(path, "numa_node"), text);
	(void)snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
	(void)snprintf(target, sizeof(target), "../../../devices/%s", path);
	made_link(m, link, target);
}

#define MADE_BRIDGE "0x060400 0x10b5 0x9797"
#define MADE_GPU    "0x030200 0x10de 0x2335"
#define MADE_NIC    "0x020000 0x15b3 0x1021"

/* Config space: express capability at 0x40 with type and link, ACS at 0x100 when @acs >= 0. */
static inline void made_config(struct made *m, const char *path, const char *ids, int type,
			       unsigned int gen, unsigned int lanes, int acs)
{
	uint8_t c[4096] = {0};
	unsigned int vendor = (unsigned int)strtoul(ids + 9, NULL, 16);
	unsigned int device = (unsigned int)strtoul(ids + 16, NULL, 16);
	unsigned int klass = (unsigned int)strtoul(ids, NULL, 16);

	c[0] = (uint8_t)vendor;
	c[1] = (uint8_t)(vendor >> 8);
	c[2] = (uint8_t)device;
	c[3] = (uint8_t)(device >> 8);
	c[6] = 0x10;
	c[9] = (uint8_t)klass;
	c[10] = (uint8_t)(klass >> 8);
	c[11] = (uint8_t)(klass >> 16);
	c[0x34] = 0x40;
	c[0x40] = 0x10;
	c[0x42] = (uint8_t)(2 | type << 4);
	c[0x4c] = (uint8_t)(gen | lanes << 4);
	c[0x4d] = (uint8_t)(lanes >> 4);
	c[0x52] = (uint8_t)(gen | lanes << 4);
	c[0x53] = (uint8_t)(lanes >> 4);
	c[0x6c] = (uint8_t)((2u << gen) - 2);
	if (acs >= 0) {
		c[0x100] = 0x0d;
		c[0x102] = 0x01;
		c[0x104] = 0x5f;
		c[0x106] = (uint8_t)acs;
	}
	made_put(m, made_path(path, "config"), c, sizeof(c));
}

/* One call for a function with all of it. */
static inline void made_port(struct made *m, const char *path, const char *ids, int numa, int type,
			     unsigned int gen, unsigned int lanes, int acs)
{
	made_function(m, path, ids, numa);
	made_config(m, path, ids, type, gen, lanes, acs);
}

static inline const struct pp_pci *made_collect(struct made *m)
{
	struct pp_error err = {0};

	assert_int_equal(pp_source_replay_record(m->record, &m->src, &err), 0);
	m->record = NULL;
	assert_int_equal(pp_node_collect(m->src, &m->node, &err), 0);
	return &m->node->pci;
}

static inline void made_done(struct made *m)
{
	pp_node_free(m->node);
	pp_source_free(m->src);
	pp_record_free(m->record);
}

/* Index of a function that must be there. */
static inline int made_at(const struct made *m, const char *text)
{
	struct pp_bdf bdf;

	assert_int_equal(pp_bdf_parse(text, &bdf), 0);
	return pp_pci_find(&m->node->pci, &bdf);
}

#endif
