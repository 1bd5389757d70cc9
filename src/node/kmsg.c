/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record format is Documentation/ABI/testing/dev-kmsg of the kernel. Families are told by the
 * parts of a message that have stayed the same over driver versions.
 */
#include "node/kmsg.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

/* One number of the head, up to the comma or the end; advances *p behind it. */
static int number(const char **p, const char *end, uint64_t max, uint64_t *ret)
{
	char digits[24];
	size_t n = 0;

	while (*p + n < end && (*p)[n] != ',') {
		if (n + 1 >= sizeof(digits))
			return -EBADMSG;
		digits[n] = (*p)[n];
		n++;
	}
	digits[n] = '\0';
	if (pp_parse_u64(digits, 0, max, ret))
		return -EBADMSG;
	*p += n + (*p + n < end);
	return 0;
}

static void copy(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
	/* A NUL inside ends the text; nothing that drives a terminal stays. */
	pp_sanitize(to, false);
}

/* The dictionary: " DEVICE=+pci:0000:3b:00.0" names the function that the message is about. */
static void dictionary(const char *p, const char *end, char device[PP_BDF_TEXT])
{
	static const char KEY[] = " DEVICE=+pci:";
	struct pp_bdf bdf;
	char name[32];
	const char *line_end;

	device[0] = '\0';
	for (; p < end; p = line_end + (line_end < end)) {
		line_end = memchr(p, '\n', (size_t)(end - p));
		if (!line_end)
			line_end = end;
		if ((size_t)(line_end - p) <= strlen(KEY) || memcmp(p, KEY, strlen(KEY)) != 0)
			continue;
		p += strlen(KEY);
		copy(name, sizeof(name), p, (size_t)(line_end - p));
		if (!pp_bdf_parse_kernel(name, &bdf))
			(void)pp_bdf_format(&bdf, device);
	}
}

int pp_kmsg_parse(const char *record, size_t len, struct pp_kmsg *ret)
{
	const char *p = record, *end = record + len, *head_end, *text_end;
	uint64_t prefix, sequence, time;
	int r;

	head_end = memchr(record, ';', len);
	if (!head_end)
		return -EBADMSG;
	r = number(&p, head_end, UINT32_MAX, &prefix);
	if (!r)
		r = number(&p, head_end, UINT64_MAX, &sequence);
	if (!r)
		r = number(&p, head_end, INT64_MAX, &time);
	if (r)
		return r;
	p = head_end + 1;
	text_end = memchr(p, '\n', (size_t)(end - p));
	if (!text_end)
		text_end = end;
	ret->sequence = sequence;
	ret->time_us = (int64_t)time;
	ret->level = (unsigned int)prefix & 7;
	ret->facility = (unsigned int)prefix >> 3;
	copy(ret->text, sizeof(ret->text), p, (size_t)(text_end - p));
	dictionary(text_end < end ? text_end + 1 : end, end, ret->device);
	return 0;
}

/* All words must occur, in this order. The first row that fits wins. */
static const struct {
	enum pp_kmsg_family family;
	const char *words[3];
} families[] = {
	{PP_KMSG_XID, {"NVRM: Xid (PCI:"}},
	{PP_KMSG_PEERMEM_ABI, {"nvidia_peermem", "disagrees about version of symbol"}},
	{PP_KMSG_PEERMEM_ABI, {"nvidia_peermem", "Unknown symbol"}},
	{PP_KMSG_PEERMEM_ABI, {"nv_peer_mem", "disagrees about version of symbol"}},
	{PP_KMSG_PEERMEM_ABI, {"nv_peer_mem", "Unknown symbol"}},
	{PP_KMSG_PEERMEM, {"nvidia-peermem", "ERROR"}},
	{PP_KMSG_PEERMEM, {"nvidia_peermem", "ERROR"}},
	{PP_KMSG_PEERMEM, {"invalid peerdirect_support param value"}},
	{PP_KMSG_DMABUF_REFUSED, {"topology not supported for mapping type FORCE_PCIE"}},
	{PP_KMSG_DMABUF_REFUSED, {"PCI topology not supported for dma-buf"}},
	{PP_KMSG_DMABUF_REFUSED, {"importer unable to handle MMIO without struct page"}},
	{PP_KMSG_DMABUF_REFUSED, {"failed to map dynamic attachment with no P2P support"}},
	{PP_KMSG_P2P, {"NVRM", "nv_p2p_get_pages"}},
	{PP_KMSG_P2P, {"NVRM", "Failed to DMA map MMIO range"}},
	{PP_KMSG_P2P, {"Mapping requested", "outside of resource bounds"}},
	{PP_KMSG_P2P, {"No address space to allocate resized BAR1"}},
	{PP_KMSG_P2P, {"NVRM", "failed to create dma-buf"}},
	{PP_KMSG_P2P, {"Failed to get a reference on dev_pagemap in CDMM"}},
	{PP_KMSG_IOMMU_FAULT, {"DMAR: [DMA", "fault addr"}},
	{PP_KMSG_IOMMU_FAULT, {"DMAR: [INTR-REMAP]"}},
	{PP_KMSG_IOMMU_FAULT, {"AMD-Vi:", "Event logged [IO_PAGE_FAULT"}},
	{PP_KMSG_IOMMU_FAULT, {"AMD-Vi:", "Event logged [INVALID_DEVICE_REQUEST"}},
	{PP_KMSG_IOMMU_FAULT, {"arm-smmu", "event 0x10 received"}},
	{PP_KMSG_IOMMU_FAULT, {"arm-smmu", "Unhandled context fault"}},
	{PP_KMSG_AER, {"PCIe Bus Error: severity="}},
	{PP_KMSG_NIC, {"mlx5_", "async reg mr failed"}},
	{PP_KMSG_NIC, {"mlx5_", "create mkey failed"}},
	{PP_KMSG_NIC, {"mlx5_", "couldn't recover UMR"}},
	{PP_KMSG_NIC, {"mlx5_", "unable to map DMA during XLT update"}},
	{PP_KMSG_NIC, {"mlx5_", "failed, status", "syndrome"}},
	{PP_KMSG_NIC, {"WC error:", "Message:"}},
	{PP_KMSG_NIC, {"Failed to resolve the page fault on WQ"}},
	{PP_KMSG_NIC, {"MR Size:", "Max supported"}},
	{PP_KMSG_NIC, {"umem page size unsupported"}},
	{PP_KMSG_NIC, {"Failed to register user MR"}},
	{PP_KMSG_NIC, {"efa:", "peer memory using P2P"}},
	{PP_KMSG_NIC, {"mlx5_core", "Health issue"}},
	{PP_KMSG_NIC, {"mlx5_core", "PCIe slot"}},
	{PP_KMSG_P2PDMA, {"ACS redirect is set between the client and provider"}},
	{PP_KMSG_P2PDMA, {"add the kernel parameter: pci=disable_acs_redir"}},
	{PP_KMSG_P2PDMA, {"cannot be used for peer-to-peer DMA"}},
	{PP_KMSG_P2PDMA, {"Invalidate callback should not be called when memory is pinned"}},
	{PP_KMSG_DRIVER, {"NVRM: loading NVIDIA UNIX"}},
	{PP_KMSG_DRIVER, {"NVRM:", "GPU has fallen off the bus"}},
	{PP_KMSG_DRIVER, {"mlx5_core", "firmware version:"}},
	{PP_KMSG_DRIVER, {"available PCIe bandwidth, limited by"}},
};

enum pp_kmsg_family pp_kmsg_classify(const char *text)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(families); i++) {
		const char *at = text;

		for (size_t w = 0; at && w < PP_ARRAY_LEN(families[i].words); w++)
			if (families[i].words[w])
				at = strstr(at, families[i].words[w]);
		if (at)
			return families[i].family;
	}
	return PP_KMSG_OTHER;
}

int pp_kmsg_xid(const char *text, unsigned int *ret_number, struct pp_bdf *ret_bdf)
{
	static const char HEAD[] = "NVRM: Xid (PCI:";
	const char *p = strstr(text, HEAD), *end;
	char word[32];
	uint64_t number;
	size_t n;

	if (!p)
		return -ENOENT;
	p += strlen(HEAD);
	end = strstr(p, "): ");
	/* The driver prints no function number: a GPU's is 0. */
	if (!end || (size_t)(end - p) + sizeof(".0") > sizeof(word))
		return -ENOENT;
	n = (size_t)(end - p);
	memcpy(word, p, n);
	memcpy(word + n, ".0", sizeof(".0"));
	if (pp_bdf_parse(word, ret_bdf))
		return -ENOENT;
	p = end + strlen("): ");
	n = strspn(p, "0123456789");
	if (!n || n >= sizeof(word))
		return -ENOENT;
	memcpy(word, p, n);
	word[n] = '\0';
	if (pp_parse_u64(word, 0, UINT32_MAX, &number))
		return -ENOENT;
	*ret_number = (unsigned int)number;
	return 0;
}
