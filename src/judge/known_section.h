/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section of a rule file while it is read, for known_parse.c (text to sections) and known_take.c
 * (section to known problem).
 */
#ifndef PP_JUDGE_KNOWN_SECTION_H
#define PP_JUDGE_KNOWN_SECTION_H

#include "judge/known_set.h"

enum { PP_KNOWN_LINES = 64 };

enum pp_known_key {
	PP_KEY_TITLE,
	PP_KEY_PROBLEM,
	PP_KEY_CAUSE,
	PP_KEY_DECIDE,
	PP_KEY_FIX,
	PP_KEY_FIX_ID,
	PP_KEY_REVERSE,
	PP_KEY_NEXT,
	PP_KEY_SOURCE,
	PP_KEY_REVIEWED,
	PP_KEY_NOT,
	PP_KEY_CONTROL,
	PP_KEY_KIND,
	PP_KEY_FOR,
	PP_KEY_ALONE,
	PP_KEY_HINTED,
	PP_KEY_CONFIRMED,
	PP_KEY_BEATS,
	PP_KEY_LAST,
	PP_KEY_FOLLOWS,
	PP_KEY_MATCH,
	PP_KEY_WITH,
	PP_KEY_WITHOUT,
	PP_KEY_HINT,
	PP_KEY_REQUIRES,
	PP_KEY_EXCLUDES,
	PP_KEY_VERSIONS,
	PP_KEY_SHOW,
	PP_KEYS
};

struct pp_known_key_info {
	const char *name;
	bool repeats, needed; /* needed of problems, consequences and harmless ones */
};

extern const struct pp_known_key_info pp_known_keys[PP_KEYS];

struct pp_known_entry {
	enum pp_known_key key;
	const char *value;
	unsigned int line;
};

struct pp_known_section {
	struct pp_known_set *set;
	const char *name;
	const char *id;		  /* of the section being read; NULL before the first */
	unsigned int id_line, at; /* at: line to blame */
	struct pp_known_entry list[PP_KNOWN_LINES];
	unsigned int n;
	struct pp_error own; /* of a whole section: says its line itself */
};

/* The first value of a key, NULL none. */
const char *pp_known_get(const struct pp_known_section *s, enum pp_known_key key);
/* Fills @k, whose id, file and line are set. -EINVAL, with the line to blame in @s. */
int pp_known_take(struct pp_known_section *s, struct pp_known *k, struct pp_error *err);

#endif
