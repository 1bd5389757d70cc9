/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_shapes: lines that differ only in numbers which no signature speaks of have one shape.
 *
 * A log in which every line complains repeats few shapes: what fitted the first line of one fits
 * the others, and nothing needs to be searched again. Numbers that stand in a signature stay part
 * of the shape, and all short ones in hexadecimal: two lines of one shape cannot be told apart by
 * any rule.
 */
#ifndef PP_JUDGE_SHAPE_H
#define PP_JUDGE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PP_SHAPE_NUMBERS = 65536, PP_SHAPE_FITS = 54, PP_SHAPES = 4096 };

struct pp_shapes {
	uint64_t told[PP_SHAPE_NUMBERS / 64]; /* numbers, modulo, that signatures speak of */
};

/* @text: of a signature or of one of its literals. */
void pp_shapes_tell(struct pp_shapes *s, const char *text);
/* @head: length of what the logger put in front, of which no number counts. Never 0. */
uint64_t pp_shape_of(const struct pp_shapes *s, const char *text, size_t len, size_t head);

/* What was found in a line of this shape. */
struct pp_shape_fits {
	uint64_t shape;	     /* 0: empty */
	uint64_t components; /* words of theirs, as pp_components_read() takes them */
	bool derived;	     /* a word of pp_derived_word() */
	uint16_t n;
	uint16_t list[PP_SHAPE_FITS]; /* signatures, in the order in which they were tested */
};

static inline struct pp_shape_fits *pp_shape_slot(struct pp_shape_fits *table, uint64_t shape)
{
	return &table[shape % PP_SHAPES];
}

#endif
