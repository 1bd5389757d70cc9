/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor's database as somebody else may have filled it: read, judged on, written, read. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/judge.h"
#include "daemon/keep.h"
#include "daemon/state_make.h"

static const struct {
	const char *text;
	size_t columns;
} inserts[] = {
	{"INSERT OR REPLACE INTO monitor_about VALUES (?, ?)", 2},
	{"INSERT OR REPLACE INTO monitor_look VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
	 "?, ?)",
	 17},
	{"INSERT OR REPLACE INTO monitor_signal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	 13},
	{"INSERT OR REPLACE INTO monitor_telling VALUES (?, ?, ?, ?, ?, ?)", 6},
	{"INSERT OR REPLACE INTO monitor_event VALUES (?, ?, ?, ?, ?)", 5},
	{"INSERT OR REPLACE INTO monitor_mark VALUES (?, ?, ?)", 3},
	{"INSERT OR REPLACE INTO monitor_check VALUES (?, ?, ?, ?, ?)", 5},
	{"INSERT OR REPLACE INTO monitor_earlier VALUES (?, ?, ?, ?, ?, ?, ?)", 7},
};

/*
 * A row: the number of its table, then its columns, each ended by a tab, the row by a line break:
 * "n", "i<integer>", "r<integer>" (a real number), "t<text>".
 */
static struct pp_sql_value column(char *text)
{
	int64_t number = 0;

	for (const char *c = text; *c && text[0] != 't'; c++)
		if (*c >= '0' && *c <= '9')
			number = (int64_t)((uint64_t)number * 10 + (uint64_t)(*c - '0'));
	if (text[0] && text[1] == '-')
		number = -number;
	if (text[0] == 'i')
		return PP_SQL_INT(number);
	if (text[0] == 'r')
		return PP_SQL_NUM((double)number);
	return text[0] == 't' ? pp_sql_text(text + 1) : (struct pp_sql_value){.type = PP_SQL_NULL};
}

static void insert(struct pp_sql *sql, char *row)
{
	struct pp_sql_value values[17] = {{0}};
	struct pp_error err = {0};
	size_t table = (size_t)(unsigned char)*row - '0', n = 0;
	char *rest = row + 1, *cell;

	if (!*row || table >= sizeof(inserts) / sizeof(inserts[0]))
		return;
	while (n < inserts[table].columns && (cell = strsep(&rest, "\t")))
		values[n++] = column(cell);
	(void)pp_sql_run(sql, inserts[table].text, values, inserts[table].columns, &err);
}

static void judge(struct pp_ledger *k)
{
	static const struct pp_look looks[] = {
		{.kind = PP_SIGNAL_ACS, .object = "a", .value = "on"},
		{.kind = PP_SIGNAL_RETRANSMITS, .object = "a", .number = 7},
		{.kind = PP_SIGNAL_HOST_CPU, .object = "node", .number = 0.5},
		{.kind = PP_SIGNAL_KERNEL_LOG, .object = "node", .value = "x", .named = "b:1"},
	};
	static const struct pp_round_part part = {.watcher = "w"};
	struct pp_round round = {.looks = looks, .n = 4, .parts = &part, .n_parts = 1};
	struct pp_thresholds *t;
	struct pp_error err = {0};

	assert(!pp_thresholds_new(NULL, &t, &err));
	round.thresholds = t;
	for (int i = 0; i < 2; i++) {
		round.now_ns = pp_clock_monotonic();
		round.wall_ns = pp_clock_wall();
		assert(!pp_signals_judge(k, &round));
	}
	pp_thresholds_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), *rest = text, *row;
	struct pp_arena arena = PP_ARENA(64 << 20);
	struct pp_error err = {0};
	struct pp_ledger *k = NULL;
	struct pp_sql *sql = NULL;
	struct pp_state state;
	size_t odd;

	assert(!pp_sql_open(":memory:", PP_SQL_CREATE, &sql, &err));
	assert(!pp_keep_prepare(sql, &err));
	while ((row = strsep(&rest, "\n")))
		insert(sql, row);
	if (!pp_keep_load(sql, "n", pp_clock_wall(), pp_clock_monotonic(), &k, &odd, &err)) {
		judge(k);
		for (size_t i = 1; i < k->n_cases; i++)
			assert(k->cases[i - 1]->id < k->cases[i]->id);
		assert(!pp_state_make(k, pp_clock_wall(), &arena, &state));
		(void)pp_keep_save(sql, k, pp_clock_wall(), &err);
		pp_ledger_free(k);
	}
	pp_arena_done(&arena);
	pp_sql_close(sql);
	free(text);
	return 0;
}
