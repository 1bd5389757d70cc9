/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel versions: the first upstream release whose driver sets reg_user_mr_dmabuf in its
 * ib_device_ops (mlx5 bfe0cc6e, bnxt_re 0a30e59f). "Never" was checked in 6.12.
 */
#include "node/hca_driver.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/version.h"
#include "base/banned.h"

static const struct pp_hca_driver drivers[] = {
	{"mlx5_core", "mlx5", "5.12"},	 {"efa", "efa", "5.16"},
	{"ice", "irdma", "6.3"},	 {"i40e", "irdma", "6.3"},
	{"irdma", "irdma", "6.3"},	 {"bnxt_en", "bnxt_re", "6.6"},
	{"bnxt_re", "bnxt_re", "6.6"},	 {"mana", "mana", "6.15"},
	{"ionic", "ionic", "6.18"},	 {"mlx4_core", "mlx4", NULL},
	{"erdma", "erdma", NULL},	 {"hns3", "hns", NULL},
	{"hns_roce_hw_v2", "hns", NULL}, {"qede", "qedr", NULL},
	{"cxgb4", "cxgb4", NULL},	 {"hfi1", "hfi1verbs", NULL},
	{"ib_qib", "ipathverbs", NULL},	 {"ib_mthca", "mthca", NULL},
	{"be2net", "ocrdma", NULL},	 {"vmw_pvrdma", "vmw_pvrdma", NULL},
	{"rdma_rxe", "rxe", NULL},	 {"siw", "siw", NULL},
};

const struct pp_hca_driver *pp_hca_driver_find(const char *driver)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(drivers); i++)
		if (!strcmp(drivers[i].driver, driver))
			return &drivers[i];
	return NULL;
}

const char *pp_hca_driver_dmabuf(const struct pp_hca_driver *d, const char *release)
{
	if (!d->dmabuf_since)
		return "no";
	if (!pp_version_valid(release))
		return NULL;
	return pp_version_compare(release, d->dmabuf_since) >= 0 ? "yes" : "backport-only";
}
