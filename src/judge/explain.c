/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/explain_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/derived_measured.h"
#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

static void on_line(void *arg, const char *text, size_t len, uint64_t line);

int pp_explain_new(const struct pp_known_set *known, struct pp_explain **ret)
{
	struct pp_explain *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->known = known;
	e->lines = malloc(sizeof(*e->lines));
	e->hits = calloc(1, sizeof(*e->hits));
	e->fields = calloc(1, sizeof(*e->fields));
	e->seen = calloc(known->n_signatures + 1, sizeof(*e->seen));
	e->stamp = calloc(known->n_signatures + 1, sizeof(*e->stamp));
	e->driver = calloc(known->n + 1, sizeof(*e->driver));
	e->shapes = calloc(PP_SHAPES, sizeof(*e->shapes));
	if (!e->lines || !e->hits || !e->fields || !e->seen || !e->stamp || !e->driver ||
	    !e->shapes) {
		pp_explain_free(e);
		return -ENOMEM;
	}
	pp_lines_init(e->lines, on_line, e);
	pp_derived_init(&e->derived);
	*ret = e;
	return 0;
}

struct pp_explain *pp_explain_free(struct pp_explain *e)
{
	if (!e)
		return NULL;
	free(e->lines);
	free(e->hits);
	free(e->fields);
	free(e->seen);
	free(e->stamp);
	free(e->shapes);
	free(e->driver);
	free(e);
	return NULL;
}

void pp_explain_push(struct pp_explain *e, const char *bytes, size_t len)
{
	e->n_bytes += len;
	pp_lines_push(e->lines, bytes, len);
}

/* Start and length of what is shown of a line: without the logger's head, cut. */
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
static void end_wrapped(struct pp_explain *e)
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
	end_wrapped(e);
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

static void on_line(void *arg, const char *text, size_t len, uint64_t number)
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

static void end_text(struct pp_explain *e)
{
	uint64_t line = 0, lines;
	const char *sentence;

	if (e->ended)
		return;
	pp_lines_end(e->lines);
	pp_derived_end(&e->derived);
	end_wrapped(e);
	e->ended = true;
	lines = e->n_lines;
	for (unsigned int i = 0; i < PP_ARRAY_LEN(e->derived.sentence); i++) {
		sentence = pp_derived_sentence(&e->derived, i, &line);
		if (sentence)
			on_line(e, sentence, strlen(sentence), line);
	}
	e->n_lines = lines;
}

void pp_explain_here(struct pp_explain *e)
{
	e->here = true;
}

static bool still_there(const struct pp_explanation *x, const struct pp_known *k)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known == k)
			return true;
	return false;
}

static void unexplained(const struct pp_explain *e, struct pp_explanation *x)
{
	for (unsigned int i = 0; i < e->n_complaints; i++) {
		const struct pp_complaint *c = &e->complaints[i];
		bool explained = false;

		for (unsigned int n = 0; n < c->n_owners; n++)
			explained |= still_there(x, &e->known->list[c->owners[n]]);
		if (explained)
			continue;
		x->unexplained_lines++;
		if (x->n_unexplained < PP_UNEXPLAINED)
			x->unexplained[x->n_unexplained++] = c->seen;
	}
	x->unexplained_lines += e->more_complaints;
}

/*
 * Where nothing but harmless things was found, a line that only reads like an error is one that
 * nobody explained: "no problem" would be a guess.
 */
static void doubt_harmless(const struct pp_explain *e, struct pp_explanation *x)
{
	if (x->unexplained_lines || !e->word.times || (!x->n && !x->n_formats))
		return;
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind != PP_KNOWN_HARMLESS)
			return;
	x->unexplained_lines = e->word.times;
	x->unexplained[x->n_unexplained++] = e->word;
}

int pp_explain_finish(struct pp_explain *e, const struct pp_facts *facts,
		      struct pp_explanation *ret)
{
	struct pp_explanation x = {0};
	size_t kept;
	int r;

	end_text(e);
	x.list = calloc(e->known->n + 1, sizeof(*x.list));
	if (!x.list)
		return -ENOMEM;
	for (size_t i = 0; i < e->known->n; i++) {
		const struct pp_known *k = &e->known->list[i];

		if (k->kind == PP_KNOWN_ALARM)
			continue;
		if (k->kind != PP_KNOWN_FORMAT)
			x.n += pp_explain_candidate(e, k, facts, &x.list[x.n]);
		else if (x.n_formats < PP_UNEXPLAINED && pp_explain_seen(e, &k->match))
			x.formats[x.n_formats++] = k;
	}
	kept = x.n;
	unexplained(e, &x);
	doubt_harmless(e, &x);
	r = pp_explain_rank(e, x.list, &kept);
	if (r) {
		pp_explanation_done(&x);
		return r;
	}
	x.n = kept;
	x.lines = e->n_lines;
	x.bytes = e->n_bytes;
	x.components = &e->components;
	x.here = e->here;
	*ret = x;
	return 0;
}

void pp_explanation_done(struct pp_explanation *x)
{
	free(x->list);
	*x = (struct pp_explanation){0};
}

enum pp_exit pp_explanation_exit(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind != PP_KNOWN_HARMLESS)
			return PP_EXIT_BAD;
	if (x->unexplained_lines)
		return PP_EXIT_UNKNOWN;
	return x->n || x->n_formats ? PP_EXIT_PASS : PP_EXIT_UNKNOWN;
}
