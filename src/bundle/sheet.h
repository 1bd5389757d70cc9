/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One self-contained HTML page: its frame, its style sheet, and elements with escaped text. No
 * script, no external file, and a policy that forbids both; well-formed XML too, readable on a
 * phone, light and dark, and prints.
 */
#ifndef PP_BUNDLE_SHEET_H
#define PP_BUNDLE_SHEET_H

#include "base/buf.h"
#include "base/compiler.h"

enum { PP_SHEET_MAX = 128 << 20 };

/* @title is escaped; @more_style: CSS, trusted; NULL none. */
void pp_sheet_begin(struct pp_buf *out, const char *title, const char *more_style);
/* 0, and the page in *ret, to be freed; -ENOMEM, -EFBIG, and @out is freed. */
int pp_sheet_end(struct pp_buf *out, char **ret);

/* <@tag>text</@tag>; @tag may carry a class: "td class=\"n\"". Text is escaped. */
void pp_sheet_text(struct pp_buf *out, const char *tag, const char *fmt, ...) PP_PRINTF(3, 4);
/* A table's opening and head; NULL ends the list; "#" before a head: of numbers. */
void pp_sheet_table(struct pp_buf *out, const char *const *heads);
void pp_sheet_table_end(struct pp_buf *out);
void pp_sheet_row(struct pp_buf *out);
void pp_sheet_row_end(struct pp_buf *out);
/* A number cell; "-" for none. */
void pp_sheet_number(struct pp_buf *out, int digits, double value);

/* A table without a head: rows of a name and its text; NULL is "unknown". */
void pp_sheet_items(struct pp_buf *out);
void pp_sheet_item(struct pp_buf *out, const char *name, const char *text);
/* What is shown when it is asked for; the text is its line. */
void pp_sheet_detail(struct pp_buf *out, const char *fmt, ...) PP_PRINTF(2, 3);
void pp_sheet_detail_end(struct pp_buf *out);
/* Lines of a stranger, as they are: any bytes; @most of them, and what is left out is said. */
void pp_sheet_raw(struct pp_buf *out, const char *text, size_t len, size_t most);

#endif
