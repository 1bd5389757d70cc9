/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of an RDMA driver by its name: its user-space provider, and since which upstream
 * kernel it registers DMA-BUF memory. A table says what upstream did; only a probe decides.
 */
#ifndef PP_NODE_HCA_DRIVER_H
#define PP_NODE_HCA_DRIVER_H

struct pp_hca_driver {
	const char *driver;	  /* kernel driver of the PCI function: "mlx5_core" */
	const char *provider;	  /* rdma-core's provider: "mlx5" */
	const char *dmabuf_since; /* upstream kernel with its reg_user_mr_dmabuf; NULL never */
};

/* NULL for a driver that is not in the table. */
const struct pp_hca_driver *pp_hca_driver_find(const char *driver);

/*
 * "yes", "no" (no kernel has it), or "backport-only" (this release is older than upstream's).
 * NULL when @release is no version.
 */
const char *pp_hca_driver_dmabuf(const struct pp_hca_driver *d, const char *release);

#endif
