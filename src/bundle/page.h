/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bench as one self-contained HTML page: verdict, nodes, plots, numbers, attempts. No
 * script, no external file, every text escaped: a page of a stranger's bundle is safe to open. It
 * is well-formed XML too, readable on a phone, and prints.
 */
#ifndef PP_BUNDLE_PAGE_H
#define PP_BUNDLE_PAGE_H

#include "base/buf.h"
#include "judge/transfer.h"

/* malloc'ed. -ENOMEM, -EFBIG. */
int pp_page_bench(const struct pp_bench *b, const struct pp_transfer *t,
		  const struct pp_margins *margins, char **ret);

/* The same as parts of a page that is open. */
void pp_page_bench_parts(struct pp_buf *out, const struct pp_bench *b, const struct pp_transfer *t,
			 const struct pp_margins *margins);

#endif
