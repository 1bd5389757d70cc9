/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_spot: a place on a node that a profile may hold a file in, and what it takes until a
 * change there is in effect. Nothing else can be named by a profile: not by path, not by "..", not
 * by a link.
 */
#ifndef PP_PROFILE_SPOT_H
#define PP_PROFILE_SPOT_H

#include <stdbool.h>

enum pp_effect { PP_EFFECT_JOBS, PP_EFFECT_RELOAD, PP_EFFECT_REBOOT };

struct pp_spot {
	const char *name;   /* "modprobe.d" */
	const char *before; /* path up to the name; the whole path where @after is NULL */
	const char *after;  /* what the name ends with; NULL: one file */
	bool assigns;	    /* lines are KEY=VALUE, so that single keys can be set */
	enum pp_effect effect;
	const char *how; /* what the operator does then; this program never does it */
};

/* Longest path that a profile may name: with a suffix it is still a section of an INI file. */
enum { PP_SPOT_PATH = 200 };

/* NULL: no place of a profile. */
const struct pp_spot *pp_spot_find(const char *path);
/* The i-th; NULL past the end. */
const struct pp_spot *pp_spot_at(unsigned int i);

const char *pp_effect_name(enum pp_effect e); /* "new jobs", "reload", "reboot" */

#endif
