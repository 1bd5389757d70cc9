/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_out: the one emit path of every verb. The same calls give text for a person or one
 * JSON document for a program.
 *
 * A field has a JSON key and a text label. NULL label: JSON only. NULL key: text only. Tables
 * become aligned columns (cells wrapped to the terminal's width) or an array of objects.
 * Errors are sticky and come back from pp_out_finish().
 */
#ifndef PP_BASE_OUT_H
#define PP_BASE_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/words.h"

struct pp_out;

struct pp_out_column {
	const char *key;   /* JSON key; NULL: text only */
	const char *title; /* column head; NULL: JSON only */
	bool wrap;	   /* may be narrowed and wrapped */
};

enum { PP_OUT_COLUMNS = 16 };

/*
 * @stream is borrowed. @width 0 means 100 columns. @color only touches verdict words.
 * NULL when out of memory.
 */
struct pp_out *pp_out_new(bool json, FILE *stream, unsigned int width, bool color);
struct pp_out *pp_out_free(struct pp_out *o); /* returns NULL */

bool pp_out_is_json(const struct pp_out *o);
unsigned int pp_out_width(const struct pp_out *o);
/* For a page that is read as prose: no wider than @most from now on. */
void pp_out_limit_width(struct pp_out *o, unsigned int most);
/* The JSON writer, for layers that write records of their own; NULL in text mode. */
struct pp_json *pp_out_json(struct pp_out *o);

/* Opens the document: schema is "peerpath.<kind>/<n>". Once, first. */
void pp_out_document(struct pp_out *o, const char *schema);
void pp_out_open(struct pp_out *o, const char *key); /* JSON object; nothing in text */
void pp_out_close(struct pp_out *o);

/* Text only. A heading is preceded by an empty line unless it is the first output. */
void pp_out_heading(struct pp_out *o, const char *title);
/* Text only: one paragraph, wrapped at the width, continuation lines indented by @indent. */
void pp_out_para(struct pp_out *o, unsigned int indent, const char *fmt, ...) PP_PRINTF(3, 4);
/* Text only: taken as it is, with its own line breaks. */
void pp_out_raw(struct pp_out *o, const char *text);

void pp_out_str(struct pp_out *o, const char *key, const char *label, const char *value);
void pp_out_i64(struct pp_out *o, const char *key, const char *label, int64_t value);
void pp_out_u64(struct pp_out *o, const char *key, const char *label, uint64_t value);
void pp_out_double(struct pp_out *o, const char *key, const char *label, double value);
void pp_out_bool(struct pp_out *o, const char *key, const char *label, bool value);
void pp_out_verdict(struct pp_out *o, const char *key, const char *label, enum pp_verdict v);

/* @columns is borrowed until pp_out_table_end(); at most PP_OUT_COLUMNS. */
void pp_out_table(struct pp_out *o, const char *key, const struct pp_out_column *columns,
		  unsigned int n);
/*
 * Text only, behind pp_out_table(): keys of columns that are left out, the first one first, while
 * the table is too wide for the terminal. Blanks between them; borrowed.
 */
void pp_out_spare(struct pp_out *o, const char *keys);
/* Cells come in the order of the columns; each row needs all of them. NULL is "-" and null. */
void pp_out_cell(struct pp_out *o, const char *value);
void pp_out_cellf(struct pp_out *o, const char *fmt, ...) PP_PRINTF(2, 3);
void pp_out_cell_i64(struct pp_out *o, int64_t value);
void pp_out_cell_double(struct pp_out *o, double value);
void pp_out_cell_bool(struct pp_out *o, bool value);
void pp_out_cell_verdict(struct pp_out *o, enum pp_verdict v);
void pp_out_table_end(struct pp_out *o);

/*
 * Closes the document, writes everything and flushes. 0, or the first error (-ENOSPC for a full
 * disk, -EPIPE, -ENOMEM). Nothing was written before this call.
 */
int pp_out_finish(struct pp_out *o);

#endif
