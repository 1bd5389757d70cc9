/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node collected from a record that the test made, and what its facts say.
 */
#ifndef PP_TESTS_NODE_REPLAYED_H
#define PP_TESTS_NODE_REPLAYED_H

#include "unit.h"

#include "node/node.h"

static inline struct pp_record *node_record(void)
{
	struct pp_record *record;

	assert_int_equal(pp_record_new((size_t)16 << 20, &record), 0);
	return record;
}

/* Takes @record. */
static inline struct pp_source *node_source(struct pp_record *record)
{
	struct pp_source *s;
	struct pp_error err;

	assert_int_equal(pp_source_replay_record(record, &s, &err), 0);
	return s;
}

/* Takes @record; freed by node_done(). */
static inline struct pp_node *node_replayed(struct pp_record *record)
{
	struct pp_error err;
	struct pp_node *n;

	assert_int_equal(pp_node_collect(node_source(record), &n, &err), 0);
	return n;
}

/* With its source. */
static inline void node_done(struct pp_node *n)
{
	struct pp_source *s = n->src;

	pp_node_free(n);
	pp_source_free(s);
}

/* Of the node itself; holds until the next call. */
static inline const char *node_text(const struct pp_node *n, enum pp_fact_id id)
{
	static char buf[8192];

	return pp_fact_text(pp_fact_get(n->self, id), buf, sizeof(buf));
}

static inline bool node_known(const struct pp_node *n, enum pp_fact_id id)
{
	return pp_fact_get(n->self, id)->known;
}

#endif
