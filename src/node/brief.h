/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts by which a node is recognised among many and compared with its like: what a result
 * carries of its node, so that a fleet can keep it without the whole bundle.
 */
#ifndef PP_NODE_BRIEF_H
#define PP_NODE_BRIEF_H

#include "base/json.h"
#include "node/node.h"

/* Ends with PP_FACTS. Beside these the software tuple (pp_software_tuple). */
extern const enum pp_fact_id pp_brief_facts[];

/* Is it one of both lists? */
bool pp_brief_holds(const char *key);

/*
 * Object "node": "host" (null: not known) and "facts", each with "fact", "of" and "value"; only
 * what is known, and of pairs only rails.
 */
void pp_brief_write(struct pp_json *j, const struct pp_node *n);

#endif
