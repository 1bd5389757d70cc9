/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address vectors and handles, for queue pairs.
 */
#ifndef SOFT_ABI_AH_H
#define SOFT_ABI_AH_H

#include "soft/abi/object.h"

/* -EINVAL: no such port, source or remote end. */
int soft_ah_check(const struct soft_device *d, const struct ibv_ah_attr *attr);
/* The way to the remote end; the engine's lock is held. -EADDRNOTAVAIL. */
int soft_ah_path_locked(struct soft_ah_object *ah, struct soft_path *ret);

#endif
