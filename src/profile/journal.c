/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two small files of the state: which change is under way, which generation is in effect.
 */
#include <errno.h>
#include <string.h>

#include "base/ini.h"
#include "base/parse.h"
#include "profile/generation.h"
#include "base/banned.h"

void pp_journal_write(const struct pp_journal *j, struct pp_buf *ret)
{
	pp_buf_printf(ret,
		      "# A change that is under way: the next 'peerpath profile' %s it.\n"
		      "[journal]\noperation = %s\ngeneration = %u\nphase = %s\n",
		      j->committed ? "completes" : "undoes", j->rollback ? "rollback" : "apply",
		      j->of, j->committed ? "committed" : "staged");
}

void pp_current_write(unsigned int number, struct pp_buf *ret)
{
	pp_buf_printf(ret, "[current]\ngeneration = %u\n", number);
}

struct reader {
	const char *section;
	const char *operation, *phase; /* words of the tables below */
	unsigned int of;
	bool has_of;
};

/* The word of @words, or NULL. */
static const char *one_of(const char *value, const char *a, const char *b)
{
	return !strcmp(value, a) ? a : !strcmp(value, b) ? b : NULL;
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct reader *t = arg;
	bool journal = !strcmp(t->section, "journal");
	uint64_t number;

	(void)line;
	if (strcmp(section, t->section) != 0)
		return pp_error_set(err, -EINVAL, "unknown section '%.60s'", section);
	if (!key)
		return 0;
	if (!strcmp(key, "generation") && !t->has_of &&
	    !pp_parse_u64(value, 0, PP_GENERATION_LAST, &number)) {
		t->of = (unsigned int)number;
		t->has_of = true;
		return 0;
	}
	if (journal && !strcmp(key, "operation") && !t->operation)
		t->operation = one_of(value, "apply", "rollback");
	else if (journal && !strcmp(key, "phase") && !t->phase)
		t->phase = one_of(value, "staged", "committed");
	else
		return pp_error_set(err, -EINVAL, "'%.60s = %.60s' cannot be", key, value);
	if (strcmp(key, "phase") != 0 ? !t->operation : !t->phase)
		return pp_error_set(err, -EINVAL, "'%.60s = %.60s' cannot be", key, value);
	return 0;
}

int pp_journal_parse(const char *name, const char *text, size_t len, struct pp_journal *ret,
		     struct pp_error *err)
{
	struct reader t = {.section = "journal"};
	int r = pp_ini_parse(name, text, len, on_key, &t, err);

	if (r)
		return r;
	if (!t.operation || !t.phase || !t.of)
		return pp_error_set(err, -EINVAL, "%s: is not whole", name);
	*ret = (struct pp_journal){
		.rollback = *t.operation == 'r', .of = t.of, .committed = *t.phase == 'c'};
	return 0;
}

int pp_current_parse(const char *name, const char *text, size_t len, unsigned int *ret,
		     struct pp_error *err)
{
	struct reader t = {.section = "current"};
	int r = pp_ini_parse(name, text, len, on_key, &t, err);

	if (r)
		return r;
	if (!t.has_of)
		return pp_error_set(err, -EINVAL, "%s: is not whole", name);
	*ret = t.of;
	return 0;
}
