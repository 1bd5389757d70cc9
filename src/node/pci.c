/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { NVIDIA = 0x10de, MELLANOX = 0x15b3, AMAZON = 0x1d0f, MAX_LANES = 32 };

int pp_pci_find(const struct pp_pci *pci, const struct pp_bdf *bdf)
{
	unsigned int low = 0, high = pci->n, mid;
	int order;

	while (low < high) {
		mid = low + (high - low) / 2;
		order = pp_bdf_compare(&pci->dev[mid].bdf, bdf);
		if (!order)
			return (int)mid;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

int pp_pci_package(const struct pp_pci *pci, int numa)
{
	if (pci->online_nodes == 1 && numa < 0)
		numa = 0;
	return numa >= 0 && (unsigned int)numa < pci->n_node_package ? pci->node_package[numa] : -1;
}

int pp_pci_speed_parse(const char *text)
{
	size_t whole = strspn(text, "0123456789"), tenths = 0;
	const char *rest = text + whole;
	char number[8];
	uint64_t value;

	if (!whole || whole > 3)
		return -1;
	memcpy(number, text, whole);
	number[whole] = '\0';
	if (pp_parse_u64(number, 1, 512, &value))
		return -1;
	if (rest[0] == '.' && rest[1] >= '0' && rest[1] <= '9') {
		tenths = (size_t)(rest[1] - '0');
		rest += 2;
	}
	return strncmp(rest, " GT/s", 5) ? -1 : (int)(value * 1000 + tenths * 100);
}

int pp_pci_width_parse(const char *text)
{
	uint64_t value;

	return pp_parse_u64(text, 1, MAX_LANES, &value) ? -1 : (int)value;
}

double pp_pci_bandwidth(int speed_mts, int width)
{
	/* One lane; 64 GT/s: TLP bytes of a 256-byte flit. */
	static const struct {
		int speed_mts;
		double gb_per_s;
	} lane[] = {
		{2500, 2.5 * 8 / 10 / 8},      {5000, 5.0 * 8 / 10 / 8},
		{8000, 8.0 * 128 / 130 / 8},   {16000, 16.0 * 128 / 130 / 8},
		{32000, 32.0 * 128 / 130 / 8}, {64000, 64.0 * 236 / 256 / 8},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(lane) && width > 0; i++)
		if (lane[i].speed_mts == speed_mts)
			return lane[i].gb_per_s * width;
	return 0;
}

const char *pp_acs_bits(uint16_t ctl, char *text, size_t size)
{
	static const char *const names[] = {"SV", "TB", "RR", "CR", "UF", "EC", "DT"};
	size_t len = 0;

	(void)snprintf(text, size, "0");
	for (size_t i = 0; i < PP_ARRAY_LEN(names) && len < size; i++)
		if (ctl & 1u << i)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? "+" : "",
						names[i]);
	return text;
}

const char *pp_pci_iommu_type(const struct pp_pci *pci, const struct pp_pci_dev *d)
{
	return d->iommu_group == -1 && pci->iommu_groups_known ? "none" : d->iommu_type;
}

const char *pp_pci_iommu_why(const struct pp_pci *pci, const struct pp_pci_dev *d)
{
	if (!pci->iommu_groups_known)
		return "/sys/kernel/iommu_groups could not be listed";
	return d->iommu_group < 0 ? "its IOMMU group could not be read"
				  : "the type of its IOMMU group could not be read";
}

bool pp_pci_is_bridge(const struct pp_pci_dev *d)
{
	return d->class_code >> 8 == 0x0604 || d->class_code >> 8 == 0x0607 ||
	       d->class_code >> 8 == 0x0609;
}

static bool leads_on(const struct pp_pci *pci, const struct pp_pci_dev *d)
{
	const struct pp_pci_dev *below;

	pp_pci_foreach (pci, below)
		if (below->parent == d - pci->dev)
			return true;
	return false;
}

const struct pp_pci_dev *pp_pci_nameless(const struct pp_pci *pci)
{
	const struct pp_pci_dev *d;

	pp_pci_foreach (pci, d)
		if ((!d->class_code || !d->vendor) && !leads_on(pci, d))
			return d;
	return NULL;
}

bool pp_pci_is_gpu(const struct pp_pci_dev *d)
{
	return d->vendor == NVIDIA && d->class_code >> 16 == 0x03;
}

bool pp_pci_is_hca(const struct pp_pci_dev *d)
{
	return d->class_code >> 8 == 0x0207 ||
	       (d->vendor == MELLANOX && d->class_code >> 16 == 0x02) ||
	       (d->vendor == AMAZON && d->device >> 4 == 0xefa);
}
