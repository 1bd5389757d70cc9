/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks in memory: what is kept of hostile strings, the most, and each allocation failing once, of
 * the list as of the watchers that need no machine.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "daemon/facts.h"
#include "daemon/watch.h"
#include "fail_alloc.h"

static const size_t LIMIT = (size_t)16 << 20;

static void test_strings(void **state)
{
	struct pp_arena arena = PP_ARENA(LIMIT);
	struct pp_looks looks = {.arena = &arena};
	char longer[2 * PP_LOOK_TEXT], object[] = "a\tb\nc\033[2J";

	(void)state;
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	/* A character of two bytes where the cut is. */
	longer[PP_LOOK_TEXT - 2] = '\xc3';
	longer[PP_LOOK_TEXT - 1] = '\xa4';
	assert_int_equal(pp_look_state(&looks, PP_SIGNAL_ACS, object, longer, "%s", "v"), 0);
	object[0] = 'z'; /* copied */
	assert_string_equal(looks.looks[0].object, "a?b?c?[2J");
	assert_int_equal(strlen(looks.looks[0].raw), PP_LOOK_TEXT - 2);
	assert_null(looks.looks[0].unknown);
	assert_null(looks.looks[0].named);
	assert_int_equal(pp_look_number(&looks, PP_SIGNAL_SLO, "o", NULL, INFINITY), 0);
	assert_string_equal(looks.looks[1].unknown, "no finite number");
	pp_arena_done(&arena);
}

static void test_most(void **state)
{
	struct pp_arena arena = PP_ARENA((size_t)64 << 20);
	struct pp_looks looks = {.arena = &arena};

	(void)state;
	for (int i = 0; i < PP_LOOKS_MOST + 7; i++)
		assert_int_equal(pp_look_number(&looks, PP_SIGNAL_CNPS, "o", NULL, i), 0);
	assert_int_equal(looks.n, PP_LOOKS_MOST);
	assert_int_equal(looks.left_out, 7);
	assert_float_equal(looks.looks[PP_LOOKS_MOST - 1].number, PP_LOOKS_MOST - 1, 0);
	pp_arena_done(&arena);
}

static void test_limit(void **state)
{
	struct pp_arena arena = PP_ARENA(4096);
	struct pp_looks looks = {.arena = &arena};
	int r = 0;

	(void)state;
	for (int i = 0; !r && i < 1000; i++)
		r = pp_look_state(&looks, PP_SIGNAL_ACS, "object", "raw", "value");
	assert_int_equal(r, -ENOMEM);
	pp_arena_done(&arena);
}

/* A hung driver, as node/ask.c records it. */
static void test_hung(void **state)
{
	static const char stuck[] = "{\"schema\": \"peerpath.answer/1\", \"name\": \"nvml\", "
				    "\"outcome\": \"timeout\", \"detail\": \"nvmlInit_v2 did not "
				    "return in 5000 ms\", \"data\": null}";
	static const char missing[] = "{\"name\": \"cuda\", \"outcome\": \"failed\", \"detail\": "
				      "\"libcuda.so.1 not found\", \"data\": null}";
	static const char fine[] =
		"{\"name\": \"ethtool\", \"outcome\": \"answered\", \"data\": {}}";
	static const char asked[] = "{\"name\": \"verbs\", \"outcome\": \"not-asked\"}";
	struct pp_arena arena = PP_ARENA(LIMIT);
	struct pp_looks looks = {.arena = &arena};
	struct pp_record *record = NULL;
	struct pp_watch_hung hung;

	(void)state;
	assert_int_equal(pp_record_new(1 << 20, &record), 0);
	assert_int_equal(
		pp_record_put(record, PP_ENTRY_ANSWER, "nvml", stuck, sizeof(stuck) - 1, 0), 0);
	assert_int_equal(
		pp_record_put(record, PP_ENTRY_ANSWER, "cuda", missing, sizeof(missing) - 1, 0), 0);
	assert_int_equal(
		pp_record_put(record, PP_ENTRY_ANSWER, "verbs", asked, sizeof(asked) - 1, 0), 0);
	assert_int_equal(
		pp_record_put(record, PP_ENTRY_ANSWER, "ethtool", fine, sizeof(fine) - 1, 0), 0);
	assert_int_equal(pp_record_put(record, PP_ENTRY_ANSWER, "dcb", "{", 1, 0), 0);
	pp_watch_hung_read(record, &hung);
	assert_int_equal(hung.n, 1);
	assert_int_equal(pp_watch_hung_add(&hung, &looks), 0);
	assert_int_equal(looks.n, 3);
	assert_string_equal(looks.looks[0].object, "nvml");
	assert_string_equal(looks.looks[0].value, "did not return");
	assert_string_equal(looks.looks[0].raw, "nvmlInit_v2 did not return in 5000 ms");
	assert_string_equal(looks.looks[1].object, "cuda");
	assert_null(looks.looks[1].value); /* nothing was called */
	assert_string_equal(looks.looks[1].unknown, "libcuda.so.1 not found");
	assert_string_equal(looks.looks[2].object, "ethtool");
	assert_string_equal(looks.looks[2].value, "returns");
	pp_record_free(record);
	pp_arena_done(&arena);
}

/* A node with a port, in memory; -ENOMEM or 0 whatever fails. */
static int round_of(const struct pp_watcher *w, struct pp_source *source)
{
	struct pp_arena arena = PP_ARENA(LIMIT);
	struct pp_looks looks = {.arena = &arena};
	struct pp_watch_context at = {.source = source, .now_ns = 1};
	struct pp_error err = {0};
	void *kept = NULL;
	int r = w->look(&at, &kept, &looks, &err);

	at.now_ns += 1000000000;
	if (!r)
		r = w->look(&at, &kept, &looks, &err);
	if (w->end)
		w->end(kept);
	pp_arena_done(&arena);
	return r;
}

static struct pp_source *machine(void)
{
	static const struct {
		const char *path, *text;
	} files[] = {
		{"/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"},
		{"/sys/class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n"},
		{"/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
		{"/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"},
		{"/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "3\n"},
		{"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "5\n"},
		{"/proc/stat", "cpu  1 2 3 4 5 6 7 8 9 0\n"},
		{"/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"},
		{"/proc/1/limits", "Limit Soft Limit Hard Limit Units\n"
				   "Max locked memory         65536  65536  bytes\n"},
	};
	struct pp_record *record = NULL;
	struct pp_source *source = NULL;
	struct pp_error err = {0};

	assert_int_equal(pp_record_new(1 << 20, &record), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, files[i].path, files[i].text,
					       strlen(files[i].text), 0),
				 0);
	assert_int_equal(pp_source_replay_record(record, &source, &err), 0);
	return source;
}

static void test_torture(void **state)
{
	static const struct pp_watcher *const watchers[] = {&pp_watch_link,  &pp_watch_counters,
							    &pp_watch_host,  &pp_watch_memlock,
							    &pp_watch_facts, &pp_watch_kernel_log};
	struct pp_source *source = machine();

	(void)state;
	for (size_t i = 0; i < sizeof(watchers) / sizeof(watchers[0]); i++) {
		for (size_t nth = 1; nth < 5000; nth++) {
			int r;

			pp_fail_alloc_start(nth);
			r = round_of(watchers[i], source);
			if (!pp_fail_alloc_stop()) {
				assert_int_equal(r, 0);
				break;
			}
			assert_true(r == 0 || r == -ENOMEM);
			assert_int_equal(pp_fail_alloc_live(), 0);
			nth += nth > 60 ? nth / 10 : 0;
		}
	}
	pp_source_free(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings), cmocka_unit_test(test_most),
		cmocka_unit_test(test_limit),	cmocka_unit_test(test_hung),
		cmocka_unit_test(test_torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
