/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper keeps the newest records of the known families, in the kernel's own form; the facts
 * are derived from these, so live and replay go the same way.
 *
 * The ring overwrites its oldest records. When it has, a message that is not there proves
 * nothing: "none seen" is then unknown, while what was seen stays seen.
 */
#include "node/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/collect_kernel.h"
#include "base/banned.h"

enum {
	RECORD_BYTES = 8192 + 1, /* the kernel's longest record, CONSOLE_EXT_LOG_MAX */
	MAX_READS = 1 << 20,
	MAX_KEPT = 8192,
	MAX_KEPT_BYTES = 1280, /* a head and PP_KMSG_TEXT */
	MAX_LINES = 200,
	MAX_XIDS = 64,
};

static const char DEVICE[] = "/dev/kmsg";

/* The newest MAX_KEPT matching records, a ring. */
struct kept {
	char *record[MAX_KEPT];
	uint64_t n; /* matched so far */
};

struct reading {
	uint64_t first, last, read;
	bool overwritten, any, whole;
};

static int keep(struct kept *k, char *record, size_t len)
{
	char **slot = &k->record[k->n % MAX_KEPT];

	if (len >= MAX_KEPT_BYTES)
		len = MAX_KEPT_BYTES - 1;
	free(*slot);
	*slot = strndup(record, len);
	if (!*slot)
		return -ENOMEM;
	pp_sanitize(*slot, true);
	k->n++;
	return 0;
}

static int take(struct kept *k, struct reading *got, char *record, size_t len)
{
	struct pp_kmsg msg;

	if (pp_kmsg_parse(record, len, &msg))
		return 0;
	if (!got->any)
		got->first = msg.sequence;
	got->any = true;
	got->last = msg.sequence;
	got->read++;
	return pp_kmsg_classify(msg.text) == PP_KMSG_OTHER ? 0 : keep(k, record, len);
}

/* Until the newest record: the device does not block, and what is added meanwhile is bounded. */
static int read_all(int fd, struct kept *k, struct reading *got)
{
	char record[RECORD_BYTES];
	ssize_t n;
	int r;

	for (int i = 0; i < MAX_READS; i++) {
		n = read(fd, record, sizeof(record) - 1);
		if (n == 0 || (n < 0 && errno == EAGAIN)) {
			got->whole = true;
			return 0;
		}
		if (n < 0 && errno == EPIPE)
			got->overwritten = true;
		else if (n < 0 && errno != EINTR && errno != EINVAL)
			return -errno;
		if (n < 0)
			continue;
		r = take(k, got, record, (size_t)n);
		if (r)
			return r;
	}
	return 0;
}

static void answer(struct pp_json *data, const struct kept *k, const struct reading *got)
{
	uint64_t from = k->n > MAX_KEPT ? k->n - MAX_KEPT : 0;

	if (got->any) {
		pp_json_u64(data, "first", got->first);
		pp_json_u64(data, "last", got->last);
	}
	pp_json_bool(data, "overwritten", got->overwritten);
	pp_json_bool(data, "whole", got->whole);
	pp_json_u64(data, "read", got->read);
	pp_json_u64(data, "matched", k->n);
	pp_json_array(data, "records");
	for (uint64_t i = from; i < k->n; i++)
		pp_json_str(data, NULL, k->record[i % MAX_KEPT]);
	pp_json_end_array(data);
}

/* Runs in the helper, whose end frees what it holds. */
static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = open(DEVICE, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct kept *PP_AUTO_FREE k = calloc(1, sizeof(*k));
	struct reading got = {0};
	int r = fd < 0 ? -errno : k ? 0 : -ENOMEM;

	(void)arg;
	if (!r)
		r = read_all(fd, k, &got);
	if (r)
		return pp_error_set(err, r, "%s: %s", DEVICE, pp_source_why(r));
	answer(data, k, &got);
	return 0;
}

/* What the records say, before it becomes facts. */
struct findings {
	const char *lines[MAX_LINES];
	size_t n_lines; /* all of them; the newest are kept, as a ring */
	const char *xids[MAX_XIDS];
	size_t n_xids;
	unsigned int count[PP_KMSG_DRIVER + 1];
	const char *gap; /* why a message that is not there proves nothing; NULL it does */
};

static void add_xid(struct pp_node *n, struct findings *f, const char *text)
{
	char word[64], bdf_text[PP_BDF_TEXT];
	unsigned int number;
	struct pp_bdf bdf;

	if (f->n_xids == MAX_XIDS || pp_kmsg_xid(text, &number, &bdf))
		return;
	(void)snprintf(word, sizeof(word), "%u %s", number, pp_bdf_format(&bdf, bdf_text));
	for (size_t i = 0; i < f->n_xids; i++)
		if (!strcmp(f->xids[i], word))
			return;
	f->xids[f->n_xids++] = pp_arena_str(&n->arena, word);
}

static void add_record(struct pp_node *n, struct findings *f, const char *record)
{
	enum pp_kmsg_family family;
	struct pp_kmsg msg;

	if (!record || pp_kmsg_parse(record, strlen(record), &msg))
		return;
	family = pp_kmsg_classify(msg.text);
	if (family == PP_KMSG_OTHER)
		return;
	f->count[family]++;
	if (family == PP_KMSG_XID)
		add_xid(n, f, msg.text);
	f->lines[f->n_lines++ % MAX_LINES] =
		pp_arena_printf(&n->arena, "[%" PRId64 ".%06" PRId64 "] %s", msg.time_us / 1000000,
				msg.time_us % 1000000, msg.text);
}

static void set_lines(struct pp_node *n, const struct findings *f)
{
	size_t kept = f->n_lines < MAX_LINES ? f->n_lines : MAX_LINES;
	const char *in_order[MAX_LINES];

	for (size_t i = 0; i < kept; i++)
		in_order[i] = f->lines[(f->n_lines - kept + i) % MAX_LINES];
	pp_fact_list(&n->facts, n->self, PP_F_KMSG_LINES, in_order, kept, DEVICE);
}

static const struct {
	enum pp_fact_id id;
	enum pp_kmsg_family family;
} counted[] = {
	{PP_F_KMSG_PEERMEM_ABI, PP_KMSG_PEERMEM_ABI},
	{PP_F_KMSG_DMABUF_TOPOLOGY, PP_KMSG_DMABUF_REFUSED},
	{PP_F_KMSG_XID, PP_KMSG_XID},
	{PP_F_KMSG_IOMMU_FAULTS, PP_KMSG_IOMMU_FAULT},
	{PP_F_KMSG_PEERMEM_ERRORS, PP_KMSG_PEERMEM},
	{PP_F_KMSG_P2P_ERRORS, PP_KMSG_P2P},
};

static void set_counted(struct pp_node *n, const struct findings *f)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(counted); i++) {
		enum pp_fact_id id = counted[i].id;
		unsigned int count = f->count[counted[i].family];

		if (!count && f->gap)
			pp_fact_unknown(&n->facts, n->self, id, DEVICE,
					"none in what is left of the kernel log; %s", f->gap);
		else if (pp_fact_table[id].type == PP_BOOL)
			pp_fact_bool(&n->facts, n->self, id, count > 0, DEVICE);
		else if (pp_fact_table[id].type == PP_LIST)
			pp_fact_list(&n->facts, n->self, id, f->xids, f->n_xids, DEVICE);
		else
			pp_fact_int(&n->facts, n->self, id, count, DEVICE);
	}
}

static void set_all_unknown(struct pp_node *n, const char *why)
{
	static const enum pp_fact_id ids[] = {PP_F_KMSG_FIRST, PP_F_KMSG_LAST, PP_F_KMSG_WRAPPED,
					      PP_F_KMSG_LINES};

	for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
		pp_fact_unknown(&n->facts, n->self, ids[i], DEVICE, "%s", why);
	for (size_t i = 0; i < PP_ARRAY_LEN(counted); i++)
		pp_fact_unknown(&n->facts, n->self, counted[i].id, DEVICE, "%s", why);
}

/* Have records been lost before anybody read them? */
static bool is_wrapped(const json_t *data, int64_t first, int64_t *ret_matched)
{
	bool overwritten = true;

	*ret_matched = 0;
	(void)pp_answer_bool(data, "overwritten", &overwritten);
	(void)pp_answer_i64(data, "matched", ret_matched);
	return first > 0 || overwritten || *ret_matched > MAX_KEPT;
}

static void set_facts(struct pp_node *n, const json_t *data)
{
	const json_t *records = json_object_get(data, "records");
	int64_t first, last, matched = 0;
	bool whole = false, wrapped;
	struct findings f = {0};

	if (pp_answer_i64(data, "first", &first) || pp_answer_i64(data, "last", &last) ||
	    !json_is_array(records))
		return set_all_unknown(n, "the kernel log is empty");
	(void)pp_answer_bool(data, "whole", &whole);
	wrapped = is_wrapped(data, first, &matched);
	for (size_t i = 0; i < json_array_size(records) && i < MAX_KEPT; i++)
		add_record(n, &f, json_string_value(json_array_get(records, i)));
	pp_fact_int(&n->facts, n->self, PP_F_KMSG_FIRST, first, DEVICE);
	pp_fact_int(&n->facts, n->self, PP_F_KMSG_LAST, last, DEVICE);
	pp_fact_bool(&n->facts, n->self, PP_F_KMSG_WRAPPED, wrapped, DEVICE);
	set_lines(n, &f);
	/* A record that matched when it was read and does not now has lost what told its family. */
	f.gap = wrapped			       ? "older messages were overwritten"
		: !whole		       ? "it was not read to its end"
		: matched > (int64_t)f.n_lines ? "a message that says something was cut"
					       : NULL;
	set_counted(n, &f);
}

int pp_kernel_log_ask(struct pp_source *src, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "kmsg", .run = run};

	return pp_ask(src, &q, ret);
}

const char *pp_kernel_log_find(const struct pp_answer *a, bool (*is)(const struct pp_kmsg *m),
			       bool *ret_whole)
{
	const json_t *records = json_object_get(a->data, "records");
	int64_t first = 0, matched;
	bool whole = false, wrapped;
	struct pp_kmsg msg;

	*ret_whole = false;
	if (!a->answered)
		return "the kernel log was not read";
	for (size_t i = 0; i < json_array_size(records) && i < MAX_KEPT; i++) {
		const char *record = json_string_value(json_array_get(records, i));

		if (record && !pp_kmsg_parse(record, strlen(record), &msg) && is(&msg))
			return NULL;
	}
	(void)pp_answer_bool(a->data, "whole", &whole);
	if (pp_answer_i64(a->data, "first", &first))
		return "the kernel log is empty";
	wrapped = is_wrapped(a->data, first, &matched);
	*ret_whole = whole && !wrapped && matched <= (int64_t)json_array_size(records);
	return *ret_whole ? "the kernel log does not say it" : "older messages were overwritten";
}

void pp_kernel_log_collect(struct pp_node *n)
{
	struct pp_answer a;

	if (pp_kernel_log_ask(n->src, &a))
		return set_all_unknown(n, "out of memory");
	if (a.answered)
		set_facts(n, a.data);
	else
		set_all_unknown(n, a.detail);
	pp_answer_done(&a);
}
