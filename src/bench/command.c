/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/command.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { TEXT_MOST = 255, MEMBERS_MOST = 32 };

enum type { NUMBER, FLAG, TEXT, WORD };

struct member {
	const char *key;
	enum type type;
	size_t offset; /* in struct pp_command */
	int64_t min, max;
	bool needed;
	const char *(*word)(unsigned int i); /* WORD: the i-th of @max + 1 */
};

static const char *rung_word(unsigned int i)
{
	return pp_rung_name((enum pp_rung)i);
}

static const char *operation_word(unsigned int i)
{
	return pp_operation_name((enum pp_operation)i);
}

static const char *measure_word(unsigned int i)
{
	return pp_measure_name((enum pp_measure)i);
}

static const char *memory_word(unsigned int i)
{
	return pp_memory_kind_name((enum pp_memory_kind)i);
}

const char *pp_role_name(enum pp_role r)
{
	static const char *const names[] = {"passive", "active", "receive", "ping", "pong"};

	return (unsigned int)r < PP_ARRAY_LEN(names) ? names[r] : "?";
}

static const char *role_word(unsigned int i)
{
	return pp_role_name((enum pp_role)i);
}

const char *pp_do_name(enum pp_do d)
{
	static const char *const names[] = {"look",    "open",	"connect", "reset",    "ready",
					    "run",     "fill",	"check",   "restrict", "negative",
					    "witness", "trace", "link",	   "close"};

	return (unsigned int)d < PP_ARRAY_LEN(names) ? names[d] : "?";
}

#define AT(member) offsetof(struct pp_command, member)
#define SIZE_MOST  ((int64_t)1 << 30)

static const struct member look[] = {
	{"device", TEXT, AT(look.device)},
	{"gpu", TEXT, AT(look.gpu)},
	{"port", NUMBER, AT(look.port), 0, 255},
	{"all_rails", FLAG, AT(look.all_rails)},
	{NULL},
};

static const struct member open_members[] = {
	{"rung", WORD, AT(open.rung), 0, PP_RUNGS - 1, true, rung_word},
	{"end", NUMBER, AT(open.end), 0, 1, true},
	{"device", TEXT, AT(open.device)},
	{"gpu", TEXT, AT(open.gpu)},
	{"netdev", TEXT, AT(open.netdev)},
	{"address", TEXT, AT(open.address)},
	{"port", NUMBER, AT(open.port), 0, 255},
	{"gid_index", NUMBER, AT(open.gid_index), -1, 65535, true},
	{"mtu", NUMBER, AT(open.mtu), 0, 4096},
	{"traffic_class", NUMBER, AT(open.traffic_class), 0, 255},
	{"sl", NUMBER, AT(open.sl), 0, 15},
	{"pkey_index", NUMBER, AT(open.pkey_index), 0, 65535},
	{"qps", NUMBER, AT(open.qps), 1, PP_ENDPOINT_QPS, true},
	{"depth", NUMBER, AT(open.depth), 1, PP_ENDPOINT_DEPTH, true},
	{"memory", WORD, AT(open.memory), 0, PP_MEMORY_SIM, true, memory_word},
	{"size", NUMBER, AT(open.size), 1, (int64_t)1 << 40, true},
	{"segments", NUMBER, AT(open.segments), 0, PP_MEMORY_SEGMENTS},
	{"inside", NUMBER, AT(open.inside), 0, SIZE_MOST},
	{"numa", NUMBER, AT(open.numa), -1, 1023, true},
	{"cm", FLAG, AT(open.cm)},
	{NULL},
};

static const struct member connect_members[] = {
	{"tcp_address", TEXT, AT(connect.tcp_address)},
	{"tcp_port", NUMBER, AT(connect.tcp_port), 1, 65535},
	{"nonce", TEXT, AT(connect.nonce)},
	{"cm_address", TEXT, AT(connect.cm_address)},
	{"cm_port", NUMBER, AT(connect.cm_port), 1, 65535},
	{"cm_nonce", NUMBER, AT(connect.cm_nonce), 0, INT64_MAX},
	{"bounce", NUMBER, AT(connect.bounce), 0, INT64_MAX},
	{"bounce_key", NUMBER, AT(connect.bounce_key), 0, UINT32_MAX},
	{NULL},
};

static const struct member ready[] = {
	{"op", WORD, AT(ready.op), 0, PP_OPERATIONS - 1, true, operation_word},
	{"measure", WORD, AT(ready.measure), 0, PP_MEASURES - 1, true, measure_word},
	{"role", WORD, AT(ready.role), 0, PP_ROLES - 1, true, role_word},
	{"size", NUMBER, AT(ready.size), 1, SIZE_MOST, true},
	{"messages", NUMBER, AT(ready.messages), 1, (int64_t)1 << 32, true},
	{"silence_ns", NUMBER, AT(ready.silence_ns), 0, 600 * PP_SECOND},
	{NULL},
};

static const struct member fill[] = {
	{"seed", NUMBER, AT(fill.seed), 0, INT64_MAX, true},
	{NULL},
};

static const struct member check[] = {
	{"seed", NUMBER, AT(check.seed), 0, INT64_MAX, true},
	{"own", NUMBER, AT(check.own), 0, INT64_MAX, true},
	{"size", NUMBER, AT(check.size), 0, SIZE_MOST, true},
	{"way", NUMBER, AT(check.way), 0, 1, true},
	{NULL},
};

static const struct member restricted[] = {
	{"writable", FLAG, AT(restricted.writable)},
	{"readable", FLAG, AT(restricted.readable)},
	{NULL},
};

static const struct member negative[] = {
	{"op", WORD, AT(negative.op), 0, PP_READ, true, operation_word},
	{"address", NUMBER, AT(negative.address), 0, INT64_MAX, true},
	{"key", NUMBER, AT(negative.key), 0, UINT32_MAX, true},
	{"from", NUMBER, AT(negative.from), 0, INT64_MAX, true},
	{"size", NUMBER, AT(negative.size), 1, 1 << 20, true},
	{NULL},
};

static const struct member witness[] = {
	{"device", TEXT, AT(witness.device), .needed = true},
	{"peer", TEXT, AT(witness.peer)},
	{"port", NUMBER, AT(witness.port), 0, 255},
	{"gid_index", NUMBER, AT(witness.gid_index), -1, 65535},
	{"size", NUMBER, AT(witness.size), 1, SIZE_MOST, true},
	{"tcp_port", NUMBER, AT(witness.tcp_port), 1, 65535, true},
	{"seconds", NUMBER, AT(witness.seconds), 1, 60, true},
	{NULL},
};

static const struct member trace[] = {
	{"software", FLAG, AT(trace.software), .needed = true},
	{"probes", FLAG, AT(trace.probes), .needed = true},
	{NULL},
};

static const struct member none[] = {{NULL}};

static const struct member *const commands[] = {
	[PP_DO_LOOK] = look,	     [PP_DO_OPEN] = open_members, [PP_DO_CONNECT] = connect_members,
	[PP_DO_RESET] = none,	     [PP_DO_READY] = ready,	  [PP_DO_RUN] = none,
	[PP_DO_FILL] = fill,	     [PP_DO_CHECK] = check,	  [PP_DO_RESTRICT] = restricted,
	[PP_DO_NEGATIVE] = negative, [PP_DO_WITNESS] = witness,	  [PP_DO_TRACE] = trace,
	[PP_DO_LINK] = none,	     [PP_DO_CLOSE] = none,
};

static int bad(struct pp_error *err, const char *what, const char *key, const char *why)
{
	return pp_error_set(err, -EBADMSG, "%s: '%s' %s", what, key, why);
}

static int take_number(const struct member *m, const json_t *v, const char *what, void *to,
		       struct pp_error *err)
{
	int64_t number;

	if (!json_is_integer(v))
		return bad(err, what, m->key, "is no whole number");
	number = json_integer_value(v);
	if (number < m->min || number > m->max)
		return pp_error_set(err, -EBADMSG,
				    "%s: '%s' is %" PRId64 ": %" PRId64 " to %" PRId64 " can be",
				    what, m->key, number, m->min, m->max);
	*(int64_t *)to = number;
	return 0;
}

static int take_text(const struct member *m, const json_t *v, const char *what, void *to,
		     struct pp_error *err)
{
	if (!json_is_string(v))
		return bad(err, what, m->key, "is no text");
	if (!json_string_length(v) || json_string_length(v) > TEXT_MOST ||
	    !pp_is_text(json_string_value(v), json_string_length(v)))
		return bad(err, what, m->key, "is empty, too long, or has control characters");
	*(const char **)to = json_string_value(v);
	return 0;
}

static int take_word(const struct member *m, const json_t *v, const char *what, void *to,
		     struct pp_error *err)
{
	const char *text = json_string_value(v);

	for (int64_t i = 0; text && i <= m->max; i++) {
		if (strcmp(m->word((unsigned int)i), text) != 0)
			continue;
		*(int64_t *)to = i;
		return 0;
	}
	return bad(err, what, m->key, "is no word that is known");
}

static int take(const struct member *m, const json_t *v, const char *what, void *to,
		struct pp_error *err)
{
	switch (m->type) {
	case NUMBER:
		return take_number(m, v, what, to, err);
	case TEXT:
		return take_text(m, v, what, to, err);
	case WORD:
		return take_word(m, v, what, to, err);
	case FLAG:
		break;
	}
	if (!json_is_boolean(v))
		return bad(err, what, m->key, "is neither true nor false");
	*(bool *)to = json_is_true(v);
	return 0;
}

static bool known(const struct member *m, const char *key)
{
	for (; m->key; m++)
		if (!strcmp(m->key, key))
			return true;
	return false;
}

/* Members of arrays: addresses and keys, which connect takes besides; processes of trace. */
static bool is_list(enum pp_do what, const char *key)
{
	if (what == PP_DO_TRACE)
		return !strcmp(key, "pids");
	return what == PP_DO_CONNECT && (!strcmp(key, "addresses") || !strcmp(key, "keys"));
}

static int take_pids(const json_t *array, struct pp_trace_command *c, struct pp_error *err)
{
	static const struct member pid = {"pids", NUMBER, 0, 1, INT32_MAX, true, NULL};
	int64_t value = 0;
	int r = 0;

	if (!json_is_array(array) || !json_array_size(array) ||
	    json_array_size(array) > PP_TRACE_PIDS)
		return bad(err, "trace", "pids", "is no list, empty, or a longer one than can be");
	for (size_t i = 0; !r && i < json_array_size(array); i++) {
		r = take_number(&pid, json_array_get(array, i), "trace", &value, err);
		c->pid[i] = (pid_t)value;
	}
	c->n_pids = (unsigned int)json_array_size(array);
	return r;
}

static int take_addresses(const json_t *array, struct pp_connect_command *c, struct pp_error *err)
{
	int r = 0;

	if (!array)
		return 0;
	if (!json_is_array(array) || json_array_size(array) > PP_ENDPOINT_QPS)
		return bad(err, "connect", "addresses", "is no list, or a longer one than can be");
	for (size_t i = 0; !r && i < json_array_size(array); i++)
		r = pp_address_parse(json_array_get(array, i), &c->address[i], err);
	c->n_addresses = (unsigned int)json_array_size(array);
	return r;
}

static int find(const json_t *object, enum pp_do *ret, struct pp_error *err)
{
	const char *text = json_string_value(json_object_get(object, "do"));

	for (unsigned int i = 0; text && i < PP_DOS; i++) {
		if (strcmp(pp_do_name((enum pp_do)i), text) != 0)
			continue;
		*ret = (enum pp_do)i;
		return 0;
	}
	return pp_error_set(err, -EBADMSG, "no such command");
}

int pp_command_parse(const json_t *object, struct pp_command *ret, struct pp_error *err)
{
	struct pp_command c = {0};
	const char *what, *key;
	const json_t *v;
	void *iter;
	int r = find(object, &c.what, err);

	if (r)
		return r;
	what = pp_do_name(c.what);
	/* jansson's walk takes an object that may be changed; it is not */
	for (iter = json_object_iter((json_t *)(uintptr_t)object); iter;
	     iter = json_object_iter_next((json_t *)(uintptr_t)object, iter)) {
		key = json_object_iter_key(iter);
		if (strcmp(key, "do") != 0 && !known(commands[c.what], key) &&
		    !is_list(c.what, key))
			return pp_error_set(err, -EBADMSG, "%s: a member that is not known", what);
	}
	for (const struct member *m = commands[c.what]; m->key; m++) {
		v = json_object_get(object, m->key);
		if (!v && m->needed)
			return bad(err, what, m->key, "is missing");
		r = v ? take(m, v, what, (char *)&c + m->offset, err) : 0;
		if (r)
			return r;
	}
	if (c.what == PP_DO_CONNECT) {
		r = take_addresses(json_object_get(object, "addresses"), &c.connect, err);
		v = json_object_get(object, "keys");
		if (!r && v)
			r = pp_parts_parse(v, c.connect.part, &c.connect.n_parts, err);
	}
	if (c.what == PP_DO_TRACE)
		r = take_pids(json_object_get(object, "pids"), &c.trace, err);
	if (!r)
		*ret = c;
	return r;
}

static int take_part(const json_t *object, struct pp_part *ret, struct pp_error *err)
{
	static const struct member part[] = {{"start", NUMBER, 0, 0, INT64_MAX},
					     {"length", NUMBER, 0, 1, INT64_MAX},
					     {"address", NUMBER, 0, 0, INT64_MAX},
					     {"key", NUMBER, 0, 0, UINT32_MAX}};
	int64_t value[PP_ARRAY_LEN(part)];
	int r = 0;

	for (size_t i = 0; !r && i < PP_ARRAY_LEN(part); i++)
		r = take_number(&part[i], json_object_get(object, part[i].key), "keys", &value[i],
				err);
	if (r)
		return r;
	*ret = (struct pp_part){.start = (uint64_t)value[0],
				.length = (uint64_t)value[1],
				.address = (uint64_t)value[2],
				.key = (uint32_t)value[3]};
	return 0;
}

int pp_parts_parse(const json_t *array, struct pp_part *ret, unsigned int *ret_n,
		   struct pp_error *err)
{
	size_t n = json_array_size(array);
	int r = 0;

	if (!json_is_array(array) || !n || n > PP_SLOTS_PARTS)
		return bad(err, "keys", "keys", "is no list, empty, or a longer one than can be");
	for (size_t i = 0; !r && i < n; i++)
		r = take_part(json_array_get(array, i), &ret[i], err);
	if (!r)
		*ret_n = (unsigned int)n;
	return r;
}

void pp_parts_write(struct pp_json *j, const char *key, const struct pp_part *part, unsigned int n)
{
	pp_json_array(j, key);
	for (unsigned int i = 0; i < n; i++) {
		pp_json_object(j, NULL);
		pp_json_u64(j, "start", part[i].start);
		pp_json_u64(j, "length", part[i].length);
		pp_json_u64(j, "address", part[i].address);
		pp_json_u64(j, "key", part[i].key);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}
