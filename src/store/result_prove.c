/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath.prove/1: one node, its gates, and what gates 2 to 4 measured.
 */
#include "store/result_read.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

enum { FACTS = 65536 };

static void read_gates(struct pp_reading *in, const json_t *doc)
{
	const json_t *gates = pp_reading_list(in, doc, "gates", PP_GATES), *row;
	const char *claim = NULL;
	enum pp_gate g;
	size_t i;

	if (!gates)
		pp_reading_refuse(in, -EBADMSG, "gates", "is no list");
	json_array_foreach(gates, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));

		if (!name || pp_gate_parse(name, &g)) {
			pp_reading_refuse(in, -EBADMSG, "name of a gate", "is none");
			return;
		}
		in->r->asked[g] = pp_reading_truth(in, row, "asked");
		(void)pp_reading_verdict(in, row, "verdict", &in->r->gate[g]);
		/* Of the first gate that is as bad as the whole; of a pass the last that was
		 * reached. */
		if (in->r->asked[g] && in->r->gate[g] == in->r->verdict &&
		    (!claim || in->r->verdict == PP_PASS))
			claim = pp_reading_text(in, row, "claim");
	}
	in->r->sentence = claim;
}

void pp_result_prove(struct pp_reading *in, const json_t *doc)
{
	const json_t *node = json_object_get(doc, "node"), *memory = json_object_get(doc, "memory");
	const json_t *library = json_object_get(doc, "library"), *facts;
	struct pp_result_node *n = pp_reading_add_node(in);

	if (!n)
		return;
	in->r->when = pp_reading_text(in, doc, "started");
	in->r->judged_at = pp_reading_text(in, doc, "judged");
	in->r->simulated = pp_reading_truth(in, doc, "simulated");
	in->r->judged = pp_reading_verdict(in, doc, "verdict", &in->r->verdict);
	n->software = pp_reading_text(in, doc, "software_fingerprint");
	n->topology = pp_reading_text(in, doc, "topology_class");
	read_gates(in, doc);
	n->host = pp_reading_text(in, node, "host");
	facts = pp_reading_list(in, node, "facts", FACTS);
	if (facts)
		pp_result_facts(in, facts, n);
	if (json_is_object(memory))
		pp_result_bench(in, memory);
	if (json_is_object(library))
		pp_result_nccl_gain(in, library, NULL);
	pp_result_application(in, json_object_get(doc, "application"));
}
