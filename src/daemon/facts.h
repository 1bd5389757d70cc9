/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks out of a collected node, and out of what its drivers answered. Pure.
 */
#ifndef PP_DAEMON_FACTS_H
#define PP_DAEMON_FACTS_H

#include "daemon/look.h"
#include "node/node.h"

/* -ENOMEM. @live: BAR1 is left to its own watcher. */
int pp_watch_facts_add(struct pp_node *n, bool live, struct pp_looks *into);

enum { PP_WATCH_QUESTIONS = 24 };

/* Questions to drivers at the last collection, and which of them did not return. */
struct pp_watch_hung {
	struct pp_watch_question {
		char name[48];
		bool answered, hung; /* neither: nothing is known of its calls */
		char detail[256];    /* "nvmlInit_v2 did not return in 5000 ms" */
	} question[PP_WATCH_QUESTIONS];
	size_t n_questions;
	size_t n; /* that did not return */
};

/* @record: of the collection; its answers are read, never trusted. */
void pp_watch_hung_read(const struct pp_record *record, struct pp_watch_hung *ret);
int pp_watch_hung_add(const struct pp_watch_hung *h, struct pp_looks *into);

#endif
