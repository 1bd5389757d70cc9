/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/outlet.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* A disk that is full, or a server that is away, is tried again after so long. */
static const int64_t AGAIN_NS = 5 * PP_SECOND;

void pp_say_once(const struct pp_monitor_options *o, char said[512], const char *text)
{
	if (!strcmp(said, text))
		return;
	(void)snprintf(said, 512, "%s", text);
	if (*text)
		o->say(o->ctx, text);
}

int pp_outlet_open(const struct pp_monitor_options *o, struct pp_outlet *ret, struct pp_error *err)
{
	*ret = (struct pp_outlet){.o = o, .teller = {.fd = -1}};
	return o->events ? pp_teller_open(o->events, &ret->teller, err) : 0;
}

int pp_outlet_reopen(struct pp_outlet *out, struct pp_error *err)
{
	return out->o->events ? pp_teller_reopen(&out->teller, err) : 0;
}

void pp_outlet_close(struct pp_outlet *out)
{
	if (out->o)
		pp_teller_close(&out->teller);
}

static void show(struct pp_outlet *out, const struct pp_ledger *k)
{
	const struct pp_telling *t;

	for (size_t i = 0; (t = pp_telling_at(k, i)); i++) {
		if (t->id <= out->shown)
			continue;
		out->o->tell(out->o->ctx, t);
		out->shown = t->id;
	}
}

/* In order: one that cannot be written holds back those behind it. */
static void write_events(struct pp_outlet *out, struct pp_ledger *k, int64_t now_ns)
{
	const struct pp_telling *t;
	struct pp_error err = {0};
	char line[512];
	int r = 0;

	if (*out->error && now_ns - out->tried_ns < AGAIN_NS)
		return;
	out->tried_ns = now_ns;
	for (size_t i = 0; !r && (t = pp_telling_at(k, i)); i++) {
		if (t->id <= k->told)
			continue;
		r = out->o->events ? pp_teller_write(&out->teller, t->line, &err) : 0;
		if (!r) {
			k->told = t->id;
			pp_ledger_urge(k, PP_SOON);
		}
	}
	if (r) {
		(void)snprintf(line, sizeof(line), "cannot write events: %.400s; they wait",
			       err.text);
		pp_say_once(out->o, out->error, line);
		return;
	}
	pp_say_once(out->o, out->error, "");
	pp_tellings_done(k, k->told);
}

static void say_lost(struct pp_outlet *out, const struct pp_ledger *k)
{
	char line[200];

	if (k->untold == out->untold)
		return;
	out->untold = k->untold;
	(void)snprintf(line, sizeof(line),
		       "%llu events could wait no longer and are not told: more than %d wait",
		       (unsigned long long)k->untold, PP_LEDGER_TOLD);
	out->o->say(out->o->ctx, line);
}

void pp_outlet_tell(struct pp_outlet *out, struct pp_ledger *k, int64_t now_ns)
{
	show(out, k);
	write_events(out, k, now_ns);
	say_lost(out, k);
}
