/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_fields: what a line says in any tool's wording, as values that can be compared.
 *
 * "error=14", "errno:14", "RC: -14", "Bad address" and "EFAULT" are the same errno; the number
 * behind "error" in a line about a completion is its status instead. Values are few per line; more
 * than fit are left out.
 *
 * A field is read when it is asked for. Most words that announce a value are in no given line:
 * which groups of three letters a line holds tells so without searching it for each of them.
 */
#ifndef PP_JUDGE_FIELD_H
#define PP_JUDGE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pp_field {
	PP_FIELD_CALL,	 /* function named in the line: ibv_reg_mr */
	PP_FIELD_ERRNO,	 /* positive */
	PP_FIELD_STATUS, /* of a work completion */
	PP_FIELD_VENDOR, /* vendor code of a completion */
	PP_FIELD_XID,
	PP_FIELD_ENV,	 /* "NAME:VALUE" of a setting */
	PP_FIELD_DRIVER, /* kernel driver of a user-space provider that is named */
	PP_FIELD_OP,	 /* what was attempted, named or described: reg_mr, create_qp, modify_qp */
	PP_FIELD_PROVIDER, /* whose device is named: mlx5, efa, bnxt_re, ionic */
	PP_FIELDS
};

enum {
	PP_FIELD_NUMBERS = 6,
	PP_FIELD_WORDS = 8,
	PP_FIELD_WORD = 160,
	PP_FIELD_LINE = 16384, /* of a line that is read */
	PP_FIELD_GRAMS = 4096
};

struct pp_fields {
	int64_t numbers[PP_FIELDS][PP_FIELD_NUMBERS];
	char words[PP_FIELDS][PP_FIELD_WORDS][PP_FIELD_WORD];
	unsigned int n[PP_FIELDS];
	const char *text; /* borrowed */
	size_t len, lower_len;
	unsigned int done; /* bits of the fields that have been read */
	enum { PP_OF_UNKNOWN, PP_OF_COMPLETION, PP_OF_OTHER } of;
	uint64_t grams[PP_FIELD_GRAMS / 64];
	char lower[PP_FIELD_LINE]; /* the line in lower case, runs of blanks as one */
};

/* @text is borrowed until the last pp_fields_need(). */
void pp_fields_begin(const char *text, size_t len, struct pp_fields *ret);
void pp_fields_need(struct pp_fields *f, enum pp_field which);
/* All of them. */
void pp_fields_read(const char *text, size_t len, struct pp_fields *ret);

bool pp_field_is_word(enum pp_field f);
/* Whether a value stands in the line as it is written in a rule (or in a known spelling). */
bool pp_field_is_literal(enum pp_field f);
const char *pp_field_name(enum pp_field f);
int pp_field_parse(const char *name, size_t len, enum pp_field *ret); /* -EINVAL */

/* "EFAULT" or "14" as 14; "REM_ACCESS" or "10" as 10; 0x.. for vendor codes. -EINVAL. */
int pp_field_number(enum pp_field f, const char *text, int64_t *ret);

/*
 * Ways in which a line may show this value, one after another: literals of which at least one
 * stands in every line that has it. NULL past the last.
 */
const char *pp_field_spelling(enum pp_field f, int64_t value, unsigned int i, char buf[64]);

/* "local protection error" for a completion status, NULL for an unknown one. */
const char *pp_field_status_text(int64_t status);

#endif
