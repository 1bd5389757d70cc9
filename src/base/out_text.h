/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What out.c and out_table.c share: the writer's state and its ways of breaking lines.
 */
#ifndef PP_BASE_OUT_TEXT_H
#define PP_BASE_OUT_TEXT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/out.h"

/* What a column of text is not narrowed below while another one can be left out. */
enum { PP_OUT_READABLE = 24 };
enum { PP_OUT_NARROWEST = 10 }; /* columns that wrapped text gets at least */

struct pp_out_held {
	const char *text;
	bool is_verdict;
	enum pp_verdict verdict;
	struct pp_out_held *next;
};

struct pp_out {
	FILE *stream;
	bool is_json, color;
	unsigned int width;
	struct pp_buf buf;
	struct pp_json json;

	/* the open table */
	const struct pp_out_column *columns;
	unsigned int n_columns, column;
	const char *spare;
	uint32_t left_out; /* bits of columns */
	struct pp_arena cells;
	struct pp_out_held *first, *last;
};

/* Columns that @n bytes of UTF-8 take on a terminal, wide characters apart. */
size_t pp_out_columns_of(const char *text, size_t n);

/*
 * Bytes of @text that fit into @width columns, broken at a blank where there is one.
 * *skip is set to the number of blanks to drop after them.
 */
size_t pp_out_fit(const char *text, size_t width, size_t *skip);

void pp_out_spaces(struct pp_out *o, size_t n);
/* Appends @n bytes of foreign text, control bytes made harmless. */
void pp_out_plain(struct pp_out *o, const char *text, size_t n);

/* Escape sequences around a verdict's word; "" without colors. */
const char *pp_out_color(const struct pp_out *o, enum pp_verdict v);
const char *pp_out_color_end(const struct pp_out *o);

#endif
