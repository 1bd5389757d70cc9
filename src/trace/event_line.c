/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/event_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { COMM_WIDTH = 16, LINE_MAX_BYTES = 4096, VALUE = 80 };

/* @text up to one of @ends, copied; NULL when that is too long or there is none. */
static const char *take(const char *text, const char *ends, char *ret, size_t size)
{
	size_t len = strcspn(text, ends);

	if (len >= size || !text[len])
		return NULL;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return text + len;
}

/* "41.233412" */
static int parse_time(const char *text, pp_ns *ret)
{
	char seconds[24];
	const char *rest = take(text, ".", seconds, sizeof(seconds));
	uint64_t s, us;

	if (!rest || pp_parse_u64(seconds, 0, 1ULL << 32, &s) ||
	    pp_parse_u64(rest + 1, 0, 999999, &us))
		return -EBADMSG;
	*ret = (pp_ns)s * PP_SECOND + (pp_ns)us * 1000;
	return 0;
}

/* Numbers come as 0x1f, 31 or -9. */
static int parse_number(const char *text, uint64_t *ret)
{
	int64_t negative;

	if (!strncmp(text, "0x", 2))
		return pp_parse_hex(text, UINT64_MAX, ret);
	if (*text != '-')
		return pp_parse_u64(text, 0, UINT64_MAX, ret);
	if (pp_parse_i64(text, INT64_MIN, -1, &negative))
		return -EBADMSG;
	*ret = (uint64_t)negative;
	return 0;
}

static void set_text(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from);
	pp_sanitize(to, false);
}

/* "ddexp": of the inner region. */
static struct pp_event *event_of(struct pp_event_line *l, const char **name)
{
	if (strncmp(*name, "dd", 2) != 0)
		return &l->event;
	*name += 2;
	return &l->inner;
}

static bool set_string(struct pp_event_line *l, const char *name, const char *value)
{
	struct pp_event *e = event_of(l, &name);
	const struct {
		const char *name;
		char *to;
		size_t size;
	} strings[] = {
		{"exp", e->exporter, sizeof(e->exporter)},
		{"dev", e->device, sizeof(e->device)},
		{"hca", l->event.hca, sizeof(l->event.hca)},
		{"owner", l->owner, sizeof(l->owner)},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(strings); i++) {
		if (strcmp(strings[i].name, name) != 0)
			continue;
		set_text(strings[i].to, strings[i].size, value);
		return true;
	}
	return false;
}

static enum pp_tristate tristate(uint64_t value)
{
	return value ? PP_YES : PP_NO;
}

static void set_number(struct pp_event_line *l, const char *name, uint64_t value)
{
	struct pp_event *e = event_of(l, &name);
	const struct {
		const char *name;
		uint64_t *to;
	} wide[] = {
		{"addr", &e->address}, {"len", &e->length}, {"size", &e->size},
		{"ino", &e->inode},    {"obj", &e->object}, {"ret", &l->returned},
	};
	const struct {
		const char *name;
		enum pp_tristate *to;
	} yes[] = {
		{"isdmabuf", &e->is_dmabuf}, {"isodp", &e->is_odp}, {"ispeer", &e->is_peer},
		{"umem", &e->has_umem},	     {"sgt", &e->mapped},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(wide); i++)
		if (!strcmp(wide[i].name, name))
			*wide[i].to = value;
	for (size_t i = 0; i < PP_ARRAY_LEN(yes); i++)
		if (!strcmp(yes[i].name, name))
			*yes[i].to = tristate(value);
	l->has_return = l->has_return || !strcmp(name, "ret");
	if (!strcmp(name, "lkey")) {
		e->lkey = (uint32_t)value;
		e->has_lkey = true;
	} else if (!strcmp(name, "mrn")) {
		e->mrn = (uint32_t)value;
		e->has_mrn = true;
	} else if (!strcmp(name, "tgid")) {
		e->pid = (pid_t)value;
	} else if (!strcmp(name, "fd")) {
		e->fd = (int64_t)value;
	}
}

/* " addr=0x7f00 exp=\"nv_dmabuf\" ino=(fault)" */
static int parse_fields(const char *at, struct pp_event_line *l)
{
	char name[24], value[VALUE];
	uint64_t number;

	while (*at == ' ' && at[1]) {
		at = take(at + 1, "=", name, sizeof(name));
		if (!at)
			return -EBADMSG;
		at++;
		if (*at == '"') {
			at = take(at + 1, "\"", value, sizeof(value));
			if (!at || !set_string(l, name, value))
				return -EBADMSG;
			at++;
			continue;
		}
		number = strcspn(at, " ");
		if (number >= sizeof(value))
			return -EBADMSG;
		memcpy(value, at, number);
		value[number] = '\0';
		at += number;
		if (!strcmp(value, "(fault)"))
			continue; /* memory that is not there: the member is unsaid */
		if (parse_number(value, &number))
			return -EBADMSG;
		set_number(l, name, number);
	}
	return *at && *at != ' ' ? -EBADMSG : 0;
}

/* The value of " key=" up to the next blank, or to the end for the last one. */
static int word(const char *at, const char *key, bool last, char *ret, size_t size)
{
	const char *value = strstr(at, key);
	size_t len;

	if (!value)
		return -EBADMSG;
	value += strlen(key);
	len = last ? strlen(value) : strcspn(value, " ");
	if (!len || len >= size)
		return -EBADMSG;
	memcpy(ret, value, len);
	ret[len] = '\0';
	return 0;
}

/*
 * The kernel's dma_buf:dma_buf_dynamic_attach, told when it has succeeded:
 * " exp_name=nv_dmabuf size=2097152 ino=900 attachment:00000000c0ffee00 is_dynamic=1 dev_name=..."
 */
static int parse_attach(const char *at, struct pp_event_line *l)
{
	struct pp_event *e = &l->event;
	char exporter[sizeof(e->exporter)], device[sizeof(e->device)], size[24], inode[24];

	if (strncmp(at, " exp_name=", 10) != 0 ||
	    word(at, " exp_name=", false, exporter, sizeof(exporter)) ||
	    word(at, " size=", false, size, sizeof(size)) ||
	    word(at, " ino=", false, inode, sizeof(inode)) ||
	    word(at, " dev_name=", true, device, sizeof(device)) ||
	    pp_parse_u64(size, 0, UINT64_MAX, &e->size) ||
	    pp_parse_u64(inode, 0, UINT64_MAX, &e->inode))
		return -EBADMSG;
	set_text(e->exporter, sizeof(e->exporter), exporter);
	set_text(e->device, sizeof(e->device), device);
	e->has_result = true;
	return 0;
}

/* "CPU:1 [LOST 12 EVENTS]" */
static bool parse_lost(const char *line, uint64_t *ret)
{
	const char *at = strstr(line, " [LOST ");
	char number[24];

	return !strncmp(line, "CPU:", 4) && at && take(at + 7, " ", number, sizeof(number)) &&
	       !pp_parse_u64(number, 0, UINT64_MAX, ret);
}

/* "-312     [000] d...1   41.233412: a2e: (": to the event's name; flags are there or not. */
static const char *parse_front(const char *at, struct pp_event *e, char *name, size_t size)
{
	char number[24], stamp[32];
	const char *bracket = strchr(at, '['), *close = bracket ? strchr(bracket, ']') : NULL;
	const char *colon = close ? strstr(close, ": ") : NULL, *start = colon;
	uint64_t tid;

	if (!colon || !take(at + 1, " [", number, sizeof(number)) ||
	    pp_parse_u64(number, 0, INT32_MAX, &tid))
		return NULL;
	while (start > close + 1 && start[-1] != ' ')
		start--;
	if (!take(start, ":", stamp, sizeof(stamp)) || parse_time(stamp, &e->at))
		return NULL;
	e->tid = (pid_t)tid;
	return take(colon + 2, ":", name, size);
}

static enum pp_line_kind parse(const struct pp_kprobes *k, const char *line,
			       struct pp_event_line *l)
{
	char name[24], comm[COMM_WIDTH + 1], *trimmed;
	const char *at = line + COMM_WIDTH;

	if (strlen(line) <= COMM_WIDTH || *at != '-')
		return PP_LINE_BAD;
	(void)snprintf(comm, sizeof(comm), "%.16s", line);
	trimmed = pp_trim(comm);
	(void)snprintf(l->event.comm, sizeof(l->event.comm), "%.15s", trimmed);
	pp_sanitize(l->event.comm, false);
	at = parse_front(at, &l->event, name, sizeof(name));
	if (!at)
		return PP_LINE_BAD;
	l->probe = pp_kprobe_find(k, name, strlen(name));
	if (!l->probe)
		return PP_LINE_OTHER;
	l->event.kind = l->probe->kind;
	l->event.by = l->probe->by;
	set_text(l->event.symbol, sizeof(l->event.symbol), l->probe->symbol);
	if (l->probe->point)
		return parse_attach(at + 1, l) ? PP_LINE_BAD : PP_LINE_EVENT;
	at = strchr(at, ')'); /* the place: "(ib_umem_get+0x0/0x3c0 [ib_uverbs])" */
	return at && !parse_fields(at + 1, l) ? PP_LINE_EVENT : PP_LINE_BAD;
}

enum pp_line_kind pp_event_line_parse(const struct pp_kprobes *k, const char *line, size_t len,
				      struct pp_event_line *ret, uint64_t *ret_lost)
{
	char text[LINE_MAX_BYTES];

	*ret = (struct pp_event_line){.event = {.fd = INT64_MIN}};
	if (!len)
		return PP_LINE_OTHER;
	if (len >= sizeof(text) || memchr(line, '\0', len))
		return PP_LINE_BAD;
	memcpy(text, line, len);
	text[len] = '\0';
	if (parse_lost(text, ret_lost))
		return PP_LINE_LOST;
	return parse(k, text, ret);
}
