/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as JSON and back: what was not said is not written.
 */
#include "trace/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

static const char *const kinds[PP_EVENT_KINDS] = {
	[PP_EVENT_DMABUF] = "dmabuf",	  [PP_EVENT_ATTACH] = "attach",
	[PP_EVENT_HOST] = "host",	  [PP_EVENT_PEER] = "peer",
	[PP_EVENT_P2P] = "p2p",		  [PP_EVENT_ADDED] = "added",
	[PP_EVENT_REMOVED] = "removed",	  [PP_EVENT_REGION] = "region",
	[PP_EVENT_REGISTER] = "register",
};

/* Members that are one of yes, no and unsaid. */
static const struct {
	const char *key;
	size_t offset;
} tristates[] = {
	{"is_dmabuf", offsetof(struct pp_event, is_dmabuf)},
	{"is_peer", offsetof(struct pp_event, is_peer)},
	{"is_odp", offsetof(struct pp_event, is_odp)},
	{"has_umem", offsetof(struct pp_event, has_umem)},
	{"mapped", offsetof(struct pp_event, mapped)},
	{"data_direct", offsetof(struct pp_event, data_direct)},
};

/* Unsigned members; 0 is unsaid. */
static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{"object", offsetof(struct pp_event, object)},
	{"address", offsetof(struct pp_event, address)},
	{"length", offsetof(struct pp_event, length)},
	{"inode", offsetof(struct pp_event, inode)},
	{"size", offsetof(struct pp_event, size)},
};

static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {
	{"comm", offsetof(struct pp_event, comm), sizeof(((struct pp_event *)0)->comm)},
	{"symbol", offsetof(struct pp_event, symbol), sizeof(((struct pp_event *)0)->symbol)},
	{"exporter", offsetof(struct pp_event, exporter), sizeof(((struct pp_event *)0)->exporter)},
	{"device", offsetof(struct pp_event, device), sizeof(((struct pp_event *)0)->device)},
	{"hca", offsetof(struct pp_event, hca), sizeof(((struct pp_event *)0)->hca)},
};

#define AT(type, e, offset) ((type *)(void *)((char *)(e) + (offset)))

void pp_event_write(struct pp_json *j, const struct pp_event *event)
{
	struct pp_event e = *event;
	char hex[32];

	pp_json_object(j, NULL);
	pp_json_str(j, "kind", kinds[e.kind]);
	pp_json_str(j, "by", pp_surface_name(e.by));
	pp_json_i64(j, "at_ns", e.at);
	pp_json_i64(j, "tid", e.tid);
	if (e.pid)
		pp_json_i64(j, "pid", e.pid);
	if (e.has_result)
		pp_json_i64(j, "result", e.result);
	if (e.has_mrn)
		pp_json_u64(j, "mrn", e.mrn);
	if (e.has_lkey)
		pp_json_u64(j, "lkey", e.lkey);
	if (e.fd != INT64_MIN)
		pp_json_i64(j, "fd", e.fd);
	/* addresses of 64 bits: as text, which every reader of JSON keeps */
	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		uint64_t value = *AT(uint64_t, &e, numbers[i].offset);

		(void)snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)value);
		if (value)
			pp_json_str(j, numbers[i].key, hex);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(texts); i++)
		if (*AT(char, &e, texts[i].offset))
			pp_json_str(j, texts[i].key, AT(char, &e, texts[i].offset));
	for (size_t i = 0; i < PP_ARRAY_LEN(tristates); i++) {
		enum pp_tristate value = *AT(enum pp_tristate, &e, tristates[i].offset);

		if (value != PP_UNSAID)
			pp_json_bool(j, tristates[i].key, value == PP_YES);
	}
	pp_json_end_object(j);
}

static int64_t number_of(const json_t *o, const char *key, int64_t min, int64_t max,
			 int64_t otherwise)
{
	int64_t v;

	return !pp_answer_i64(o, key, &v) && v >= min && v <= max ? v : otherwise;
}

static int index_of(const char *const *names, int n, const char *name)
{
	for (int i = 0; name && i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static int surface_of(const char *name)
{
	for (int i = 0; name && i < PP_SURFACES; i++)
		if (!strcmp(pp_surface_name((enum pp_surface)i), name))
			return i;
	return -1;
}

static int read_event(const json_t *o, struct pp_event *e)
{
	int kind = index_of(kinds, PP_EVENT_KINDS, pp_answer_str(o, "kind"));
	int by = surface_of(pp_answer_str(o, "by"));
	bool yes;

	if (kind < 0 || by < 0 || !json_is_integer(json_object_get(o, "at_ns")))
		return -EBADMSG;
	*e = (struct pp_event){.kind = (enum pp_event_kind)kind, .by = (enum pp_surface)by};
	e->at = number_of(o, "at_ns", 0, INT64_MAX, 0);
	e->tid = (pid_t)number_of(o, "tid", 0, INT32_MAX, 0);
	e->pid = (pid_t)number_of(o, "pid", 0, INT32_MAX, 0);
	e->fd = number_of(o, "fd", INT32_MIN, INT32_MAX, INT64_MIN);
	e->has_result = !pp_answer_i64(o, "result", &e->result);
	e->mrn = (uint32_t)number_of(o, "mrn", 0, UINT32_MAX, 0);
	e->has_mrn = json_is_integer(json_object_get(o, "mrn"));
	e->lkey = (uint32_t)number_of(o, "lkey", 0, UINT32_MAX, 0);
	e->has_lkey = json_is_integer(json_object_get(o, "lkey"));
	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		const char *hex = pp_answer_str(o, numbers[i].key);

		if (hex && pp_parse_hex(hex, UINT64_MAX, AT(uint64_t, e, numbers[i].offset)))
			return -EBADMSG;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(texts); i++) {
		const char *text = pp_answer_str(o, texts[i].key);

		(void)snprintf(AT(char, e, texts[i].offset), texts[i].size, "%s", text ? text : "");
		pp_sanitize(AT(char, e, texts[i].offset), false);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(tristates); i++)
		if (!pp_answer_bool(o, tristates[i].key, &yes))
			*AT(enum pp_tristate, e, tristates[i].offset) = yes ? PP_YES : PP_NO;
	return 0;
}

static void read_reports(const json_t *surfaces, struct pp_events *e)
{
	for (int i = 0; i < PP_SURFACES; i++) {
		const json_t *o = json_object_get(surfaces, pp_surface_name((enum pp_surface)i));
		const char *state = pp_answer_str(o, "state"), *why = pp_answer_str(o, "why");

		for (int k = PP_SURFACE_UNASKED; state && k <= PP_SURFACE_STUCK; k++)
			if (!strcmp(pp_surface_state_name((enum pp_surface_state)k), state))
				e->report[i].state = (enum pp_surface_state)k;
		(void)snprintf(e->report[i].why, sizeof(e->report[i].why), "%s", why ? why : "");
		pp_sanitize(e->report[i].why, false);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct pp_event *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

int pp_events_read(const struct pp_answer *a, struct pp_events *ret)
{
	const json_t *list = json_object_get(a->data, "events"), *one;
	size_t n = json_array_size(list), i;
	struct pp_events e = {.n = 0};

	if (n > PP_EVENTS_MAX)
		n = PP_EVENTS_MAX;
	e.item = calloc(n ? n : 1, sizeof(*e.item));
	if (!e.item)
		return -ENOMEM;
	e.lost = (uint64_t)number_of(a->data, "lost", 0, INT64_MAX, 0);
	json_array_foreach(list, i, one)
	{
		if (e.n == n || read_event(one, &e.item[e.n]))
			e.lost++; /* one that cannot be read is one that is missing */
		else
			e.n++;
	}
	qsort(e.item, e.n, sizeof(*e.item), by_time);
	read_reports(json_object_get(a->data, "surfaces"), &e);
	for (i = 0; i < PP_SURFACES; i++)
		if (e.lost && e.report[i].state == PP_SURFACE_READ &&
		    (i == PP_SURFACE_LIVE_PROBE || i == PP_SURFACE_SELF_PROBE)) {
			e.report[i].state = PP_SURFACE_CUT;
			(void)snprintf(e.report[i].why, sizeof(e.report[i].why),
				       "%llu events were lost", (unsigned long long)e.lost);
		}
	*ret = e;
	return 0;
}

void pp_events_done(struct pp_events *e)
{
	free(e->item);
	*e = (struct pp_events){0};
}
