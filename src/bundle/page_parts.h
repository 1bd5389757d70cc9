/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a page: elements with escaped text. page.c has the frame, page_pair.c one pair,
 * page_plots.c its plots.
 */
#ifndef PP_BUNDLE_PAGE_PARTS_H
#define PP_BUNDLE_PAGE_PARTS_H

#include "base/compiler.h"
#include "bundle/page.h"

struct pp_page {
	struct pp_buf out;
	const struct pp_bench *b;
	const struct pp_transfer *t;
	const struct pp_margins *margins;
};

/* <@tag>text</@tag>; @tag may carry a class: "td class=\"n\"". Text is escaped. */
void pp_page_text(struct pp_page *p, const char *tag, const char *fmt, ...) PP_PRINTF(3, 4);
/* A table's opening and head; NULL ends the list. */
void pp_page_table(struct pp_page *p, const char *const *heads);
void pp_page_table_end(struct pp_page *p);
void pp_page_row(struct pp_page *p);
void pp_page_row_end(struct pp_page *p);
/* A number cell; "-" for none. */
void pp_page_number(struct pp_page *p, int digits, double value);
const char *pp_page_node(const struct pp_page *p, const struct pp_bench_end *e);

void pp_page_pair(struct pp_page *p, unsigned int pair);
void pp_page_plots(struct pp_page *p, const struct pp_bench_pair *pair);

#endif
