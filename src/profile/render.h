/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as the tools want it that bring files to nodes. Text only: nothing is run.
 */
#ifndef PP_PROFILE_RENDER_H
#define PP_PROFILE_RENDER_H

#include "profile/profile.h"

enum pp_render { PP_RENDER_FILES, PP_RENDER_ANSIBLE, PP_RENDER_IMAGE, PP_RENDER_KUBERNETES };

/* "files", "ansible", "image", "kubernetes"; -EINVAL. */
int pp_render_parse(const char *word, enum pp_render *ret);
void pp_render(const struct pp_profile *p, enum pp_render how, struct pp_buf *ret);

#endif
