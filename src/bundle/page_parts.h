/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a page of bench: page.c has the frame, page_pair.c one pair, page_plots.c its plots.
 */
#ifndef PP_BUNDLE_PAGE_PARTS_H
#define PP_BUNDLE_PAGE_PARTS_H

#include "bundle/page.h"
#include "bundle/sheet.h"

struct pp_page {
	struct pp_buf *out;
	const struct pp_bench *b;
	const struct pp_transfer *t;
	const struct pp_margins *margins;
	bool is_part; /* of another page, which has its own first heading */
};

const char *pp_page_node(const struct pp_page *p, const struct pp_bench_end *e);

void pp_page_pair(struct pp_page *p, unsigned int pair);
void pp_page_plots(struct pp_page *p, const struct pp_bench_pair *pair);

#endif
