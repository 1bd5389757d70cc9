/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of the parts of a software stack, as the text or the node states them, and ranges over
 * them: many faults exist only where two parts meet in certain releases.
 *
 *   versions = nccl >= 2.19, efa-installer < 1.29
 *
 * The text comes first: it is of the process that failed. What neither states leaves a range open,
 * and so does a text that states two versions of which one lies outside.
 */
#ifndef PP_JUDGE_COMPONENT_H
#define PP_JUDGE_COMPONENT_H

#include "judge/condition.h"

enum { PP_COMPONENT_VERSION = 32, PP_COMPONENT_SEEN = 2, PP_COMPONENTS_MAX = 16 };
enum { PP_RANGES = 6 };

/* Versions that a text has stated, by component: the first two that differ. */
struct pp_components {
	char version[PP_COMPONENTS_MAX][PP_COMPONENT_SEEN][PP_COMPONENT_VERSION];
	uint64_t line[PP_COMPONENTS_MAX]; /* of the first */
};

/* One comparison; component is an index of the table. */
struct pp_range {
	unsigned int component;
	enum pp_op op; /* == != < <= > >= */
	char version[PP_COMPONENT_VERSION];
};

/* Literals of which one stands in every line that states a version; NULL past the last. */
const char *pp_component_word(unsigned int i);
/* @words: bits of the words of pp_component_word() that the line holds. */
void pp_components_read(struct pp_components *c, const char *text, size_t len, uint64_t line,
			uint64_t words);

/* "nccl >= 2.19, efa-installer < 1.29": at most PP_RANGES. -EINVAL with the nearest name. */
int pp_ranges_parse(const char *text, struct pp_range ret[PP_RANGES], unsigned int *ret_n,
		    struct pp_error *err);

const char *pp_component_name(unsigned int component);
const char *pp_range_op(const struct pp_range *r);

/*
 * Where a version comes from, text before @facts (NULL: no node): "text", "node", or NULL when it
 * is not known. *ret_version is borrowed from either; untouched then.
 */
const char *pp_component_version(const struct pp_components *c, const struct pp_facts *facts,
				 unsigned int component, const char **ret_version);
/* Without @here a version of this process's library path rules nothing out: the job had its own. */
enum pp_truth pp_range_test(const struct pp_range *r, const struct pp_components *c,
			    const struct pp_facts *facts, bool here);

#endif
