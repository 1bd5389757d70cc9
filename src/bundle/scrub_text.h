/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text with its identifiers replaced: private to bundle/scrub*.c.
 */
#ifndef PP_BUNDLE_SCRUB_TEXT_H
#define PP_BUNDLE_SCRUB_TEXT_H

#include "base/buf.h"
#include "bundle/scrub_map.h"

struct pp_scrub_text {
	struct pp_scrub_map *map; /* borrowed */
	bool versions;		  /* four numbers with dots are a version here, no address */
	size_t replaced;	  /* occurrences so far */
	/* while scanning */
	const char *start, *end;
	const char *address_end; /* behind the last IPv4 address */
	struct pp_buf *out;	 /* borrowed */
};

/* Appends @len bytes of text, scrubbed, to @out. */
void pp_scrub_text(struct pp_scrub_text *s, const char *text, size_t len, struct pp_buf *out);

/*
 * Matchers: @at begins a word. They return the length that they replaced, writing the substitute
 * to s->out, or 0.
 */
size_t pp_scrub_try_uuid(struct pp_scrub_text *s, const char *at);
size_t pp_scrub_try_colons(struct pp_scrub_text *s, const char *at); /* MAC, GUID, GID, IPv6 */
size_t pp_scrub_try_ipv4(struct pp_scrub_text *s, const char *at);
size_t pp_scrub_try_interface(struct pp_scrub_text *s, const char *at); /* enx78e7d1ea46da */
size_t pp_scrub_try_hex(struct pp_scrub_text *s, const char *at); /* bare GUID, MAC, machine id */

/* Value of a hexadecimal digit, or -1. */
int pp_scrub_digit(char c);
bool pp_scrub_is_word(char c);			  /* letter or digit */
bool pp_scrub_is_one_of(char c, const char *set); /* never for NUL, which separates pieces */

#endif
