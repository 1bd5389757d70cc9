/* SPDX-License-Identifier: Apache-2.0 */
#if __has_include(<rdma/rdma_cma.h>)
#include <rdma/rdma_cma.h>

#include "soft_abi_fields.h"

/* clang-format off */
SOFT_ABI_TABLE(soft_abi_installed)
#include "soft_cm_fields.def"
	{NULL, 0},
};
/* clang-format on */
#else
#include "soft_abi_fields.h"

const struct soft_abi_field soft_abi_installed[] = {{NULL, 0}};
#endif
