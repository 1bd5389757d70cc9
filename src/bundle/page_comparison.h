/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as one self-contained page (bundle/sheet.h): what moved, run by run. */
#ifndef PP_BUNDLE_PAGE_COMPARISON_H
#define PP_BUNDLE_PAGE_COMPARISON_H

#include "judge/comparison.h"

/* @before, @after: what @c was made of. malloc'ed. -ENOMEM, -EFBIG. */
int pp_page_comparison(const struct pp_comparison *c, const struct pp_trial *const *before,
		       size_t n_before, const struct pp_trial *const *after, size_t n_after,
		       char **ret);

#endif
