/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci_config.h"

#include "base/compiler.h"
#include "base/banned.h"

/* PCI Local Bus 3.0 6.1 and 6.7, PCI Express Base 6.0 7.5 to 7.7, 10.5 (ATS). */
enum {
	VENDOR = 0x00,
	DEVICE = 0x02,
	STATUS = 0x06,
	CLASS = 0x08,
	HEADER_TYPE = 0x0e,
	SUBSYSTEM_VENDOR = 0x2c,
	CAP_POINTER = 0x34,
	CAP_POINTER_CARDBUS = 0x14,
	CAP_FIRST = 0x40,
	CAP_SUBSYSTEM = 0x0d,
	CAP_EXPRESS = 0x10,
	EXPRESS_FLAGS = 0x02,
	EXPRESS_LINK_CAP = 0x0c,
	EXPRESS_LINK_STATUS = 0x12,
	EXPRESS_LINK_CAP2 = 0x2c,
	EXT_FIRST = 0x100,
	EXT_ACS = 0x000d,
	EXT_ATS = 0x000f,
	MAX_CAPS = 48,
	MAX_EXT_CAPS = 480,
};

static const int speeds[] = {-1, 2500, 5000, 8000, 16000, 32000, 64000};

static unsigned int u16(const uint8_t *p)
{
	return (unsigned int)(p[0] | p[1] << 8);
}

static uint32_t u32(const uint8_t *p)
{
	return u16(p) | (uint32_t)u16(p + 2) << 16;
}

int pp_pci_cap(const uint8_t *config, size_t len, uint8_t id)
{
	size_t at;

	/* All ones: the function does not answer. (A VF's ids read ffff, the rest is real.) */
	if (len < PP_CONFIG_HEADER || config[HEADER_TYPE] == 0xff)
		return -1;
	if (!(config[STATUS] & 0x10))
		return 0;
	at = config[(config[HEADER_TYPE] & 0x7f) == 2 ? CAP_POINTER_CARDBUS : CAP_POINTER] & 0xfc;
	for (int i = 0; i < MAX_CAPS; i++) {
		if (at < CAP_FIRST)
			return 0;
		if (at + 2 > len)
			return -1;
		if (config[at] == 0xff)
			return -1;
		if (config[at] == id)
			return (int)at;
		at = config[at + 1] & 0xfc;
	}
	return -1;
}

int pp_pci_ext_cap(const uint8_t *config, size_t len, uint16_t id)
{
	size_t at = EXT_FIRST;
	uint32_t header;

	if (len < PP_CONFIG_BYTES || config[HEADER_TYPE] == 0xff)
		return -1;
	for (int i = 0; i < MAX_EXT_CAPS; i++) {
		header = u32(config + at);
		if (header == UINT32_MAX)
			return -1;
		if (!header)
			return 0;
		if ((header & 0xffff) == id)
			return (int)at;
		at = header >> 20 & 0xffc;
		if (at < EXT_FIRST)
			return 0;
	}
	return -1;
}

static void decode_ids(struct pp_pci_dev *d, const uint8_t *config, size_t len)
{
	unsigned int vendor = u16(config + VENDOR);
	int at;

	if (vendor == 0xffff && config[HEADER_TYPE] != 0xff)
		d->is_virtual = 1;
	if (vendor == 0xffff || vendor == 0)
		return;
	d->vendor = (uint16_t)vendor;
	d->device = (uint16_t)u16(config + DEVICE);
	d->class_code = u32(config + CLASS) >> 8;
	switch (config[HEADER_TYPE] & 0x7f) {
	case 0:
		d->subsystem_vendor = (uint16_t)u16(config + SUBSYSTEM_VENDOR);
		d->subsystem_device = (uint16_t)u16(config + SUBSYSTEM_VENDOR + 2);
		break;
	case 1:
		at = pp_pci_cap(config, len, CAP_SUBSYSTEM);
		if (at > 0 && (size_t)at + 8 <= len) {
			d->subsystem_vendor = (uint16_t)u16(config + at + 4);
			d->subsystem_device = (uint16_t)u16(config + at + 6);
		}
		break;
	default:
		break;
	}
}

/* The highest speed that the link can do: the vector of LnkCap2 where there is one. */
static int max_speed(uint32_t link_cap, uint32_t link_cap2)
{
	for (size_t code = PP_ARRAY_LEN(speeds) - 1; code; code--)
		if (link_cap2 & 1u << code)
			return speeds[code];
	return (link_cap & 0xf) <= 2 ? speeds[link_cap & 0xf] : -1;
}

static int lanes(unsigned int width)
{
	return width && width <= 32 ? (int)width : -1;
}

static void decode_link(struct pp_pci_dev *d, const uint8_t *express, size_t left)
{
	uint32_t cap, cap2 = 0;
	unsigned int status;

	if (left < EXPRESS_LINK_STATUS + 2)
		return;
	cap = u32(express + EXPRESS_LINK_CAP);
	status = u16(express + EXPRESS_LINK_STATUS);
	if (left >= EXPRESS_LINK_CAP2 + 4 && (u16(express + EXPRESS_FLAGS) & 0xf) >= 2)
		cap2 = u32(express + EXPRESS_LINK_CAP2);
	d->max_speed_mts = max_speed(cap, cap2);
	d->max_width = lanes(cap >> 4 & 0x3f);
	d->speed_mts = (status & 0xf) < PP_ARRAY_LEN(speeds) ? speeds[status & 0xf] : -1;
	d->width = lanes(status >> 4 & 0x3f);
}

static void decode_extended(struct pp_pci_dev *d, const uint8_t *config, size_t len)
{
	int at = pp_pci_ext_cap(config, len, EXT_ACS);

	if (at == 0)
		d->acs_state = PP_ACS_ABSENT;
	if (at > 0 && (size_t)at + 8 <= len) {
		d->acs_state = PP_ACS_KNOWN;
		d->acs_at = (uint16_t)at;
		d->acs_cap = (uint16_t)u16(config + at + 4);
		d->acs_ctl = (uint16_t)u16(config + at + 6);
	}
	at = pp_pci_ext_cap(config, len, EXT_ATS);
	if (at == 0)
		d->ats = 0;
	if (at > 0 && (size_t)at + 8 <= len)
		d->ats = u16(config + at + 6) >> 15 & 1;
}

void pp_pci_decode(struct pp_pci_dev *d, const uint8_t *config, size_t len)
{
	int at;

	d->config_len = (int)len;
	if (len < PP_CONFIG_HEADER)
		return;
	decode_ids(d, config, len);
	at = pp_pci_cap(config, len, CAP_EXPRESS);
	if (at == 0 && len >= PP_CONFIG_CONVENTIONAL)
		d->port_type = PP_PORT_CONVENTIONAL;
	if (at > 0 && (size_t)at + 4 <= len) {
		d->port_type = (int)(u16(config + at + EXPRESS_FLAGS) >> 4 & 0xf);
		decode_link(d, config + at, len - (size_t)at);
	}
	decode_extended(d, config, len);
}
