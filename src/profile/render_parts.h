/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to profile/render*.c.
 */
#ifndef PP_PROFILE_RENDER_PARTS_H
#define PP_PROFILE_RENDER_PARTS_H

#include "profile/profile.h"

void pp_render_kubernetes(const struct pp_profile *p, struct pp_buf *ret);

#endif
