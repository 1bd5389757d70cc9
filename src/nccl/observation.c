/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record at a time; a table says what each call adds to.
 */
#include "nccl/observation.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { PIECE = 65536 };
static const uint64_t FILE_MAX = (uint64_t)256 << 20;

static const char *text_of(const json_t *record, const char *key)
{
	const char *text = json_string_value(json_object_get(record, key));

	return text ? text : "";
}

static int64_t number_of(const json_t *record, const char *key)
{
	const json_t *v = json_object_get(record, key);

	return json_is_integer(v) ? json_integer_value(v) : 0;
}

static void copy(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from);
	pp_sanitize(to, false);
}

static void add_device(struct pp_observed *o, const char *name)
{
	if (!*name)
		return;
	for (unsigned int i = 0; i < o->n_devices; i++)
		if (!strcmp(o->device[i], name))
			return;
	if (o->n_devices < PP_OBSERVED_DEVICES)
		copy(o->device[o->n_devices++], sizeof(o->device[0]), name);
}

static void add_error(struct pp_observed *o, const char *call, int64_t error)
{
	struct pp_observed_error *e = o->error;

	for (; e < o->error + o->n_errors; e++)
		if (e->error == error && !strcmp(e->call, call))
			break;
	if (e == o->error + PP_OBSERVED_ERRORS || error < 0 || error > INT32_MAX)
		return;
	if (e == o->error + o->n_errors) {
		o->n_errors++;
		copy(e->call, sizeof(e->call), call);
		e->error = (int)error;
	}
	e->times++;
}

static void add_to(struct pp_observed_way *w, int64_t length)
{
	w->made++;
	/* saturates where JSON's readers end */
	if (length > 0)
		w->bytes = w->bytes > INT64_MAX - (uint64_t)length ? INT64_MAX
								   : w->bytes + (uint64_t)length;
}

static void add_address(struct pp_observed *o, const json_t *record)
{
	static const struct {
		const char *memory;
		enum pp_registration way;
	} kinds[] = {
		{"host", PP_REGISTERED_HOST},
		{"managed", PP_REGISTERED_HOST},
		{"gpu", PP_REGISTERED_PEERMEM},
		{"reserved", PP_REGISTERED_PEERMEM},
	};
	struct pp_observed_way *to = &o->unknown;

	for (size_t i = 0; i < PP_ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].memory, text_of(record, "memory")))
			to = &o->way[kinds[i].way];
	add_to(to, number_of(record, "length"));
}

static void add_dmabuf(struct pp_observed *o, const json_t *record)
{
	bool direct = json_is_true(json_object_get(record, "data_direct"));

	add_to(&o->way[direct ? PP_REGISTERED_DATA_DIRECT : PP_REGISTERED_DMABUF],
	       number_of(record, "length"));
	if (!*o->exporter)
		copy(o->exporter, sizeof(o->exporter), text_of(record, "exporter"));
}

static void add_gone(struct pp_observed *o, const json_t *record)
{
	(void)record;
	o->gone++;
}

static void add_queue_pair(struct pp_observed *o, const json_t *record)
{
	(void)record;
	o->queue_pairs++;
}

static void add_start(struct pp_observed *o, const json_t *record)
{
	copy(o->host, sizeof(o->host), text_of(record, "host"));
	copy(o->program, sizeof(o->program), text_of(record, "program"));
	o->pid = number_of(record, "pid");
}

static const struct {
	const char *call;
	void (*add)(struct pp_observed *o, const json_t *record);
} calls[] = {
	{"start", add_start},
	{"ibv_reg_mr", add_address},
	{"ibv_reg_mr_iova", add_address},
	{"ibv_reg_mr_iova2", add_address},
	{"ibv_reg_mr_ex", add_address},
	{"ibv_reg_dmabuf_mr", add_dmabuf},
	{"mlx5dv_reg_dmabuf_mr", add_dmabuf},
	{"ibv_dereg_mr", add_gone},
	{"ibv_create_qp", add_queue_pair},
	{"mlx5dv_create_qp", add_queue_pair},
};

static int add_record(struct pp_observed *o, const json_t *record)
{
	const char *call = text_of(record, "call");
	size_t i;

	for (i = 0; i < PP_ARRAY_LEN(calls); i++)
		if (!strcmp(calls[i].call, call))
			break;
	if (i == PP_ARRAY_LEN(calls))
		return -EBADMSG;
	add_device(o, text_of(record, "device"));
	if (json_is_true(json_object_get(record, "probe")))
		o->probes++;
	else if (json_object_get(record, "errno"))
		add_error(o, call, number_of(record, "errno"));
	else
		calls[i].add(o, record);
	return 0;
}

int pp_observed_add(struct pp_observed *o, const char *line, size_t len)
{
	json_t *record = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	int r = json_is_object(record) ? add_record(o, record) : -EBADMSG;

	json_decref(record);
	o->malformed += r != 0;
	return r;
}

/* Lines out of pieces. A line that is too long, or has no end, is no record. */
struct lines {
	struct pp_observed *into;
	char text[PP_OBSERVATION_LINE];
	size_t len;
	bool too_long;
};

static void feed(struct lines *l, const char *piece, size_t n)
{
	for (const char *end = piece + n; piece < end;) {
		const char *stop = memchr(piece, '\n', (size_t)(end - piece));
		size_t part = (size_t)((stop ? stop : end) - piece);

		if (part > sizeof(l->text) - l->len)
			l->too_long = true;
		if (!l->too_long) {
			memcpy(l->text + l->len, piece, part);
			l->len += part;
		}
		if (!stop)
			return;
		if (l->too_long)
			l->into->malformed++;
		else
			(void)pp_observed_add(l->into, l->text, l->len);
		l->len = 0;
		l->too_long = false;
		piece = stop + 1;
	}
}

int pp_observed_read(const char *path, struct pp_observed *ret, struct pp_error *err)
{
	struct pp_observed o = {0};
	struct lines l = {.into = &o};
	char piece[PIECE];
	uint64_t all = 0;
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;

	if (fd < 0)
		return pp_error_set(err, -errno, "%s: %s", path, pp_errno_name(errno));
	while (!r && (n = read(fd, piece, sizeof(piece))) > 0) {
		all += (uint64_t)n;
		if (all > FILE_MAX)
			r = pp_error_set(err, -EFBIG, "%s: longer than 256 MiB", path);
		else
			feed(&l, piece, (size_t)n);
	}
	if (n < 0)
		r = pp_error_set(err, -errno, "%s: %s", path, pp_errno_name(errno));
	(void)close(fd);
	if (r)
		return r;
	o.malformed += l.len || l.too_long; /* cut */
	*ret = o;
	return 0;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void merge_way(struct pp_observed_way *to, const struct pp_observed_way *from)
{
	to->made += from->made;
	to->bytes = sum(to->bytes, from->bytes);
}

static void merge_error(struct pp_observed *to, const struct pp_observed_error *e)
{
	for (unsigned int i = 0; i < to->n_errors; i++)
		if (to->error[i].error == e->error && !strcmp(to->error[i].call, e->call)) {
			to->error[i].times += e->times;
			return;
		}
	if (to->n_errors < PP_OBSERVED_ERRORS)
		to->error[to->n_errors++] = *e;
}

void pp_observed_merge(struct pp_observed *to, const struct pp_observed *from)
{
	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++)
		merge_way(&to->way[i], &from->way[i]);
	merge_way(&to->unknown, &from->unknown);
	to->gone += from->gone;
	to->probes += from->probes;
	to->queue_pairs += from->queue_pairs;
	to->malformed += from->malformed;
	for (unsigned int i = 0; i < from->n_errors; i++)
		merge_error(to, &from->error[i]);
	for (unsigned int i = 0; i < from->n_devices; i++)
		add_device(to, from->device[i]);
	if (!*to->exporter)
		copy(to->exporter, sizeof(to->exporter), from->exporter);
	if (!to->pid) {
		to->pid = from->pid;
		copy(to->host, sizeof(to->host), from->host);
		copy(to->program, sizeof(to->program), from->program);
	}
}

static void write_way(struct pp_json *j, const char *name, const struct pp_observed_way *w)
{
	if (!w->made)
		return;
	pp_json_object(j, name);
	pp_json_u64(j, "regions", w->made);
	pp_json_u64(j, "bytes", w->bytes);
	pp_json_end_object(j);
}

void pp_observed_write(struct pp_json *j, const char *key, const struct pp_observed *o)
{
	pp_json_object(j, key);
	pp_json_str(j, "about", pp_about_name(PP_REGISTRATION));
	pp_json_str(j, "witness", pp_witness_name(PP_BY_LIBRARY));
	pp_json_str(j, "scope", pp_scope_name(PP_OF_PROCESS));
	pp_json_str(j, "host", o->host);
	pp_json_i64(j, "pid", o->pid);
	pp_json_str(j, "program", o->program);
	pp_json_array(j, "hcas");
	for (unsigned int i = 0; i < o->n_devices; i++)
		pp_json_str(j, NULL, o->device[i]);
	pp_json_end_array(j);
	pp_json_object(j, "registered");
	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++)
		write_way(j, pp_registration_name((enum pp_registration)i), &o->way[i]);
	write_way(j, "unknown", &o->unknown);
	pp_json_end_object(j);
	if (*o->exporter)
		pp_json_str(j, "exporter", o->exporter);
	pp_json_u64(j, "deregistered", o->gone);
	pp_json_u64(j, "questions", o->probes);
	pp_json_u64(j, "queue_pairs", o->queue_pairs);
	pp_json_array(j, "refused");
	for (unsigned int i = 0; i < o->n_errors; i++) {
		pp_json_object(j, NULL);
		pp_json_str(j, "call", o->error[i].call);
		pp_json_i64(j, "errno", o->error[i].error);
		pp_json_str(j, "name", pp_errno_name(o->error[i].error));
		pp_json_u64(j, "times", o->error[i].times);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
	if (o->malformed)
		pp_json_u64(j, "malformed_lines", o->malformed);
	pp_json_end_object(j);
}
