/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as one self-contained page (bundle/sheet.h): what moved, run by run. */
#ifndef PP_BUNDLE_PAGE_COMPARISON_H
#define PP_BUNDLE_PAGE_COMPARISON_H

#include "base/buf.h"
#include "judge/comparison.h"

/* @before, @after: what @c was made of. malloc'ed. -ENOMEM, -EFBIG. */
int pp_page_comparison(const struct pp_comparison *c, const struct pp_trial *const *before,
		       size_t n_before, const struct pp_trial *const *after, size_t n_after,
		       char **ret);

/* The same as parts of a page that is open. */
void pp_page_comparison_parts(struct pp_buf *out, const struct pp_comparison *c,
			      const struct pp_trial *const *before, size_t n_before,
			      const struct pp_trial *const *after, size_t n_after);
/* Every run of one result that counts, as a dot on a line. Nothing when there is none. */
void pp_page_strip(struct pp_buf *out, const struct pp_metric *m, double median,
		   const struct pp_trial *t);

#endif
