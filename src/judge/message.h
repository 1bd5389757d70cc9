/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_lines: bytes of a log, in any pieces, to clean lines.
 *
 * A line ends at LF, at CR (progress bars), or at PP_LINE_LONGEST bytes, where it goes on as
 * another piece with the same number. Terminal sequences are taken out, NUL is a blank; anything
 * else is handed on as it is. Memory is bounded by one line.
 */
#ifndef PP_JUDGE_MESSAGE_H
#define PP_JUDGE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum { PP_LINE_LONGEST = 16384 };

/* @text is borrowed for the call, not terminated, never empty. @line counts from 1. */
typedef void pp_line_handler(void *arg, const char *text, size_t len, uint64_t line);

struct pp_lines {
	pp_line_handler *handler;
	void *arg;
	uint64_t line;		     /* number of the line that is being read */
	size_t kept;		     /* bytes of it in part */
	char part[PP_LINE_LONGEST];  /* a line whose end has not been seen */
	char clean[PP_LINE_LONGEST]; /* a line without its terminal sequences */
};

/* Too large for a stack: the owner allocates it. */
void pp_lines_init(struct pp_lines *l, pp_line_handler *handler, void *arg);
void pp_lines_push(struct pp_lines *l, const char *bytes, size_t len);
void pp_lines_end(struct pp_lines *l);

/* What a line says of its own when and where. */
struct pp_stamp {
	int64_t time_us; /* since the epoch, of a date in the line; -1 none */
	int64_t boot_us; /* since boot, of a kernel message; -1 none */
	int rank;	 /* -1 none */
};

void pp_stamp_read(const char *text, size_t len, struct pp_stamp *ret);
/* Without the rank, which takes longer than both times. */
void pp_stamp_read_times(const char *text, size_t len, struct pp_stamp *ret);

/* Length of what a logger put before the message: "host:1:2 [0] NCCL WARN " stays part of it. */
size_t pp_message_prefix(const char *text, size_t len);

#endif
