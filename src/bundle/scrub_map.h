/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_scrub_map: from what identifies to what stands in its place. One key, made at random
 * and forgotten with the map, so that nobody can try guesses; equal things stay equal, unequal
 * ones stay unequal, and what was derived from a MAC address (a GUID, a link-local address) is
 * still derived from its substitute. Private to bundle/scrub*.c.
 */
#ifndef PP_BUNDLE_SCRUB_MAP_H
#define PP_BUNDLE_SCRUB_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { PP_SCRUB_KEY_BYTES = 16, PP_SCRUB_WORDS_MAX = 1024, PP_SCRUB_WORD_LEN_MAX = 256 };

enum pp_scrub_class { PP_SCRUB_HOST, PP_SCRUB_DOMAIN, PP_SCRUB_USER, PP_SCRUB_SERIAL };

struct pp_scrub_word {
	enum pp_scrub_class class;
	const char *from, *to;
	size_t len;
	bool everywhere; /* false: only where it stands in a known place */
};

struct pp_scrub_net;
struct pp_scrub_set {
	uint64_t *values; /* owned, open addressing; 0 free */
	size_t n, slots;
};

struct pp_scrub_map {
	uint8_t key[PP_SCRUB_KEY_BYTES];
	struct pp_arena arena;
	struct pp_scrub_word words[PP_SCRUB_WORDS_MAX]; /* longest first */
	size_t n_words;
	uint64_t first[4];	   /* bit set of the first characters of words, both cases */
	struct pp_scrub_net *nets; /* IPv4 networks in order of appearance; owned */
	size_t n_nets;
	uint64_t *prefixes; /* upper halves of IPv6 addresses, in order of appearance; owned */
	size_t n_prefixes;
	struct pp_scrub_set hardware; /* GUIDs and MAC addresses seen, for their bare forms */
	bool failed; /* out of memory, or more names or networks than can be mapped */
};

int pp_scrub_map_new(struct pp_scrub_map **ret);
struct pp_scrub_map *pp_scrub_map_free(struct pp_scrub_map *m); /* returns NULL */

/* Keyed hash of bytes; @purpose keeps uses apart. */
uint64_t pp_scrub_hash(const struct pp_scrub_map *m, char purpose, const void *bytes, size_t len);

/* Each in place; the vendor's part of hardware addresses is kept. */
void pp_scrub_mac(struct pp_scrub_map *m, uint8_t mac[6]);
uint64_t pp_scrub_guid(struct pp_scrub_map *m, uint64_t guid);
uint32_t pp_scrub_ipv4(struct pp_scrub_map *m, uint32_t address);
void pp_scrub_ipv6(struct pp_scrub_map *m, uint8_t address[16]);
void pp_scrub_uuid(const struct pp_scrub_map *m, uint8_t uuid[16]);
/* Digits become digits, letters letters, the rest stays. */
void pp_scrub_shape(const struct pp_scrub_map *m, char *text, size_t len);

/* Was this GUID or MAC address (as a number) seen? */
bool pp_scrub_known(const struct pp_scrub_map *m, uint64_t hardware);

/* Longest learned word that @text begins with (of those for everywhere), or NULL. */
const struct pp_scrub_word *pp_scrub_word_at(const struct pp_scrub_map *m, const char *text,
					     size_t len);
/* Learns a word, or finds it: its substitute. A full map has failed. */
const char *pp_scrub_learn(struct pp_scrub_map *m, enum pp_scrub_class class, const char *word,
			   size_t len, bool everywhere);

#endif
