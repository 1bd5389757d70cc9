/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libraries print for an errno or a completion status: for field.c and field_read.c.
 */
#ifndef PP_JUDGE_FIELD_WORDS_H
#define PP_JUDGE_FIELD_WORDS_H

#include "judge/field.h"

enum { PP_ERRNO_WORDS = 40, PP_STATUS_WORDS = 14 };

/* One errno may have several rows: kmod, for one, has words of its own. */
struct pp_errno_word {
	int code;
	const char *name, *text; /* name: NULL in all rows but the first; text in lower case */
};

struct pp_status_word {
	const char *name, *text; /* IBV_WC_name, ibv_wc_status_str() in lower case */
};

extern const struct pp_errno_word pp_errno_words[PP_ERRNO_WORDS];
/* Status that a syndrome of mlx5's error completions becomes (UCX prints these); -1 none. */
int64_t pp_field_syndrome_status(int64_t syndrome);

extern const struct pp_status_word pp_status_words[PP_STATUS_WORDS]; /* by status */

void pp_fields_add_word(struct pp_fields *f, enum pp_field which, const char *word, size_t len);

static inline unsigned int pp_field_gram(const char *p)
{
	unsigned int v = (unsigned char)p[0] | (unsigned int)(unsigned char)p[1] << 8 |
			 (unsigned int)(unsigned char)p[2] << 16;

	return v * 2654435761U >> 20;
}

static inline bool pp_field_has_gram(const struct pp_fields *f, const char *p)
{
	unsigned int g = pp_field_gram(p);

	return f->grams[g / 64] >> (g % 64) & 1;
}

/* False: @word, in lower case and without runs of blanks, is not in the line. */
static inline bool pp_field_may_hold(const struct pp_fields *f, const char *word)
{
	if (!word[0] || !word[1])
		return true;
	for (; word[2]; word++)
		if (!pp_field_has_gram(f, word))
			return false;
	return true;
}

void pp_field_read_names(struct pp_fields *f);
/* Calls of @ret have been read. */
void pp_field_read_operations(struct pp_fields *ret);
void pp_field_read_providers(struct pp_fields *ret);

#endif
