/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_reader: cuts a stream of bytes into lines and hands on the few that may say
 * something about NCCL, cleaned: no NUL, no escape sequence, no control byte, ASCII only.
 *
 * Memory is one buffer, whatever the stream holds. A line longer than the buffer, or cleaned text
 * longer than PP_NCCL_LINE_MAX, is cut, and counted if it speaks of NCCL.
 */
#ifndef PP_NCCL_READER_H
#define PP_NCCL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PP_NCCL_LINE_MAX = 16384, PP_NCCL_READER_BYTES = 256 << 10 };

/* @text is NUL-terminated and borrowed for the call. */
typedef void pp_nccl_reader_fn(void *ctx, const char *text, size_t len, uint64_t number);

struct pp_nccl_reader {
	pp_nccl_reader_fn *fn;
	void *ctx;
	char *buf; /* owned; a byte more than it holds, for a NUL */
	size_t len;
	uint64_t number; /* lines begun so far */
	uint64_t cut;	 /* lines that were longer than the bound */
	bool skipping;	 /* inside such a line */
	bool counted;	 /* this line is among the cut ones */
	bool partial;	 /* the line handed on has no newline behind it: the file was cut there */
	bool table;	 /* rows of numbers are wanted too (a table of nccl-tests) */
	char clean[PP_NCCL_LINE_MAX + 1];
};

/* NULL when out of memory. */
struct pp_nccl_reader *pp_nccl_reader_new(pp_nccl_reader_fn *fn, void *ctx);
struct pp_nccl_reader *pp_nccl_reader_free(struct pp_nccl_reader *r); /* returns NULL */
void pp_nccl_reader_feed(struct pp_nccl_reader *r, const char *bytes, size_t len);
/* The stream is over: the last line may lack its newline. Line numbers begin anew. */
void pp_nccl_reader_end(struct pp_nccl_reader *r);

#endif
