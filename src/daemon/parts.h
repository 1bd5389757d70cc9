/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_parts: what a node is made of, GPUs by UUID and hcas by node GUID, to tell whether a
 * bundle is of this node. A name tells nothing: nodes are renamed, and names are given out again.
 *
 * Of a node only files are read, no driver is asked.
 */
#ifndef PP_DAEMON_PARTS_H
#define PP_DAEMON_PARTS_H

#include <jansson.h>
#include <stddef.h>

#include "node/source.h"

enum { PP_PARTS_MOST = 256 };

enum pp_part_kind { PP_PART_GPU, PP_PART_HCA };

struct pp_part {
	enum pp_part_kind kind;
	char id[64];
};

struct pp_parts {
	struct pp_part part[PP_PARTS_MOST];
	size_t n;
};

enum pp_parts_like {
	PP_PARTS_SAME,	  /* a part in common */
	PP_PARTS_OTHER,	  /* parts of a kind on both sides, and none in common */
	PP_PARTS_UNKNOWN, /* nothing that could be compared */
};

void pp_parts_read(struct pp_source *s, struct pp_parts *ret);
/* Object "node" of result.json: "facts" with "fact" and "value". */
void pp_parts_of_result(const json_t *node, struct pp_parts *ret);
enum pp_parts_like pp_parts_compare(const struct pp_parts *a, const struct pp_parts *b);

#endif
