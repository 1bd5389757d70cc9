/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file's path or a variable's name says of its value: private to bundle/scrub*.c.
 */
#ifndef PP_BUNDLE_SCRUB_CONTEXT_H
#define PP_BUNDLE_SCRUB_CONTEXT_H

#include "bundle/scrub_text.h"

enum pp_scrub_context {
	PP_SCRUB_AS_TEXT,
	PP_SCRUB_AS_VERSION, /* text without IPv4 addresses */
	PP_SCRUB_AS_HOST,    /* a host's name */
	PP_SCRUB_AS_HOSTS,   /* a list of them */
	PP_SCRUB_AS_DOMAIN,
	PP_SCRUB_AS_USER,
	PP_SCRUB_AS_HOME, /* a home directory: its last part is a user's name */
	PP_SCRUB_AS_SERIAL,
	PP_SCRUB_AS_FREE,    /* free text of an administrator: nothing of it is needed */
	PP_SCRUB_AS_SECRET,  /* nothing of it may be kept */
	PP_SCRUB_AS_IPV6,    /* 32 digits without colons */
	PP_SCRUB_AS_OPAQUE,  /* a number that is made from a hardware address */
	PP_SCRUB_AS_PROGRAM, /* a process's name */
	PP_SCRUB_AS_PARTS,   /* path of a control group or a program */
};

enum pp_scrub_context pp_scrub_context_of_path(const char *path);
/* Of a JSON member or an environment variable. */
enum pp_scrub_context pp_scrub_context_of_name(const char *name);

/* Appends the value, scrubbed as its context asks. */
void pp_scrub_value(struct pp_scrub_text *s, enum pp_scrub_context context, const char *value,
		    size_t len, struct pp_buf *out);

/* A recorded answer (JSON): -EBADMSG when it is none, -ENOMEM. Appends to @out. */
int pp_scrub_json(struct pp_scrub_text *s, const char *text, size_t len, struct pp_buf *out);

#endif
