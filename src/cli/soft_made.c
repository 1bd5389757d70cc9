/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/soft_made.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bdf.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "soft/engine/counter.h"
#include "base/banned.h"

enum { TEXT_BYTES = 4096, LAST_SLOT = 31, VERBS_ABI = 6, GID_TEXT = 40 };

/* One device while its files are made. */
struct made {
	struct pp_record *record;
	const struct soft_config_device *device;
	char function[PP_PATH_MAX]; /* of its PCI function; "": it has none */
	char dir[PP_PATH_MAX];	    /* .../infiniband/NAME */
	int failed;
};

static void put(struct made *m, enum pp_entry_kind kind, const char *path, const char *content)
{
	int r = pp_record_put(m->record, kind, path, content, strlen(content), /* error= */ 0);

	if (r && !m->failed)
		m->failed = r;
}

/* A file of one line, or a link, at @dir/@name. */
PP_PRINTF(5, 6)
static void add(struct made *m, enum pp_entry_kind kind, const char *dir, const char *name,
		const char *fmt, ...)
{
	char path[PP_PATH_MAX], text[TEXT_BYTES];
	va_list ap;
	int n;

	if (pp_path_join(dir, name, path)) {
		m->failed = -ENAMETOOLONG;
		return;
	}
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (kind == PP_ENTRY_FILE && n >= 0 && (size_t)n < sizeof(text) - 1)
		memcpy(text + n, "\n", 2);
	put(m, kind, path, text);
}

#define FILE_OF(m, dir, name, ...) add(m, PP_ENTRY_FILE, dir, name, __VA_ARGS__)
#define LINK_OF(m, dir, name, ...) add(m, PP_ENTRY_LINK, dir, name, __VA_ARGS__)

static const char *path_of(char buf[PP_PATH_MAX], struct made *m, const char *dir, const char *name)
{
	if (pp_path_join(dir, name, buf)) {
		m->failed = -ENAMETOOLONG;
		buf[0] = '\0';
	}
	return buf;
}

/* As the kernel writes a GUID: four groups. */
static void guid(struct made *m, const char *name)
{
	uint64_t big_endian = soft_config_guid(m->device);
	uint8_t b[8];

	memcpy(b, &big_endian, sizeof(b));
	FILE_OF(m, m->dir, name, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3],
		b[4], b[5], b[6], b[7]);
}

/* What ib_port's rate says of Ethernet speeds: a lane's rate times the width. */
static const char *rate_of(uint32_t gbps)
{
	static const struct {
		uint32_t gbps;
		const char *text;
	} rates[] = {
		{800, "800 Gb/sec (8X NDR)"}, {400, "400 Gb/sec (4X NDR)"},
		{200, "200 Gb/sec (4X HDR)"}, {100, "100 Gb/sec (4X EDR)"},
		{56, "56 Gb/sec (4X FDR)"},   {50, "50 Gb/sec (2X EDR)"},
		{40, "40 Gb/sec (4X QDR)"},   {25, "25 Gb/sec (1X EDR)"},
		{10, "10 Gb/sec (1X QDR)"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(rates); i++)
		if (gbps >= rates[i].gbps)
			return rates[i].text;
	return "2.5 Gb/sec (1X SDR)";
}

static void counters(struct made *m, const char *port)
{
	char dir[PP_PATH_MAX];

	for (size_t i = 0; i < soft_counter_count(); i++) {
		const struct soft_counter *c = soft_counter_at(i);

		FILE_OF(m, path_of(dir, m, port, soft_counter_dirs[c->dir]), c->name, "0");
	}
}

/* As the kernel writes it: eight groups, nothing left out. */
static const char *gid_text(const uint8_t raw[16], char text[GID_TEXT])
{
	size_t at = 0;

	for (unsigned int i = 0; i < 16; i += 2)
		at += (size_t)snprintf(text + at, GID_TEXT - at, "%s%02x%02x", i ? ":" : "", raw[i],
				       raw[i + 1]);
	return text;
}

static void gids(struct made *m, const char *port)
{
	char gid[PP_PATH_MAX], type[PP_PATH_MAX], ndev[PP_PATH_MAX];
	char number[16], text[GID_TEXT];

	(void)path_of(gid, m, port, "gids");
	(void)path_of(type, m, port, "gid_attrs/types");
	(void)path_of(ndev, m, port, "gid_attrs/ndevs");
	for (unsigned int i = 0; i < m->device->num_gids; i++) {
		(void)snprintf(number, sizeof(number), "%u", i);
		FILE_OF(m, gid, number, "%s", gid_text(m->device->gids[i].gid.raw, text));
		FILE_OF(m, type, number, "RoCE v2");
		FILE_OF(m, ndev, number, "%s", m->device->netdev);
	}
}

static void port(struct made *m)
{
	static const struct {
		const char *name, *text;
	} files[] = {
		{"state", "4: ACTIVE"}, {"phys_state", "5: LinkUp"}, {"link_layer", "Ethernet"},
		{"lid", "0x0"},		{"lid_mask_count", "0"},     {"sm_lid", "0x0"},
		{"sm_sl", "0"},		{"cap_mask", "0x04010000"},  {"pkeys/0", "0xffff"},
	};
	char dir[PP_PATH_MAX];

	(void)path_of(dir, m, m->dir, "ports/1");
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++)
		FILE_OF(m, dir, files[i].name, "%s", files[i].text);
	FILE_OF(m, dir, "rate", "%s", rate_of(m->device->rate_gbps));
	gids(m, dir);
	counters(m, dir);
}

static void device(struct made *m)
{
	const char *name = m->device->name;

	FILE_OF(m, m->dir, "node_type", "1: CA");
	FILE_OF(m, m->dir, "node_desc", "%s", name);
	guid(m, "node_guid");
	guid(m, "sys_image_guid");
	FILE_OF(m, m->dir, "fw_ver", "%s", PEERPATH_VERSION);
	FILE_OF(m, m->dir, "hw_rev", "0x%x", m->device->hw_ver);
	FILE_OF(m, m->dir, "hca_type", "soft");
	FILE_OF(m, m->dir, "board_id", "PEERPATH_SOFT");
	/* No kernel has this file: who reads such a tree, or a recording of it, can tell. */
	FILE_OF(m, m->dir, "peerpath_simulated", "1");
	if (*m->function)
		LINK_OF(m, m->dir, "device", "../../../%s", strrchr(m->function, '/') + 1);
	port(m);
}

static void classes(struct made *m, const char *parent)
{
	const char *name = m->device->name;
	char verbs[PP_PATH_MAX], uverbs[SOFT_CONFIG_NAME_MAX + 16];

	(void)snprintf(uverbs, sizeof(uverbs), "uverbs-%s", name);
	LINK_OF(m, "/sys/class/infiniband", name, "../..%s/infiniband/%s", parent + 4, name);
	LINK_OF(m, "/sys/class/infiniband_verbs", uverbs, "../..%s/infiniband_verbs/%s", parent + 4,
		uverbs);
	FILE_OF(m, "/sys/class/infiniband_verbs", "abi_version", "%d", VERBS_ABI);
	(void)path_of(verbs, m, parent, "infiniband_verbs");
	(void)path_of(verbs, m, verbs, uverbs);
	FILE_OF(m, verbs, "ibdev", "%s", name);
	FILE_OF(m, verbs, "abi_version", "1");
	if (*m->function)
		LINK_OF(m, verbs, "device", "../../../%s", strrchr(m->function, '/') + 1);
}

/* A device number that nobody has on the bus of @beside. */
static int free_function(struct pp_source *src, const char *bus_dir, const struct pp_bdf *beside,
			 struct pp_record *record, char text[PP_BDF_TEXT])
{
	char path[PP_PATH_MAX], class[PP_PATH_MAX];
	struct pp_bdf bdf = *beside;

	for (bdf.device = LAST_SLOT, bdf.function = 0; bdf.device > 0; bdf.device--) {
		if (pp_path_join(bus_dir, pp_bdf_format(&bdf, text), path) ||
		    pp_path_join(path, "class", class))
			return -ENAMETOOLONG;
		if (!pp_record_get(record, class) && pp_source_probe(src, path) == 0)
			return 0;
	}
	return -ENOSPC;
}

/* What the function shares with the one it lies beside. */
static void like(struct made *m, struct pp_source *src, const char *other)
{
	static const char *const files[] = {
		"numa_node",	      "local_cpus",	"local_cpulist",      "max_link_speed",
		"current_link_speed", "max_link_width", "current_link_width",
	};
	char path[PP_PATH_MAX], text[TEXT_BYTES];

	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++)
		if (!pp_source_text(src, path_of(path, m, other, files[i]), text, sizeof(text)))
			FILE_OF(m, m->function, files[i], "%s", text);
}

static int function(struct made *m, struct pp_source *src, const char *beside, struct pp_error *err)
{
	char link[PP_PATH_MAX], other[PP_PATH_MAX], bus[PP_PATH_MAX], text[PP_BDF_TEXT];
	struct pp_bdf bdf;
	int r = pp_bdf_parse(beside, &bdf);

	if (r)
		return pp_error_set(err, -EINVAL, "'%s' is no PCI address such as 0000:3b:00.0",
				    beside);
	(void)path_of(link, m, "/sys/bus/pci/devices", pp_bdf_format(&bdf, text));
	r = pp_source_real(src, link, other);
	if (r || !strncmp(other, "/sys/bus", strlen("/sys/bus")))
		return pp_error_set(err, -EINVAL, "%s is not there: %s", link,
				    pp_source_why(r ? r : -ENOENT));
	memcpy(bus, other, sizeof(bus));
	*strrchr(bus, '/') = '\0';
	r = free_function(src, bus, &bdf, m->record, text);
	if (r)
		return pp_error_set(err, -EINVAL, "no number is free on the bus of %s", beside);
	(void)path_of(m->function, m, bus, text);
	FILE_OF(m, m->function, "class", "0x020000");
	FILE_OF(m, m->function, "vendor", "0x%04x", m->device->vendor_id & 0xffff);
	FILE_OF(m, m->function, "device", "0x%04x", m->device->vendor_part_id & 0xffff);
	FILE_OF(m, m->function, "subsystem_vendor", "0x0000");
	FILE_OF(m, m->function, "subsystem_device", "0x0000");
	FILE_OF(m, m->function, "revision", "0x00");
	like(m, src, other);
	LINK_OF(m, "/sys/bus/pci/devices", text, "../../..%s", m->function + 4);
	(void)path_of(link, m, m->function, "net");
	(void)path_of(link, m, link, m->device->netdev);
	if (*m->device->netdev)
		put(m, PP_ENTRY_DIR, link, "");
	return 0;
}

static int make(struct made *m, const char *beside, struct pp_source *src, struct pp_error *err)
{
	char parent[PP_PATH_MAX] = "/sys/devices/virtual";
	int r = 0;

	if (beside) {
		r = function(m, src, beside, err);
		memcpy(parent, m->function, sizeof(parent));
	}
	if (r)
		return r;
	(void)path_of(m->dir, m, parent, "infiniband");
	(void)path_of(m->dir, m, m->dir, m->device->name);
	classes(m, parent);
	device(m);
	return m->failed
		       ? pp_error_set(err, m->failed, "the made /sys: %s", pp_source_why(m->failed))
		       : 0;
}

/* The next address of a list, or NULL. */
static const char *next_of(const char **list, char text[PP_BDF_TEXT])
{
	size_t len = *list ? strcspn(*list, ",") : 0;

	if (!len)
		return NULL;
	(void)snprintf(text, PP_BDF_TEXT, "%.*s", (int)len, *list);
	*list += len + ((*list)[len] == ',');
	return text;
}

int pp_soft_made(const struct soft_config *devices, const char *beside, struct pp_source *src,
		 struct pp_record *record, struct pp_error *err)
{
	char text[PP_BDF_TEXT];
	int r = 0;

	for (unsigned int i = 0; i < devices->num_devices && !r; i++) {
		struct made m = {.record = record, .device = &devices->devices[i]};

		r = make(&m, next_of(&beside, text), src, err);
	}
	if (!r && beside && *beside)
		return pp_error_set(err, -EINVAL, "there is no device for %s: %u in all", beside,
				    devices->num_devices);
	return r;
}
