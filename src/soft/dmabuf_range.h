/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software device cannot see of a DMA-BUF descriptor of GPU memory: which addresses it
 * exports. A NIC goes through the descriptor; the software device copies by CUDA address, and takes
 * the region's iova for it unless it is told. Who tells it gets the descriptor's offset modelled: a
 * wrong one reaches the wrong bytes, as it would on a NIC, and an iova that counts from zero works.
 *
 * To be found by name at run time, in the library that ibv_reg_dmabuf_mr() comes from:
 *
 *	soft_dmabuf_range_fn *tell = dlvsym(RTLD_DEFAULT, SOFT_DMABUF_RANGE_SYMBOL,
 *					    SOFT_DMABUF_RANGE_VERSION);
 *
 *	if (tell)
 *		(void)tell(fd, va, length);
 *	mr = ibv_reg_dmabuf_mr(pd, offset, n, iova, fd, access);
 *
 * Contract. To be called after cuMemGetHandleForAddressRange(&fd, va, length, ...), with its
 * arguments, before the registration, by any thread. The descriptor is known by its file (device
 * and inode: each export has its own), not by its number: it may be duplicated, and closed after
 * the registration. The last SOFT_DMABUF_RANGES that were told are remembered; who tells and
 * registers at once is never forgotten in between. The region's first byte is then va + offset.
 *
 * Returns 0; -EBADF: no such descriptor; -EINVAL: @length is not what the descriptor exports, or
 * no range. Sets no errno, prints nothing. Other libraries do not have it: absence is no error.
 */
#ifndef SOFT_DMABUF_RANGE_H
#define SOFT_DMABUF_RANGE_H

#include <stdint.h>

#define SOFT_DMABUF_RANGE_SYMBOL  "peerpath_soft_dmabuf_range"
#define SOFT_DMABUF_RANGE_VERSION "PEERPATH_SOFT_1"
#define SOFT_DMABUF_RANGES	  1024

typedef int soft_dmabuf_range_fn(int fd, uint64_t va, uint64_t length);

#endif
