/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of a text: the signatures that fit it, whether it complains, and what is kept of it.
 * Lines of one shape are searched once; those that belong together are read as one as well.
 */
#include "judge/explain_state.h"

#include <stdio.h>
#include <string.h>

#include "judge/derived_measured.h"
#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

/* Of a line that is too long the part around @at: that is where the words stand that count. */
static void keep_text(struct pp_seen_line *s, const char *text, size_t len, size_t at)
{
	static const char cut[] = "... ";
	size_t head = pp_message_prefix(text, len);

	if (len - head >= sizeof(s->text) && at > head + sizeof(s->text) * 3 / 4) {
		head = at - sizeof(s->text) / 2;
		while (head < at && ((unsigned char)text[head] & 0xc0) == 0x80)
			head++;
		text += head;
		len -= head;
		if (len > sizeof(s->text) - sizeof(cut))
			len = sizeof(s->text) - sizeof(cut);
		memcpy(s->text, cut, sizeof(cut) - 1);
		memcpy(s->text + sizeof(cut) - 1, text, len);
		s->text[sizeof(cut) - 1 + len] = '\0';
		return;
	}

	text += head;
	len -= head;
	while (len && (*text == ' ' || *text == '\t')) {
		text++;
		len--;
	}
	if (len >= sizeof(s->text))
		len = sizeof(s->text) - 1;
	memcpy(s->text, text, len);
	s->text[len] = '\0';
}

static bool earlier(const struct pp_stamp *a, const struct pp_stamp *b)
{
	if (a->time_us >= 0 && b->time_us >= 0)
		return a->time_us < b->time_us;
	return a->boot_us >= 0 && b->boot_us >= 0 && a->boot_us < b->boot_us;
}

static void note(struct pp_seen_line *s, const struct pp_line *line, uint64_t number,
		 const struct pp_stamp *stamp)
{
	if (!s->times || earlier(stamp, &s->stamp)) {
		s->line = number;
		pp_stamp_read(line->text, line->len, &s->stamp);
		keep_text(s, line->text, line->len, line->at);
	}
	s->times++;
}

static void keep_driver(struct pp_explain *e, unsigned int owner, struct pp_line *line)
{
	const struct pp_fields *f = line->fields;

	if (e->driver[owner][0] || !e->known->list[owner].n_templates)
		return;
	if (!line->has_fields)
		pp_fields_begin(line->text, line->len, line->fields);
	line->has_fields = true;
	pp_fields_need(line->fields, PP_FIELD_DRIVER);
	if (f->n[PP_FIELD_DRIVER])
		(void)snprintf(e->driver[owner], sizeof(e->driver[owner]), "%.31s",
			       f->words[PP_FIELD_DRIVER][0]);
}

static bool in_clue(const struct pp_clue *c, unsigned int signature)
{
	return signature >= c->first && signature < c->first + c->n;
}

/* What the signatures of one line came to. */
struct outcome {
	unsigned int owners[PP_KNOWN_NAMES];
	unsigned int n_owners;
	bool alarm, word, stamped, joined;
	bool frame;		   /* of a Python traceback: where, not what */
	struct pp_stamp stamp;	   /* its times, read when something fits */
	struct pp_shape_fits fits; /* one more than it holds: too many */
};

static void signature_fits(struct pp_explain *e, unsigned int signature, struct pp_line *line,
			   uint64_t number, struct outcome *o)
{
	unsigned int owner = e->known->owner[signature];
	const struct pp_known *k = &e->known->list[owner];

	/* Lines put together say only what none of them said alone. */
	if (o->joined && e->seen[signature].times)
		return;
	if (o->fits.n <= PP_SHAPE_FITS)
		o->fits.n++;
	if (o->fits.n <= PP_SHAPE_FITS)
		o->fits.list[o->fits.n - 1] = (uint16_t)signature;
	if (o->frame && in_clue(&k->match, signature))
		return;
	if (!o->stamped)
		pp_stamp_read_times(line->text, line->len, &o->stamp);
	o->stamped = true;
	note(&e->seen[signature], line, number, &o->stamp);
	if (!in_clue(&k->match, signature))
		return;
	keep_driver(e, owner, line);
	if (k->kind == PP_KNOWN_ALARM && k->last)
		o->word = true;
	else if (k->kind == PP_KNOWN_ALARM)
		o->alarm = true;
	else if (k->kind != PP_KNOWN_FORMAT && o->n_owners < PP_KNOWN_NAMES)
		o->owners[o->n_owners++] = owner;
}

/* @literal was found: the signatures that are anchored on it, each once a line. */
static void test_anchored(struct pp_explain *e, unsigned int literal, struct pp_line *line,
			  uint64_t number, struct outcome *o)
{
	const struct pp_known_set *k = e->known;

	for (unsigned int i = k->index[literal]; i < k->index[literal + 1]; i++) {
		unsigned int signature = k->anchored[i];

		if (e->stamp[signature] == e->tested)
			continue;
		e->stamp[signature] = e->tested;
		if (pp_signature_test(&k->signatures[signature], line))
			signature_fits(e, signature, line, number, o);
	}
}

/* What may stand behind "Last error:" in place of a message: there was none. */
static bool is_trace(const char *text, size_t len)
{
	static const char *const words[] = {"Traceback", "Exception raised from", "frame #",
					    "NCCL WARN", "NCCL INFO"};

	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++)
		if (pp_find(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Whether the line is a warning of NCCL that PyTorch or XLA repeats; its hits are completed. */
static bool is_quoted(struct pp_explain *e, const char *text, size_t len, uint64_t number)
{
	const struct pp_known_set *k = e->known;
	bool quoted = e->announced && number - e->announced <= 1 && !is_trace(text, len);

	e->announced = 0;
	if (pp_hits_have(e->hits, k->announce[0])) {
		quoted = text[len - 1] != ':';
		e->announced = quoted ? 0 : number;
	}
	quoted |= pp_hits_have(e->hits, k->announce[1]);
	for (unsigned int i = 0; quoted && i < PP_ARRAY_LEN(k->warning); i++)
		pp_hits_add(e->hits, k->warning[i]);
	return quoted;
}

/*
 * Searches the line for all literals, and tests what they lead to. True when lines of its shape
 * need no search: those that mean more than their own words are read each time.
 */
static bool read_line(struct pp_explain *e, struct pp_line *line, uint64_t number,
		      struct outcome *o)
{
	const struct pp_known_set *k = e->known;
	bool apart = e->announced;

	if (!pp_automaton_scan(k->automaton, line->text, line->len, e->hits) && !apart)
		return true;
	line->quoted = is_quoted(e, line->text, line->len, number);
	e->tested++;
	for (unsigned int i = 0; i < e->hits->n; i++) {
		line->at = e->hits->end[i];
		test_anchored(e, e->hits->list[i], line, number, o);
	}
	for (unsigned int i = 0; i < k->n_watched; i++) {
		if (!pp_hits_have(e->hits, k->watched[i]))
			continue;
		if (i < k->first_component)
			o->fits.derived = true;
		else
			o->fits.components |= (uint64_t)1 << (i - k->first_component);
	}
	return !apart && !line->quoted && !e->announced;
}

/*
 * What the line says: as an earlier line of its shape, else by reading. Of a long line the part is
 * shown where a word was found: it is read each time.
 */
static void test_line(struct pp_explain *e, struct pp_line *line, uint64_t number,
		      struct outcome *o)
{
	struct pp_shape_fits *known;
	uint64_t shape;

	if (line->len >= PP_EVIDENCE_TEXT || e->announced) {
		(void)read_line(e, line, number, o);
		return;
	}
	shape = pp_shape_of(&e->known->shapes, line->text, line->len,
			    pp_message_prefix(line->text, line->len));
	known = pp_shape_slot(e->shapes, shape);
	if (known->shape == shape) {
		o->fits.derived = known->derived;
		o->fits.components = known->components;
		for (unsigned int i = 0; i < known->n; i++)
			signature_fits(e, known->list[i], line, number, o);
		return;
	}
	if (!read_line(e, line, number, o) || o->fits.n > PP_SHAPE_FITS)
		return;
	known->shape = shape;
	known->derived = o->fits.derived;
	known->components = o->fits.components;
	known->n = o->fits.n;
	memcpy(known->list, o->fits.list, known->n * sizeof(known->list[0]));
}

static void complain(struct pp_explain *e, const struct pp_line *line, uint64_t number,
		     const struct pp_stamp *stamp, const struct outcome *o)
{
	struct pp_complaint *c;

	if (e->n_complaints == PP_ARRAY_LEN(e->complaints)) {
		e->more_complaints += !o->n_owners;
		return;
	}
	c = &e->complaints[e->n_complaints++];
	note(&c->seen, line, number, stamp);
	memcpy(c->owners, o->owners, o->n_owners * sizeof(c->owners[0]));
	c->n_owners = o->n_owners;
}

/* A run of lines that were one ends here: what it says as one explains its complaints too. */
void pp_explain_joined(struct pp_explain *e)
{
	const struct pp_wrapped *w = &e->wrapped;
	struct pp_line line = {w->text, w->len, e->hits, e->fields, false, 0, false};
	struct outcome o = {.joined = true};
	uint64_t announced = e->announced;

	if (w->n < 2 || !w->worth)
		return;
	e->announced = 0;
	(void)read_line(e, &line, w->first, &o);
	e->announced = announced;
	for (unsigned int i = 0; o.n_owners && i < e->n_complaints; i++) {
		struct pp_complaint *c = &e->complaints[i];

		if (c->n_owners || c->seen.line < w->first || c->seen.line > w->end)
			continue;
		memcpy(c->owners, o.owners, o.n_owners * sizeof(c->owners[0]));
		c->n_owners = o.n_owners;
	}
}

static void wrap(struct pp_explain *e, const char *text, size_t len, uint64_t number)
{
	if (pp_wrapped_add(&e->wrapped, text, len, number))
		return;
	pp_explain_joined(e);
	pp_wrapped_begin(&e->wrapped, text, len, number);
}

/*
 * '  File "/a/b.py", line 3, in f' and the line of source below it: names of files and functions,
 * and messages as the program spells them, say where it failed. They never show a problem by
 * themselves.
 */
static bool is_frame(struct pp_explain *e, const char *text, size_t len, uint64_t number)
{
	static const char FILE_WORD[] = "File \"", LINE_WORD[] = "\", line ";
	const char *at = pp_find(text, len, FILE_WORD, strlen(FILE_WORD));
	bool below = e->frame && number == e->frame + 1;

	e->frame = 0;
	if (at && pp_find(at, (size_t)(text + len - at), LINE_WORD, strlen(LINE_WORD))) {
		e->frame = number;
		return len < PP_EVIDENCE_TEXT;
	}
	return below && len > 4 && !memcmp(text, "    ", 4);
}

void pp_explain_line(void *arg, const char *text, size_t len, uint64_t number)
{
	struct pp_explain *e = arg;
	struct pp_line line = {text, len, e->hits, e->fields, false, 0, false};
	struct outcome o;

	e->n_lines = number;
	if (!e->ended)
		wrap(e, text, len, number);
	if (e->derived.in_table)
		pp_derived_read_measured(&e->derived, text, len, number);
	if (e->derived.shell.asks)
		pp_derived_read_shell(&e->derived, text, len, number);
	o.n_owners = o.fits.n = 0;
	o.fits.components = 0;
	o.fits.derived = o.alarm = o.word = o.stamped = o.joined = false;
	o.frame = !e->ended && is_frame(e, text, len, number);
	e->hits->n = 0;
	test_line(e, &line, number, &o);
	e->wrapped.worth |= e->hits->n || o.fits.n;
	if (o.alarm)
		complain(e, &line, number, &o.stamp, &o);
	else if (o.word && !o.n_owners && o.stamp.boot_us < 0)
		note(&e->word, &line, number, &o.stamp);
	if (e->ended)
		return;
	if (o.fits.derived)
		pp_derived_read(&e->derived, text, len, number);
	if (o.fits.components)
		pp_components_read(&e->components, text, len, number, o.fits.components);
}
