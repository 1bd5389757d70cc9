/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of a log -> who said it and what: "LAUNCHER host:pid:tid [dev] NCCL INFO message".
 *
 * Whatever a launcher puts before the host is skipped: the prefix is read from the word NCCL
 * backwards. Two writers of one stream may run together; then one line of text holds several.
 */
#ifndef PP_NCCL_LINE_H
#define PP_NCCL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of a borrowed line. */
struct pp_nccl_span {
	const char *at;
	size_t len;
};

enum pp_nccl_level { PP_NCCL_PLAIN, PP_NCCL_INFO, PP_NCCL_WARN, PP_NCCL_TRACE };

struct pp_nccl_line {
	enum pp_nccl_level level; /* PLAIN: no prefix of NCCL; the message is the whole text */
	struct pp_nccl_span host;
	uint32_t pid, tid;
	bool has_function;	   /* "file:line (func) NCCL WARN" */
	struct pp_nccl_span stamp; /* "2026-11-29 15:05:14" before the host, or empty */
	struct pp_nccl_span message;
};

/* Where the next "NCCL" begins in [at, end), or end. Faster than memmem(): L is rare in texts. */
const char *pp_nccl_line_find_word(const char *at, const char *end);

/*
 * The next line within @text, from *@pos on; false when there is none. A text without any prefix
 * of NCCL comes back once, as PLAIN.
 */
bool pp_nccl_line_next(const char *text, size_t len, size_t *pos, struct pp_nccl_line *ret);

#endif
