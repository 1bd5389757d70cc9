/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that overlap: config space gives ids, class and link fields; sysfs gives them too. The
 * config space is read anyway (ACS), so ids come from sysfs only where config space has none (a
 * VF, or no permission). Link files of functions that matter are read besides and win: they are
 * what other tools print.
 */
#include "node/pci_attributes.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/pci_config.h"
#include "node/pci_tree.h"
#include "base/banned.h"

enum { TEXT_BYTES = 256, CPULIST_BYTES = 4096, RESOURCE_BYTES = 4096, BARS = 6 };

/* struct resource flags (include/linux/ioport.h), as the resource file prints them */
enum { RESOURCE_MEM = 0x200, RESOURCE_PREFETCH = 0x2000 };

static int read_text(struct pp_source *src, const struct pp_pci_dev *d, const char *name, char *buf,
		     size_t size)
{
	char path[PP_PATH_MAX];

	return pp_path_join(d->path, name, path) ? -ENAMETOOLONG
						 : pp_source_text(src, path, buf, size);
}

static int read_hex(struct pp_source *src, const struct pp_pci_dev *d, const char *name,
		    uint64_t max, uint64_t *ret)
{
	char text[TEXT_BYTES];
	int r = read_text(src, d, name, text, sizeof(text));

	return r ? r : pp_parse_hex(text, max, ret);
}

static void read_ids(struct pp_source *src, struct pp_pci_dev *d)
{
	static const char *const names[] = {"vendor", "device", "subsystem_vendor",
					    "subsystem_device"};
	uint16_t *const fields[] = {&d->vendor, &d->device, &d->subsystem_vendor,
				    &d->subsystem_device};
	uint64_t value;

	if (!read_hex(src, d, "class", 0xffffff, &value))
		d->class_code = (uint32_t)value;
	for (size_t i = 0; i < PP_ARRAY_LEN(names); i++)
		if (!read_hex(src, d, names[i], 0xffff, &value))
			*fields[i] = (uint16_t)value;
}

static void read_config(struct pp_source *src, struct pp_pci_dev *d)
{
	uint8_t config[PP_CONFIG_BYTES];
	char path[PP_PATH_MAX];
	size_t len = 0;

	if (!pp_path_join(d->path, "config", path) &&
	    !pp_source_read(src, path, config, sizeof(config), &len))
		pp_pci_decode(d, config, len);
}

static void read_numa(struct pp_source *src, struct pp_pci_dev *d)
{
	char text[TEXT_BYTES];
	int64_t node;

	if (!read_text(src, d, "numa_node", text, sizeof(text)) &&
	    !pp_parse_i64(text, -1, INT16_MAX, &node))
		d->numa = (int)node;
}

static void read_driver(struct pp_source *src, struct pp_arena *a, struct pp_pci_dev *d)
{
	char path[PP_PATH_MAX], target[PP_PATH_MAX];
	const char *slash;
	int r;

	if (pp_path_join(d->path, "driver", path))
		return;
	r = pp_source_link(src, path, target, sizeof(target));
	/* No link where the directory itself could be read: nothing is bound. */
	d->driver_known = !r || (r == -ENOENT && d->class_code);
	if (r)
		return;
	slash = strrchr(target, '/');
	d->driver = pp_arena_str(a, slash ? slash + 1 : target);
}

static void read_physfn(struct pp_source *src, struct pp_pci *pci, struct pp_pci_dev *d)
{
	char path[PP_PATH_MAX], target[PP_PATH_MAX];
	const char *slash;
	struct pp_bdf bdf;
	int r;

	if (pp_path_join(d->path, "physfn", path))
		return;
	r = pp_source_link(src, path, target, sizeof(target));
	/* No link where the directory itself could be read: a function of its own. */
	if (r == -ENOENT && d->class_code && d->is_virtual < 0)
		d->is_virtual = 0;
	if (r)
		return;
	d->is_virtual = 1;
	slash = strrchr(target, '/');
	slash = slash ? slash + 1 : target;
	if (pp_pci_parse_name(slash, strlen(slash), &bdf))
		d->physfn = pp_pci_find(pci, &bdf);
}

/* Absent files leave what config space told; "Unknown" and 0 lanes do not. */
static void read_link(struct pp_source *src, struct pp_pci_dev *d)
{
	const struct {
		const char *name;
		int *field;
		int (*parse)(const char *text);
	} files[] = {
		{"current_link_speed", &d->speed_mts, pp_pci_speed_parse},
		{"max_link_speed", &d->max_speed_mts, pp_pci_speed_parse},
		{"current_link_width", &d->width, pp_pci_width_parse},
		{"max_link_width", &d->max_width, pp_pci_width_parse},
	};
	char text[TEXT_BYTES];

	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++)
		if (!read_text(src, d, files[i].name, text, sizeof(text)))
			*files[i].field = files[i].parse(text);
}

uint64_t pp_pci_largest_bar(const char *text)
{
	uint64_t value[3], largest = 0, size;
	const char *p = text;
	char number[24];
	size_t len;

	for (int line = 0; line < BARS && *p; line++, p += strcspn(p, "\n"), p += *p == '\n') {
		for (size_t i = 0; i < PP_ARRAY_LEN(value); i++) {
			p += strspn(p, " ");
			len = strcspn(p, " \n");
			if (!len || len >= sizeof(number))
				return largest;
			memcpy(number, p, len);
			number[len] = '\0';
			if (pp_parse_hex(number, UINT64_MAX, &value[i]))
				return largest;
			p += len;
		}
		if (!(value[2] & RESOURCE_MEM) || !(value[2] & RESOURCE_PREFETCH) ||
		    value[1] <= value[0])
			continue;
		size = value[1] - value[0];
		largest = size < UINT64_MAX && size + 1 > largest ? size + 1 : largest;
	}
	return largest;
}

static void read_details(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci,
			 struct pp_pci_dev *d)
{
	char text[RESOURCE_BYTES];

	if (!read_text(src, d, "local_cpulist", text, CPULIST_BYTES) && *text)
		d->local_cpus = pp_arena_str(a, text);
	if (pp_pci_is_gpu(d) && !read_text(src, d, "resource", text, sizeof(text)))
		d->largest_bar = pp_pci_largest_bar(text);
	if (d->physfn < 0)
		read_physfn(src, pci, d);
	read_link(src, d);
}

/* Networks, display and 3D controllers, accelerators: what a pair can end at. */
static bool is_endpoint_of_interest(const struct pp_pci_dev *d)
{
	uint32_t base = d->class_code >> 16;

	return base == 0x02 || base == 0x03 || base == 0x12 || d->class_code >> 8 == 0x0b40 ||
	       pp_pci_is_hca(d);
}

static void read_basics(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci,
			struct pp_pci_dev *d)
{
	read_config(src, d);
	/* Ids that config space did not give: a VF's, or all of them. */
	if (!d->vendor) {
		read_ids(src, d);
		read_physfn(src, pci, d);
	}
	read_numa(src, d);
	read_driver(src, a, d);
	if (!d->class_code || d->host_bridge < 0)
		pci->unreadable++;
}

void pp_pci_attributes(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci)
{
	bool *passed = pp_arena_array(a, pci->n, sizeof(*passed));
	struct pp_pci_dev *d;

	if (!passed)
		return;
	pp_pci_foreach (pci, d)
		read_basics(src, a, pci, d);
	pp_pci_foreach (pci, d) {
		if (!is_endpoint_of_interest(d))
			continue;
		read_details(src, a, pci, d);
		for (int up = d->parent; up >= 0 && !passed[up]; up = pci->dev[up].parent) {
			passed[up] = true;
			read_link(src, &pci->dev[up]);
		}
	}
}
