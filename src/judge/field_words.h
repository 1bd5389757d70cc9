/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libraries print for an errno or a completion status: for field.c and field_read.c.
 */
#ifndef PP_JUDGE_FIELD_WORDS_H
#define PP_JUDGE_FIELD_WORDS_H

#include "judge/field.h"

enum { PP_ERRNO_WORDS = 25, PP_STATUS_WORDS = 14 };

struct pp_errno_word {
	int code;
	const char *name, *text; /* text in lower case */
};

struct pp_status_word {
	const char *name, *text; /* IBV_WC_name, ibv_wc_status_str() in lower case */
};

extern const struct pp_errno_word pp_errno_words[PP_ERRNO_WORDS];
/* Status that a syndrome of mlx5's error completions becomes (UCX prints these); -1 none. */
int64_t pp_field_syndrome_status(int64_t syndrome);

extern const struct pp_status_word pp_status_words[PP_STATUS_WORDS]; /* by status */

#endif
