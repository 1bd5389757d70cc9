/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_prerequisites: what gate 1 needs to be known and good, asked of every object it
 * concerns; and the way in which GPU memory can be registered on each rail.
 *
 * All of it is capability: it says what can work, never what was used.
 */
#ifndef PP_JUDGE_PREREQUISITE_H
#define PP_JUDGE_PREREQUISITE_H

#include "judge/condition.h"

struct pp_prerequisite {
	const char *name; /* "NVIDIA kernel module is open" */
	const char *fact; /* key of the fact it rests on */
	enum pp_truth state;
	const char *value; /* "open", "8 of 8", "unknown: permission denied" */
	const char *how;   /* how to get the fact when it is unknown */
};

enum { PP_PREREQUISITES = 20 };

struct pp_prerequisites {
	struct pp_prerequisite list[PP_PREREQUISITES];
	unsigned int n;
};

/* Texts go to @arena. -ENOMEM. */
int pp_prerequisites_examine(const struct pp_facts *facts, struct pp_arena *arena,
			     struct pp_prerequisites *ret);

/* A way to register GPU memory; PP_WAY_NEEDED: what the hca and the gpu need in any case. */
enum pp_way { PP_WAY_DMABUF, PP_WAY_PEERMEM, PP_WAY_NEEDED, PP_WAYS };

/*
 * On a pair: all tests of the way hold; one test may be met by either of two facts (what a version
 * promises, or what a probe found). @ret_decider (may be NULL) receives the condition that decides:
 * the first false one, else the first open one, else NULL. Valid as long as the arena.
 */
struct pp_way_tests; /* opaque: the parsed conditions */
int pp_way_tests_new(struct pp_arena *arena, struct pp_way_tests **ret); /* -ENOMEM */
enum pp_truth pp_way_test(const struct pp_way_tests *t, enum pp_way way,
			  const struct pp_facts *facts, const struct pp_object *pair,
			  const struct pp_condition **ret_decider);

#endif
