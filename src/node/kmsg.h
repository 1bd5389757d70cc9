/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel log records as /dev/kmsg gives them, and what the ones that matter here mean.
 *
 * Pure: text in, words out. Reading the device is collect_kernel's question "kmsg".
 */
#ifndef PP_NODE_KMSG_H
#define PP_NODE_KMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bdf.h"

enum { PP_KMSG_TEXT = 1024 };

struct pp_kmsg {
	uint64_t sequence;
	int64_t time_us; /* since boot */
	unsigned int level, facility;
	char text[PP_KMSG_TEXT];  /* without control bytes; cut */
	char device[PP_BDF_TEXT]; /* PCI function of the DEVICE= line, "" none */
};

/*
 * One record: "prefix,sequence,microseconds,flags[,...];text\n" and " KEY=value\n" lines, not
 * necessarily terminated. -EBADMSG for anything else.
 */
int pp_kmsg_parse(const char *record, size_t len, struct pp_kmsg *ret);

enum pp_kmsg_family {
	PP_KMSG_OTHER, /* says nothing of the path */
	PP_KMSG_XID,
	PP_KMSG_IOMMU_FAULT,
	PP_KMSG_PEERMEM_ABI, /* a symbol of another version, or missing */
	PP_KMSG_PEERMEM,     /* an error of nvidia-peermem */
	PP_KMSG_DMABUF_REFUSED,
	PP_KMSG_P2P, /* NVRM refused or failed a peer mapping */
	PP_KMSG_AER,
	PP_KMSG_NIC,	/* mlx5, bnxt_re, efa: memory regions, completions */
	PP_KMSG_P2PDMA, /* the kernel's own peer-to-peer checks */
	PP_KMSG_DRIVER, /* drivers loading: which ones, when */
};

enum pp_kmsg_family pp_kmsg_classify(const char *text);

/* "NVRM: Xid (PCI:0000:3b:00): 79, ..." -> 79, 0000:3b:00.0. -ENOENT when it is none. */
int pp_kmsg_xid(const char *text, unsigned int *ret_number, struct pp_bdf *ret_bdf);

#endif
