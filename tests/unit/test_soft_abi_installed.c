/* SPDX-License-Identifier: Apache-2.0 */
#include <infiniband/verbs.h>

#include "soft_abi_fields.h"

/* clang-format off */
SOFT_ABI_TABLE(soft_abi_installed)
#include "soft_abi_fields.def"
	{NULL, 0},
};
