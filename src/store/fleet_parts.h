/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the fleet share: private to store/fleet*.c.
 */
#ifndef PP_STORE_FLEET_PARTS_H
#define PP_STORE_FLEET_PARTS_H

#include "store/fleet.h"

enum { PP_NODE_ID = 17, PP_FLEET_KEPT = 8 }; /* an id: 16 hexadecimal digits and the NUL */

/* What of a node is now; texts of columns, "" for NULL. */
struct pp_fleet_now {
	char node[PP_NODE_ID];
	bool simulated, there;
	char at[32], judged_at[32];
	char topology[80], topology_since[32];
	char software[80], software_since[32];
	char verdict[16], verdict_since[32];
};

/* Documents since @from that do not say themselves what this node was are to be classified. */
struct pp_fleet_waiting {
	char node[PP_NODE_ID], from[32];
};

/*
 * What this transaction has seen is there already: a file is mostly of one node, and each question
 * less is one that a server need not be waited for. Zeroed where the transaction begins, since what
 * is rolled back was never there.
 */
struct pp_fleet_memory {
	struct {
		char assembly[65], node[PP_NODE_ID];
	} node[PP_FLEET_KEPT];
	char set[PP_FLEET_KEPT][65];
	struct pp_fleet_now state[PP_FLEET_KEPT];
	struct pp_fleet_waiting waiting[PP_FLEET_KEPT];
	unsigned int next_node, next_set, next_state, n_waiting;
};

/* A result into the tables, within a transaction. */
int pp_fleet_add_result(struct pp_sql *sql, struct pp_fleet_memory *memory,
			const struct pp_result *result, struct pp_fleet_added *ret,
			struct pp_error *err);

typedef int pp_fleet_adder(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
			   struct pp_fleet_added *ret, struct pp_error *err);

/* A transaction that writes: one fleet is written by one at a time. */
int pp_fleet_begin(struct pp_sql *sql, struct pp_error *err);
/* @add in a transaction of its own: all or nothing, and never twice. */
int pp_fleet_add_whole(struct pp_sql *sql, pp_fleet_adder *add, const void *what,
		       struct pp_fleet_added *ret, struct pp_error *err);

/*
 * Which node @of is: by its parts, else by its name; made when it is new. *@ret_taken: it took over
 * what was known under its name alone.
 */
int pp_fleet_identify(struct pp_sql *sql, struct pp_fleet_memory *memory,
		      const struct pp_result_node *of, const char *at, char ret[PP_NODE_ID],
		      bool *ret_taken, struct pp_error *err);
/* What a user calls a node: its id or the beginning of it, its name, a part of it. */
int pp_fleet_find(struct pp_sql *sql, const char *called, char ret[PP_NODE_ID],
		  struct pp_error *err);
/* A pattern of LIKE with ESCAPE '\\' that finds @text: behind @before ("%" or ""), before anything.
 */
void pp_fleet_like(const char *text, const char *before, struct pp_buf *out);
/*
 * What of a node is now, and since when, after @result. *@ret_first becomes true when facts of it
 * were not known before.
 */
int pp_fleet_state_update(struct pp_sql *sql, struct pp_fleet_memory *memory,
			  const struct pp_result *result, const struct pp_result_node *of,
			  const char *node, const char *at, const char *facts, bool *ret_late,
			  struct pp_error *err);

/* Of which class the nodes of a document with gains were: one, "mixed", or not known. */
int pp_fleet_classify(struct pp_sql *sql, int64_t document, struct pp_error *err);
/*
 * The same for all since @from that do not say themselves what this node was: at the end of the
 * transaction, once, since each result of a file would do it again.
 */
int pp_fleet_classify_later(struct pp_sql *sql, struct pp_fleet_memory *memory, const char *node,
			    const char *from, struct pp_error *err);
int pp_fleet_classify_waiting(struct pp_sql *sql, struct pp_fleet_memory *memory,
			      struct pp_error *err);

/* Of a column; NULL for SQL's NULL and other types. Copied into the arena. */
const char *pp_fleet_text(struct pp_arena *arena, const struct pp_sql_value *v);
double pp_fleet_number(const struct pp_sql_value *v); /* NaN */

/* One node of the fleet as it is now. */
struct pp_fleet_state {
	const char *node, *host, *topology, *software, *flavour, *facts, *gpus;
	const char *verdict, *sentence, *gate[PP_GATES]; /* no sentence of a pass */
	const char *topology_since, *software_since, *verdict_since, *at;
};

struct pp_fleet_states {
	struct pp_arena arena;
	struct pp_fleet_state *list;
	size_t n, room;
};

/* All of one world, by topology, software, node. pp_fleet_states_done() also after a failure. */
int pp_fleet_states(struct pp_sql *sql, bool simulated, struct pp_fleet_states *ret,
		    struct pp_error *err);
void pp_fleet_states_done(struct pp_fleet_states *s);

bool pp_fleet_same(const char *a, const char *b); /* NULL is the same as NULL only */
/* The end of the states that share their wiring with @from, and their software if @software. */
size_t pp_fleet_end_of(const struct pp_fleet_states *s, size_t from, bool software);

/* What is older than that is of a node that was not heard from; "" for @after 0. */
const char *pp_fleet_silence(pp_ns after, char ret[32]);

/* "2026-11-29T15:20Z": how times are told on a screen; whole in JSON. */
void pp_fleet_out_when(struct pp_out *o, const char *at);

/* "52cc90b4": how classes are called on a screen. */
const char *pp_fleet_short(const char *digest, char text[9]);

/* Which facts two sets do not share: "kernel.release: 6.8 here, 6.5 there; ..."; at most @most. */
int pp_fleet_difference(struct pp_sql *sql, const char *here, const char *there, size_t most,
			struct pp_buf *out, struct pp_error *err);

#endif
