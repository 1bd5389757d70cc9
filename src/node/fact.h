/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts: what was observed of a node, each one an evidence record.
 *
 * A fact belongs to an object (the node, a gpu, an hca, a port, a link, a pair) and has an
 * identifier from the table below: facts.def gives its key, type, what it is about, its usual
 * witness, its meaning, and how to get it when it is unknown. A fact that could not be observed
 * is recorded as unknown with its reason: absence of a fact is never silently a value.
 */
#ifndef PP_NODE_FACT_H
#define PP_NODE_FACT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bdf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/words.h"

enum pp_kind { PP_NODE, PP_GPU, PP_HCA, PP_PORT, PP_LINK, PP_PAIR, PP_KINDS };

enum pp_type { PP_STR, PP_INT, PP_BOOL, PP_VERSION, PP_LIST };

enum pp_fact_id {
#define F(id, key, kind, type, about, witness, doc, how) PP_F_##id,
#include "node/facts.def"
#undef F
	PP_FACTS
};

struct pp_fact_info {
	const char *key; /* "hca.firmware"; the part before the first dot is the kind's prefix */
	enum pp_kind kind;
	enum pp_type type;
	enum pp_about about;
	enum pp_witness witness;
	const char *doc;
	const char *how; /* how to get it when unknown; never NULL */
};

extern const struct pp_fact_info pp_fact_table[PP_FACTS];

struct pp_fact {
	enum pp_fact_id id;
	bool known;
	union {
		const char *str;	 /* PP_STR, PP_VERSION */
		int64_t i64;		 /* PP_INT; PP_BOOL as 0 or 1 */
		const char *const *list; /* NULL-terminated */
	};
	const char *why;    /* unknown: the reason */
	const char *source; /* path or call that was read */
};

struct pp_object {
	enum pp_kind kind;
	const char *id;		  /* "node", "0000:3b:00.0", "0000:3b:00.0/1" */
	const char *name;	  /* what people call it (mlx5_0, NVIDIA H200); may be NULL */
	struct pp_object *parent; /* a port's hca; a pair's gpu */
	struct pp_object *peer;	  /* a pair's hca */
	int pci;		  /* index into the PCI tree, -1 none */
	bool simulated;		  /* and so is all that is said of it and below it */
	struct pp_fact *facts;
	unsigned int n, cap;
	struct pp_object *next; /* in order of creation */
};

struct pp_facts {
	struct pp_arena *arena; /* borrowed */
	struct pp_object *first, *last;
	unsigned int count[PP_KINDS];
	pp_ns observed; /* all of them: wall clock, 0 unknown */
};

#define pp_objects_foreach(facts, o) for ((o) = (facts)->first; (o); (o) = (o)->next)

/* NULL only when the arena is exhausted; the setters below accept NULL. */
struct pp_object *pp_object_add(struct pp_facts *f, enum pp_kind kind, const char *id);
struct pp_object *pp_object_find(const struct pp_facts *f, enum pp_kind kind, const char *id);
/* Is it, or what it belongs to, no hardware? */
bool pp_object_simulated(const struct pp_object *o);
/* Next object of a kind; start with NULL. */
struct pp_object *pp_object_next(const struct pp_facts *f, enum pp_kind kind,
				 const struct pp_object *after);

/* Setters copy their text. A second setting replaces the first. @source NULL keeps none. */
void pp_fact_str(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id, const char *value,
		 const char *source);
void pp_fact_int(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id, int64_t value,
		 const char *source);
void pp_fact_bool(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id, bool value,
		  const char *source);
void pp_fact_list(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id,
		  const char *const *values, size_t n, const char *source);
void pp_fact_unknown(struct pp_facts *f, struct pp_object *o, enum pp_fact_id id,
		     const char *source, const char *why_fmt, ...) PP_PRINTF(5, 6);

/* NULL when it was never set. */
const struct pp_fact *pp_fact_get(const struct pp_object *o, enum pp_fact_id id);
/* Known value or the given default. */
const char *pp_fact_str_or(const struct pp_object *o, enum pp_fact_id id, const char *otherwise);
int64_t pp_fact_int_or(const struct pp_object *o, enum pp_fact_id id, int64_t otherwise);
bool pp_fact_is(const struct pp_object *o, enum pp_fact_id id); /* known and true */

/* By key; -ENOENT. */
int pp_fact_find(const char *key, enum pp_fact_id *ret);

/* Value as people read it ("yes", "4096", "a, b", "unknown: permission denied"). */
const char *pp_fact_text(const struct pp_fact *fact, char *buf, size_t size);

const char *pp_kind_name(enum pp_kind kind);
int pp_kind_parse(const char *text, enum pp_kind *ret);

/*
 * One evidence record: {"fact", "of", "value"|null, "unknown"?, "about", "witness", ...}.
 * @observed: when (wall clock), 0 unknown.
 */
void pp_fact_write(struct pp_json *j, const struct pp_object *o, const struct pp_fact *fact,
		   pp_ns observed);

#endif
