/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each rule of signals, on looks that were written down. The words of states are the kernel's
 * ("4: ACTIVE", "1: DOWN" of /sys/class/infiniband), the widths of counters those of the
 * InfiniBand specification (32 bits of data counters, 16 of symbol errors).
 */
#include "unit.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "daemon/judge.h"
#include "daemon/state_make.h"
#include "judge/policy.h"

static const int64_t SECOND = 1000000000;

struct world {
	struct pp_ledger *k;
	struct pp_thresholds *t;
	int64_t now;
	size_t seen; /* tellings that a test has looked at */
};

static void set_policy(struct world *w, const char *text)
{
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};

	pp_thresholds_free(w->t);
	assert_int_equal(pp_policy_parse("p.conf", text, strlen(text), &policy, &err), 0);
	if (pp_thresholds_new(policy, &w->t, &err))
		fail_msg("%s", err.text);
	pp_policy_free(policy);
}

static void begin(struct world *w, const char *policy)
{
	*w = (struct world){.now = 1000 * SECOND};
	assert_int_equal(pp_ledger_new("n1", &w->k), 0);
	set_policy(w, policy);
}

static void end(struct world *w)
{
	pp_ledger_free(w->k);
	pp_thresholds_free(w->t);
}

/* One round, @after seconds behind the last one, of one watcher. */
static void look(struct world *w, int64_t after, const struct pp_look *looks, size_t n)
{
	const struct pp_round_part part = {.watcher = "w"};
	struct pp_round round = {.looks = looks, .n = n, .parts = &part, .n_parts = 1};

	w->now += after * SECOND;
	round.thresholds = w->t;
	round.now_ns = w->now;
	round.wall_ns = w->now + 1700000000 * SECOND;
	assert_int_equal(pp_signals_judge(w->k, &round), 0);
}

static void state_of(struct world *w, int64_t after, enum pp_signal_kind kind, const char *object,
		     const char *value)
{
	const struct pp_look l = {.kind = kind, .object = object, .value = value};

	look(w, after, &l, 1);
}

static void number_of(struct world *w, int64_t after, enum pp_signal_kind kind, double number)
{
	const struct pp_look l = {.kind = kind, .object = "o", .number = number};

	look(w, after, &l, 1);
}

static void event_of(struct world *w, int64_t after, const char *value, const char *named)
{
	const struct pp_look l = {
		.kind = PP_SIGNAL_KERNEL_LOG, .object = "node", .value = value, .named = named};

	look(w, after, &l, 1);
}

/* The next telling: "begins early link-state"; "" when nothing more was told. */
static void told(struct world *w, const char *expected)
{
	const struct pp_telling *t = pp_telling_at(w->k, w->seen);
	char found[160] = "";
	json_t *doc;

	if (t) {
		doc = json_loads(t->line, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(doc);
		snprintf(found, sizeof(found), "%s %s %s",
			 json_string_value(json_object_get(doc, "what")),
			 json_string_value(json_object_get(doc, "level")),
			 json_string_value(json_object_get(doc, "kind")));
		json_decref(doc);
		w->seen++;
	}
	assert_string_equal(found, expected);
}

static void test_state(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a port 1", "4: ACTIVE");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a port 1", "4: ACTIVE");
	told(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a port 1", "1: DOWN");
	told(&w, "begins early link-state");
	for (int i = 0; i < 100; i++)
		state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a port 1", "1: DOWN");
	told(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a port 1", "2: INIT");
	told(&w, "changes early link-state");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a port 1", "4: ACTIVE");
	told(&w, "ends early link-state");
	told(&w, "");
	assert_string_equal(w.k->cases[0]->before, "4: ACTIVE");
	assert_int_equal(w.k->n_cases, 1);
	end(&w);
}

/* What an end says is what is now, not what was told when it began. */
static void test_ends(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "ACTIVE");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "DOWN");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "ACTIVE");
	assert_string_equal(pp_telling_at(w.k, 1)->text, "ends: link-state of a is ACTIVE again");
	assert_null(strstr(pp_telling_at(w.k, 1)->line, "is DOWN"));
	end(&w);
	begin(&w, "");
	number_of(&w, 5, PP_SIGNAL_PORT_ERRORS, 0);
	number_of(&w, 5, PP_SIGNAL_PORT_ERRORS, 7);
	number_of(&w, 600, PP_SIGNAL_PORT_ERRORS, 7);
	assert_string_equal(pp_telling_at(w.k, 1)->text,
			    "ends: port-errors of o: quiet for long enough");
	end(&w);
}

static void test_units(void **unused)
{
	char text[48];

	(void)unused;
	assert_string_equal(pp_signal_number(PP_SIGNAL_BAR1_FREE, 137438953472.0, text), "128 GiB");
	assert_string_equal(pp_signal_number(PP_SIGNAL_BAR1_FREE, 4096, text), "4 KiB");
	assert_string_equal(pp_signal_number(PP_SIGNAL_BAR1_FREE, 512, text), "512 bytes");
	assert_string_equal(pp_signal_number(PP_SIGNAL_HOST_CPU, 0.93, text), "0.93 ratio");
	assert_string_equal(pp_signal_number(PP_SIGNAL_RETRANSMITS, 12, text), "12");
}

/* A port that comes and goes is one signal with a count, told four times in all. */
static void test_flapping(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "up");
	for (int i = 0; i < 50; i++) {
		state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "down");
		state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "up");
	}
	told(&w, "begins early link-state");
	told(&w, "ends early link-state");
	told(&w, "returns early link-state");
	told(&w, "");
	state_of(&w, 599, PP_SIGNAL_LINK_STATE, "a", "up");
	told(&w, "");
	state_of(&w, 1, PP_SIGNAL_LINK_STATE, "a", "up");
	told(&w, "ends early link-state");
	assert_int_equal(w.k->n_cases, 1);
	assert_int_equal(w.k->cases[0]->count, 50);
	/* Much later it is another one. */
	state_of(&w, 3600, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "begins early link-state");
	assert_int_equal(w.k->n_cases, 2);
	end(&w);
}

/* Nothing is an alarm unless the site says so; then after the time that it gives. */
static void test_levels(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "[monitor]\nlink-state = alarm\nlink-state.for = 60s\niommu = info\n"
		  "link-state/quiet = early\n");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "up");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "begins early link-state");
	state_of(&w, 59, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "");
	state_of(&w, 1, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "rises alarm link-state");
	state_of(&w, 100, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "");
	set_policy(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "changes early link-state");
	end(&w);
	begin(&w, "[monitor]\nlink-state = alarm\nlink-state/quiet = early\niommu = info\n");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "quiet", "up");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "quiet", "down");
	told(&w, "begins early link-state");
	state_of(&w, 5, PP_SIGNAL_IOMMU, "node", "on");
	/* the port is no more: another state of it */
	told(&w, "changes early link-state");
	state_of(&w, 5, PP_SIGNAL_IOMMU, "node", "off");
	told(&w, "begins info iommu");
	end(&w);
}

static void test_unknown(void **unused)
{
	const struct pp_look lost = {
		.kind = PP_SIGNAL_ACS, .object = "b", .unknown = "permission denied"};
	struct world w;

	(void)unused;
	begin(&w, "");
	state_of(&w, 5, PP_SIGNAL_ACS, "b", "on");
	look(&w, 5, &lost, 1);
	told(&w, "begins info watcher");
	assert_non_null(strstr(w.k->cases[0]->text, "permission denied"));
	look(&w, 5, &lost, 1);
	told(&w, "");
	state_of(&w, 5, PP_SIGNAL_ACS, "b", "off"); /* changed meanwhile: seen now */
	told(&w, "begins early acs");
	told(&w, "ends info watcher");
	end(&w);
	/* What never could be read is no change. */
	begin(&w, "");
	look(&w, 5, &lost, 1);
	look(&w, 5, &lost, 1);
	told(&w, "");
	end(&w);
}

static void test_hung(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	state_of(&w, 5, PP_SIGNAL_HUNG_CALL, "nvml", "did not return"); /* already at the start */
	told(&w, "begins early hung-call");
	state_of(&w, 5, PP_SIGNAL_HUNG_CALL, "nvml", PP_HUNG_CALL_FINE);
	told(&w, "ends early hung-call");
	end(&w);
}

static void test_counter(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	number_of(&w, 5, PP_SIGNAL_LINK_FLAPS, 7);
	number_of(&w, 5, PP_SIGNAL_LINK_FLAPS, 7);
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_LINK_FLAPS, 8);
	told(&w, "begins early link-flaps");
	assert_string_equal(w.k->cases[0]->before, "7");
	assert_string_equal(w.k->cases[0]->after, "8");
	number_of(&w, 599, PP_SIGNAL_LINK_FLAPS, 8);
	told(&w, "");
	number_of(&w, 1, PP_SIGNAL_LINK_FLAPS, 8);
	told(&w, "ends early link-flaps");
	end(&w);
}

/* 100 per second is the bound; below 90 it is over. */
static void test_counter_threshold(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w,
	      "[monitor]\nretransmits = alarm\nretransmits.above = 100\nretransmits.for = 10s\n");
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 0);
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 500); /* exactly 100 */
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 1010); /* 102 */
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 1520);
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 2030);
	told(&w, "begins alarm retransmits");
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 2490); /* 92: not back yet */
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 2900); /* 82 */
	told(&w, "");
	/* One burst: open for as long as who is paged needs to see it. */
	number_of(&w, 590, PP_SIGNAL_RETRANSMITS, 2900);
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_RETRANSMITS, 2900);
	told(&w, "ends alarm retransmits");
	end(&w);
}

static void test_counter_wraps(void **unused)
{
	const double top = 4294967296.0;
	struct world w;

	(void)unused;
	/* Round at 32 bits in its stride: 1000 per second before and after. */
	begin(&w, "[monitor]\nretransmits = early\nretransmits.above = 2000\n");
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, top - 1500);
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, top - 500);
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, 500);
	assert_true(w.k->n_cases == 0);
	assert_true(fabs(pp_subject_find(w.k, PP_SIGNAL_RETRANSMITS, "o")->rate - 1000) < 1e-6);
	/* Begun anew by its driver: no growth of four thousand million. */
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, 0);
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, 0);
	told(&w, "");
	end(&w);
	begin(&w, "");
	number_of(&w, 1, PP_SIGNAL_PORT_ERRORS, 3.9e9);
	number_of(&w, 1, PP_SIGNAL_PORT_ERRORS, 3);
	told(&w, "");
	number_of(&w, 1, PP_SIGNAL_PORT_ERRORS, 4);
	told(&w, "begins early port-errors");
	end(&w);
}

/* Gone and back with a larger sum: nobody knows what it did meanwhile, or whether it began anew. */
static size_t shown(const struct world *w)
{
	struct pp_arena arena = PP_ARENA(1 << 20);
	struct pp_state s;
	size_t n;

	assert_int_equal(pp_state_make(w->k, w->now + 1700000000 * SECOND, &arena, &s), 0);
	n = s.n_looks;
	pp_arena_done(&arena);
	return n;
}

/* The last figure of what is gone is no figure of now, for as long as it is gone. */
static void test_gone_is_not_shown(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	number_of(&w, 1, PP_SIGNAL_BAR1_FREE, 1e9);
	number_of(&w, 1, PP_SIGNAL_BAR1_FREE, 1e9);
	assert_int_equal(shown(&w), 1);
	look(&w, 1, NULL, 0);
	assert_int_equal(shown(&w), 0);
	number_of(&w, 1, PP_SIGNAL_BAR1_FREE, 1e9);
	assert_int_equal(shown(&w), 1);
	end(&w);
}

static void test_counter_gone(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	number_of(&w, 1, PP_SIGNAL_PORT_ERRORS, 5);
	look(&w, 1, NULL, 0);
	number_of(&w, 1, PP_SIGNAL_PORT_ERRORS, 50);
	told(&w, "");
	number_of(&w, 1, PP_SIGNAL_PORT_ERRORS, 51);
	told(&w, "begins early port-errors");
	end(&w);
}

static void test_gauge(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "");
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 1.0); /* no bound: nobody's judgement */
	told(&w, "");
	end(&w);
	begin(&w, "[monitor]\nhost-cpu = alarm\nhost-cpu.above = 0.9\nhost-cpu.for = 60s\n");
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.5);
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.95);
	number_of(&w, 30, PP_SIGNAL_HOST_CPU, 0.5); /* came back: the time begins anew */
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.95);
	number_of(&w, 59, PP_SIGNAL_HOST_CPU, 0.95);
	told(&w, "");
	number_of(&w, 1, PP_SIGNAL_HOST_CPU, 0.95);
	told(&w, "begins alarm host-cpu");
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.82); /* within a tenth of the bound */
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.80);
	told(&w, "ends alarm host-cpu");
	end(&w);
}

/* Of what is normal: its own mean, once there are ten looks; a bundle's figure at once. */
static void test_normal(void **unused)
{
	const struct pp_look base = {.kind = PP_SIGNAL_BAR1_FREE, .object = "o", .number = 1000};
	const struct pp_round_part part = {.watcher = "w"};
	struct pp_round round = {.looks = &base, .n = 1, .parts = &part, .n_parts = 1};
	struct world w;

	(void)unused;
	begin(&w, "[monitor]\nhost-cpu.above = 150%\n");
	for (int i = 0; i < 9; i++)
		number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.2);
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.9);
	told(&w, ""); /* not known yet */
	for (int i = 0; i < 300; i++)
		number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.2);
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_HOST_CPU, 0.9);
	told(&w, "begins early host-cpu");
	end(&w);
	begin(&w, "");
	round.thresholds = w.t;
	assert_int_equal(pp_baseline_take(w.k, &round), 0);
	number_of(&w, 5, PP_SIGNAL_BAR1_FREE, 260);
	told(&w, "");
	number_of(&w, 5, PP_SIGNAL_BAR1_FREE, 240); /* under a quarter of what was free */
	told(&w, "begins early bar1-free");
	end(&w);
}

static void text_ends(const struct world *w, size_t i, const char *end_of)
{
	const char *text = w->k->cases[i]->text;
	size_t n = strlen(text), k = strlen(end_of);

	if (n < k || strcmp(text + n - k, end_of) != 0)
		fail_msg("'%s' does not end with '%s'", text, end_of);
}

/* What the policy has to do with the level, in its words: never more than it says. */
static void test_reasons(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "[monitor]\nretransmits.above = 100\nlink-state = alarm\nlink-state.for = 10m\n"
		  "link-speed = info\nkernel-log = alarm\nkernel-log.above = 1\n");
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, 0);
	number_of(&w, 1, PP_SIGNAL_RETRANSMITS, 500);
	told(&w, "begins early retransmits");
	text_ends(
		&w, 0,
		"above 100; no alarm: the site's policy has a bound, and no 'retransmits = alarm'");
	state_of(&w, 1, PP_SIGNAL_LINK_STATE, "a", "up");
	state_of(&w, 1, PP_SIGNAL_LINK_STATE, "a", "down");
	text_ends(&w, 1, "it was up; alarm after 600 s by the site's policy");
	state_of(&w, 600, PP_SIGNAL_LINK_STATE, "a", "down");
	text_ends(&w, 1, "it was up; an alarm by the site's policy");
	state_of(&w, 1, PP_SIGNAL_LINK_SPEED, "a", "400");
	state_of(&w, 1, PP_SIGNAL_LINK_SPEED, "a", "100");
	text_ends(&w, 2, "it was 400; no more than info by the site's policy");
	event_of(&w, 1, "xid", "b:1");
	text_ends(&w, 3, "xid; alarm by the site's policy when more than 1");
	state_of(&w, 1, PP_SIGNAL_ACS, "b", "0");
	state_of(&w, 1, PP_SIGNAL_ACS, "b", "RR");
	text_ends(&w, 4, "at the first look it was 0"); /* the policy says nothing */
	end(&w);
}

/* Counters that the baseline could read and nobody can now; others that it could not read either.
 */
static void test_counters_lost(void **unused)
{
	const struct pp_round_part part = {.watcher = "w"};
	const struct pp_look had[] = {
		{.kind = PP_SIGNAL_RETRANSMITS, .object = "a port 1", .number = 7},
		{.kind = PP_SIGNAL_PORT_ERRORS,
		 .object = "a port 1",
		 .unknown = "Is a directory",
		 .yet = PP_LOOK_THERE},
		{.kind = PP_SIGNAL_CNPS, .object = "a port 1", .unknown = "no such counter"},
	};
	struct pp_look now[] = {had[0], had[1], had[2]};
	struct pp_round round = {.looks = had,
				 .n = 3,
				 .parts = &part,
				 .n_parts = 1,
				 .now_ns = 1,
				 .wall_ns = 1700000000 * SECOND};
	struct world w;

	(void)unused;
	begin(&w, "");
	round.thresholds = w.t;
	assert_int_equal(pp_baseline_take(w.k, &round), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(now); i++) {
		now[i].unknown = "absent";
		now[i].yet = PP_LOOK_NOTHING;
	}
	look(&w, 5, now, 3);
	told(&w, "begins info watcher");
	told(&w, "begins info watcher");
	told(&w, "");
	assert_string_equal(w.k->cases[0]->object, "port-errors");
	assert_string_equal(w.k->cases[1]->object, "retransmits");
	/* Back, with a sum of another time: no growth. */
	now[0].unknown = now[1].unknown = NULL;
	now[0].number = 5000;
	look(&w, 5, now, 3);
	told(&w, "ends info watcher");
	told(&w, "ends info watcher");
	told(&w, "");
	end(&w);
}

static void test_events(void **unused)
{
	struct world w;

	(void)unused;
	begin(&w, "[monitor]\nkernel-log = alarm\nkernel-log.above = 3\n");
	event_of(&w, 5, "xid-79", "boot:1");
	told(&w, "begins early kernel-log");
	event_of(&w, 5, "xid-79", "boot:1"); /* read again */
	assert_int_equal(w.k->cases[0]->count, 1);
	event_of(&w, 5, "xid-79", "boot:2");
	event_of(&w, 5, "xid-79", "boot:3");
	told(&w, "");
	event_of(&w, 5, "xid-79", "boot:4");
	told(&w, "rises alarm kernel-log");
	assert_int_equal(w.k->cases[0]->count, 4);
	event_of(&w, 5, "xid-31", "boot:5");
	told(&w, "begins early kernel-log");
	look(&w, 599, NULL, 0);
	told(&w, "ends alarm kernel-log");
	look(&w, 1, NULL, 0);
	told(&w, "ends early kernel-log");
	event_of(&w, 5, "xid-79", "boot:4"); /* still known by its name */
	told(&w, "");
	event_of(&w, 5, "xid-79", "boot:6");
	told(&w, "begins early kernel-log");
	end(&w);
}

/* Who floods a log fills no memory: so many different lines, and one signal for the others. */
static void test_flood(void **unused)
{
	struct world w;
	char value[32], named[32];

	(void)unused;
	begin(&w, "");
	for (int i = 0; i < 20000; i++) {
		snprintf(value, sizeof(value), "line %d", i);
		snprintf(named, sizeof(named), "b:%d", i);
		event_of(&w, 0, value, named);
	}
	assert_int_equal(w.k->n_cases, PP_LEDGER_EVENTS + 1);
	assert_int_equal(w.k->cases[PP_LEDGER_EVENTS]->count, 20000 - PP_LEDGER_EVENTS);
	assert_true(w.k->n_names <= PP_LEDGER_NAMED);
	assert_true(pp_event_name_has(w.k, PP_SIGNAL_KERNEL_LOG, "b:19999"));
	end(&w);
}

static void test_gone(void **unused)
{
	const struct pp_look blind = {
		.kind = PP_SIGNAL_LINK_STATE, .object = "node", .unknown = "permission denied"};
	const struct pp_look none = {.kind = PP_SIGNAL_LINK_STATE,
				     .object = "node",
				     .unknown = "there is no RDMA device",
				     .yet = PP_LOOK_NONE};
	struct world w;

	(void)unused;
	begin(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "up");
	look(&w, 5, &blind, 1); /* cannot see: not gone */
	told(&w, "");
	look(&w, 5, NULL, 0);
	told(&w, "begins early link-state");
	assert_string_equal(w.k->cases[0]->after, "gone");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "up");
	told(&w, "ends early link-state");
	/* That there is none at all is seen, not blindness. */
	look(&w, 700, &none, 1);
	told(&w, "begins early link-state");
	told(&w, "");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "up");
	told(&w, "ends early link-state");
	/* A process that ends is none of these, and is forgotten. */
	state_of(&w, 5, PP_SIGNAL_REGISTRATION, "pid 7", "dmabuf");
	assert_non_null(pp_subject_find(w.k, PP_SIGNAL_REGISTRATION, "pid 7"));
	for (int i = 0; i < 3; i++)
		state_of(&w, 300, PP_SIGNAL_LINK_STATE, "a", "up");
	assert_null(pp_subject_find(w.k, PP_SIGNAL_REGISTRATION, "pid 7"));
	end(&w);
}

static void refused(const char *text, const char *message)
{
	struct pp_thresholds *t = NULL;
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};
	int r = pp_policy_parse("p.conf", text, strlen(text), &policy, &err);

	if (!r)
		r = pp_thresholds_new(policy, &t, &err);
	assert_int_equal(r, -EINVAL);
	if (!strstr(err.text, message))
		fail_msg("'%s' lacks '%s'", err.text, message);
	pp_policy_free(policy);
}

static void test_policy(void **unused)
{
	(void)unused;
	refused("[monitor]\nlink-stat = alarm\n", "p.conf:2: no signal is called 'link-stat'; did "
						  "you mean 'link-state'?");
	refused("[monitor]\nlink-state = loud\n", "info, early or alarm");
	refused("[monitor]\nlink-state.above = 5\n", "a state has no number");
	refused("[monitor]\nhost-cpu = alarm\n", "an alarm needs .above or .below");
	refused("[monitor]\nbar1-free = alarm\n", "an alarm needs .above or .below");
	refused("[monitor]\nretransmits = alarm\n", "an alarm needs .above, growth per second");
	refused("[monitor]\nretransmits = alarm\nretransmits/0000:17:00.0 port 1.above = 100\n",
		"'retransmits = alarm': an alarm needs .above, growth per second");
	refused("[monitor]\nretransmits.below = 4\n", "only a gauge can be below");
	refused("[monitor]\nretransmits.above = 4%\n", "only a gauge has a normal");
	refused("[monitor]\nhost-cpu.above = much\n", "a number as 0.9");
	refused("[monitor]\nhost-cpu.above = 1.\n", "a number as 0.9");
	refused("[monitor]\nhost-cpu.above = 0x1\n", "a number as 0.9");
	refused("[monitor]\nhost-cpu.above = nan\n", "a number as 0.9");
	refused("[monitor]\nhost-cpu.for = 0\n", "a time up to 7 days");
	refused("[monitor]\nhost-cpu.for = 1s\nhost-cpu.for = 2s\n", "given twice");
	refused("[monitor]\nhost-cpu/ = early\n", "for one object only");
	refused("[monitor]\nhost-cpu.abov = 1\n", "KEY, KEY.above");
	refused("[monitor]\napplication-slo/a.b = alarm\n", "an alarm needs .above or .below");
	/* What can never be right. */
	refused("[monitor]\nretransmits.above = -1\n",
		"p.conf:2: 'retransmits': it is never below 0");
	refused("[monitor]\nkernel-log.above = -1\n", "never below 0");
	refused("[monitor]\nbar1-free.below = 0\n", "never below 0");
	refused("[monitor]\nhost-cpu.above = 0%\n",
		"p.conf:2: 'host-cpu': a share of what is normal");
	refused("[monitor]\nhost-cpu.above = 0.2\nhost-cpu.below = 0.5\n",
		"p.conf:2: 'host-cpu': .above is less");
	refused("[monitor]\nhost-cpu/node.above = 0.2\nhost-cpu.below = 0.5\n",
		"p.conf:2: 'host-cpu': .above is less");
}

/* The last telling's member "earlier", "kind object level at;" each; "null". */
static void earlier_of(struct world *w, char *ret, size_t size)
{
	json_t *doc = json_loads(pp_telling_at(w->k, w->seen - 1)->line, 0, NULL), *row;
	json_t *list = json_object_get(doc, "earlier");
	size_t i, used = 0;

	assert_non_null(doc);
	assert_non_null(list);
	snprintf(ret, size, "%s", json_is_null(list) ? "null" : "");
	json_array_foreach(list, i, row)
	{
		const struct pp_case *of = pp_case_find(
			w->k, (uint64_t)json_integer_value(json_object_get(row, "signal")));

		assert_non_null(of);
		assert_string_equal(of->object, json_string_value(json_object_get(row, "object")));
		used += (size_t)snprintf(ret + used, size - used, "%s %s %s %.20s;",
					 json_string_value(json_object_get(row, "kind")),
					 json_string_value(json_object_get(row, "object")),
					 json_string_value(json_object_get(row, "level")),
					 json_string_value(json_object_get(row, "at")));
		assert_true(used < size);
	}
	json_decref(doc);
}

/*
 * An alarm names what moved in the hour before it, the newest first: neither the state that has
 * been another for two hours, nor an info, nor itself. Times by date -u -d @1700017700 and so on.
 */
static void test_earlier(void **unused)
{
	enum { FLAVOUR, ACS, PEERMEM, RETRANSMITS, SLO, LOG, N };
	struct pp_look l[N] = {
		{.kind = PP_SIGNAL_FLAVOUR, .object = "node", .value = "open"},
		{.kind = PP_SIGNAL_ACS, .object = "0000:17:00.0", .value = "0"},
		{.kind = PP_SIGNAL_PEERMEM, .object = "node", .value = "loaded"},
		{.kind = PP_SIGNAL_RETRANSMITS, .object = "o", .number = 5},
		{.kind = PP_SIGNAL_SLO, .object = "o", .number = 1000},
		{.kind = PP_SIGNAL_KERNEL_LOG, .object = "node", .value = "xid-79", .named = "b:1"},
	};
	struct world w;
	char list[4096];

	(void)unused;
	begin(&w, "[monitor]\napplication-slo = alarm\napplication-slo.below = 900\n"
		  "peermem = info\n");
	look(&w, 9800, l, N - 1);
	l[FLAVOUR].value = "proprietary";
	look(&w, 0, l, N - 1);
	told(&w, "begins early module-flavour");
	earlier_of(&w, list, sizeof(list));
	assert_string_equal(list, "null");
	l[ACS].value = "RR+CR";
	look(&w, 6000, l, N - 1);
	told(&w, "begins early acs");
	l[PEERMEM].value = "not loaded";
	look(&w, 300, l, N - 1);
	told(&w, "begins info peermem");
	l[RETRANSMITS].number = 50;
	look(&w, 300, l, N - 1);
	told(&w, "begins early retransmits");
	look(&w, 300, l, N);
	told(&w, "begins early kernel-log");
	l[SLO].number = 100;
	look(&w, 200, l, N - 1);
	told(&w, "begins alarm application-slo");
	earlier_of(&w, list, sizeof(list));
	assert_string_equal(list, "kernel-log node early 2023-11-15T03:08:20Z;"
				  "retransmits o early 2023-11-15T03:03:20Z;"
				  "acs 0000:17:00.0 early 2023-11-15T02:53:20Z;");
	assert_non_null(strstr(pp_telling_at(w.k, w.seen - 1)->text,
			       "in the hour before: kernel-log of node (early, "
			       "2023-11-15T03:08:20Z), retransmits of o"));
	/* What was named stays with the alarm when it ends, long after. */
	l[SLO].number = 1000;
	look(&w, 9000, l, N - 1);
	told(&w, "ends early retransmits");
	told(&w, "ends alarm application-slo");
	earlier_of(&w, list, sizeof(list));
	assert_non_null(strstr(list, "acs 0000:17:00.0"));
	end(&w);
}

/* Nothing before it is an empty list; many are the last sixteen. */
static void test_earlier_bound(void **unused)
{
	struct world w;
	char list[8192], value[16];
	size_t n = 0;

	(void)unused;
	begin(&w, "[monitor]\nlink-state = alarm\n");
	state_of(&w, 0, PP_SIGNAL_LINK_STATE, "a", "up");
	state_of(&w, 5, PP_SIGNAL_LINK_STATE, "a", "down");
	told(&w, "begins alarm link-state");
	earlier_of(&w, list, sizeof(list));
	assert_string_equal(list, "");
	for (unsigned int i = 0; i < 40; i++) {
		snprintf(value, sizeof(value), "line %u", i);
		event_of(&w, 1, value, value);
		told(&w, "begins early kernel-log");
		if (!i)
			told(&w, "changes alarm link-state"); /* nobody tells of it: gone */
	}
	state_of(&w, 1, PP_SIGNAL_LINK_STATE, "b", "up");
	state_of(&w, 1, PP_SIGNAL_LINK_STATE, "b", "down");
	told(&w, "begins alarm link-state");
	earlier_of(&w, list, sizeof(list));
	assert_int_equal(strncmp(list, "kernel-log node early ", 22), 0);
	for (const char *at = list; (at = strchr(at, ';')); at++)
		n++;
	assert_int_equal(n, PP_EARLIER_MOST);
	assert_non_null(strstr(pp_telling_at(w.k, w.seen - 1)->text, " and 12 more"));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_flapping),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_hung),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_counter_threshold),
		cmocka_unit_test(test_counter_wraps),
		cmocka_unit_test(test_counter_gone),
		cmocka_unit_test(test_gone_is_not_shown),
		cmocka_unit_test(test_gauge),
		cmocka_unit_test(test_normal),
		cmocka_unit_test(test_counters_lost),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_earlier),
		cmocka_unit_test(test_earlier_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
